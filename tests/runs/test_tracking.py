"""Trackers listen: they get the numbers of a run and change nothing of it."""

import importlib.util
import json
import struct
import sys

import pytest

from sidequest.errors import SettingsError
from sidequest.runs import tracking as module
from sidequest.runs.tracking import check_trackers, log_outcome, numbers, tracking


class Fake:
    """A tracker that keeps what it is told."""

    made: list = []

    def __init__(self, *arguments):
        self.arguments, self.calls = arguments, []
        Fake.made.append(self)

    def settings(self, values):
        self.calls.append(values)

    def log(self, values, step):
        if step == 13:
            raise OSError("no space left")
        self.calls.append((values, step))

    def finish(self):
        self.calls.append("finish")


def refusing(*arguments):
    raise ConnectionError("no server")


@pytest.fixture
def fake(monkeypatch):
    Fake.made = []
    for kind in module.KINDS:
        monkeypatch.setitem(module.KINDS, kind, Fake)
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda name: object())
    return Fake.made


def test_settings_numbers_and_the_end_arrive(fake, tmp_path):
    settings = {"train": {"epochs": 3.0, "clip": None}, "seed": 1}
    with tracking(["tensorboard"], tmp_path, "select", settings) as log:
        log({"select": 0.5, "policy": {"a": 0.25}, "tasks": "a + b", "flag": True}, 1)
        log({"tasks": "only text"}, 2)
    (tracker,) = fake
    assert tracker.arguments == (tmp_path, "select")
    assert tracker.calls == [
        {"train.epochs": 3.0, "train.clip": "null", "seed": 1},
        ({"select": 0.5, "policy/a": 0.25}, 1),
        "finish",
    ]


def test_a_tracker_that_fails_is_given_up_and_the_run_goes_on(fake, tmp_path, capsys):
    with tracking(["tensorboard"], tmp_path, "select", {}) as log:
        log({"x": 1}, 12)
        log({"x": 2}, 13)
        log({"x": 3}, 14)
    assert fake[0].calls[1:] == [({"x": 1.0}, 12)]
    assert "tracking with tensorboard stopped: OSError: no space left" in capsys.readouterr().err


def test_a_tracker_that_does_not_start_is_given_up_and_the_others_go_on(fake, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(module.KINDS, "mlflow", refusing)
    with tracking(["mlflow", "wandb"], tmp_path, "select", {}) as log:
        log({"x": 1}, 1)
    assert fake[0].calls == [{}, ({"x": 1.0}, 1), "finish"]
    assert "tracking with mlflow stopped: ConnectionError: no server" in capsys.readouterr().err


def test_the_end_arrives_when_a_run_fails(fake, tmp_path):
    with pytest.raises(KeyboardInterrupt), tracking(["mlflow"], tmp_path, "train", {}):
        raise KeyboardInterrupt
    assert fake[0].calls[-1] == "finish"


def test_without_trackers_nothing_is_imported(tmp_path, monkeypatch):
    for name in module.KINDS:
        monkeypatch.setitem(sys.modules, name, None)  # importing it would fail
    with tracking([], tmp_path, "select", {}) as log:
        log({"x": 1}, 1)
    assert list(tmp_path.iterdir()) == []


def test_a_missing_package_is_named_with_its_extra(monkeypatch):
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda name: None if name == "mlflow" else object())
    check_trackers(["tensorboard"])
    with pytest.raises(SettingsError, match=r"--track mlflow: needs mlflow, .*pip install 'sidequest\[mlflow\]'"):
        check_trackers(["mlflow"])


def test_names_are_such_that_mlflow_takes_them():
    assert numbers({"<b>": {"α 1": 2}}) == {"_b_/α 1": 2.0}


def test_a_job_of_a_comparison_is_followed_from_its_journal(tmp_path):
    place = tmp_path / "heu-size" / "seed-3"
    place.mkdir(parents=True)
    (place / "journal.jsonl").write_text('{"call": 1, "select": 0.5, "tasks": "a"}\n{"call": 2, "select": 0.6}\n')
    seen = []
    log_outcome(lambda values, step: seen.append((numbers(values), step)), place, "heu-size", 3, {"score": 0.7})
    assert seen == [
        ({"heu-size/seed-3/select": 0.5}, 1),
        ({"heu-size/seed-3/select": 0.6}, 2),
        ({"heu-size/score": 0.7}, 3),
    ]


def needs(package: str) -> pytest.MarkDecorator:
    missing = importlib.util.find_spec(package) is None
    return pytest.mark.skipif(missing, reason=f"the extra `{package}` is not installed")


@pytest.mark.integration
@needs("tensorboard")
def test_tensorboard_itself_reads_what_was_logged(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    with tracking(["tensorboard"], tmp_path, "select", {"seed": 0}) as log:
        for step in (1, 2, 3):
            log({"select": step / 10}, step)
    events = EventAccumulator(str(tmp_path / "tensorboard" / "select"))
    events.Reload()
    assert [(event.step, round(event.value, 6)) for event in events.Scalars("select")] == [(1, 0.1), (2, 0.2), (3, 0.3)]
    assert events.Tags()["tensors"] == ["settings/text_summary"]


@pytest.mark.integration
@needs("mlflow")
def test_mlflow_itself_reads_what_was_logged(tmp_path, monkeypatch):
    from mlflow import MlflowClient

    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "mlruns").as_uri())
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    for _ in range(2):  # the second finds the experiment of the first
        with tracking(["mlflow"], tmp_path / "run", "select", {"train": {"epochs": 3}}) as log:
            log({"select": 0.5}, 1)
            log({"select": 0.75}, 2)
    client = MlflowClient()
    runs = client.search_runs([client.get_experiment_by_name("sidequest").experiment_id])
    assert [run.info.status for run in runs] == ["FINISHED"] * 2
    assert runs[0].info.run_name == "run select"
    assert runs[0].data.params == {"train.epochs": "3"}
    history = client.get_metric_history(runs[0].info.run_id, "select")
    assert [(entry.step, entry.value) for entry in history] == [(1, 0.5), (2, 0.75)]


def log_records(data: bytes, head: int = 7, block: int = 32768) -> list[bytes]:
    """The records of a log in LevelDB's format, after wandb's own head: checksum, length and kind before each part."""
    found, place = [b""], head
    while place + 7 <= len(data):
        if block - place % block < 7:
            place += block - place % block
            continue
        length, kind = struct.unpack("<HB", data[place + 4 : place + 7])
        found[-1] += data[place + 7 : place + 7 + length]
        place += 7 + length
        if kind in (1, 4):  # whole, or the last part
            found.append(b"")
    return found[:-1]


@pytest.mark.integration
@needs("wandb")
def test_wandb_offline_keeps_what_was_logged_in_its_file(tmp_path, monkeypatch):
    from wandb.proto import wandb_internal_pb2

    monkeypatch.setenv("WANDB_MODE", "offline")
    with tracking(["wandb"], tmp_path / "run", "select", {"train": {"epochs": 3}}) as log:
        log({"heu-size/seed-0": {"select": 0.5}}, 2)
        log({"heu-size/seed-1": {"select": 0.75}}, 1)  # the next cell begins again
    (path,) = (tmp_path / "run" / "wandb").glob("offline-run-*/*.wandb")
    seen, settings = [], {}
    for data in log_records(path.read_bytes()):
        record = wandb_internal_pb2.Record()
        record.ParseFromString(data)
        items = {item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in record.history.item}
        if items:
            seen.append({key: value for key, value in items.items() if not key.startswith("_")})
        settings |= {item.key or "/".join(item.nested_key): item.value_json for item in record.config.update}
    assert seen == [
        {"heu-size/seed-0/select": 0.5, "step": 2},
        {"heu-size/seed-1/select": 0.75, "step": 1},
    ]
    assert settings["train.epochs"] == "3"
