"""Trackers listen: they get the numbers of a run and change nothing of it."""

import importlib.util
import sys
import types

import pytest

from sidequest.errors import SettingsError
from sidequest.runs import tracking as module
from sidequest.runs.tracking import check_trackers, log_outcome, numbers, tracking


class Fake:
    """Accelerate's tracker, as far as it is used."""

    name = "tensorboard"
    made: list = []

    def __init__(self, *arguments, **named):
        self.arguments, self.calls = arguments, []
        Fake.made.append(self)

    def start(self):
        self.calls.append("start")

    def store_init_configuration(self, values):
        self.calls.append(values)

    def log(self, values, step):
        if step == 13:
            raise OSError("no space left")
        self.calls.append((values, step))

    def finish(self):
        self.calls.append("finish")


@pytest.fixture
def fake(monkeypatch):
    Fake.made = []
    accelerate, trackers = types.ModuleType("accelerate"), types.ModuleType("accelerate.tracking")
    accelerate.PartialState = lambda cpu: None
    trackers.TensorBoardTracker = trackers.MLflowTracker = Fake
    monkeypatch.setitem(sys.modules, "accelerate", accelerate)
    monkeypatch.setitem(sys.modules, "accelerate.tracking", trackers)
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda name: object())
    return Fake.made


def test_settings_numbers_and_the_end_arrive(fake, tmp_path):
    settings = {"train": {"epochs": 3.0, "clip": None}, "seed": 1}
    with tracking(["tensorboard"], tmp_path, "select", settings) as log:
        log({"select": 0.5, "policy": {"a": 0.25}, "tasks": "a + b", "flag": True}, 1)
        log({"tasks": "only text"}, 2)
    (tracker,) = fake
    assert tracker.arguments == ("select", tmp_path / "tensorboard")
    assert tracker.calls == [
        "start",
        {"train.epochs": 3.0, "train.clip": "null", "seed": 1},
        ({"select": 0.5, "policy/a": 0.25}, 1),
        "finish",
    ]


def test_a_tracker_that_fails_is_given_up_and_the_run_goes_on(fake, tmp_path, capsys):
    with tracking(["tensorboard"], tmp_path, "select", {}) as log:
        log({"x": 1}, 12)
        log({"x": 2}, 13)
        log({"x": 3}, 14)
    assert fake[0].calls[2:] == [({"x": 1.0}, 12)]
    assert "tracking with tensorboard stopped: OSError: no space left" in capsys.readouterr().err


def test_the_end_arrives_when_a_run_fails(fake, tmp_path):
    with pytest.raises(KeyboardInterrupt), tracking(["mlflow"], tmp_path, "train", {}):
        raise KeyboardInterrupt
    assert fake[0].calls[-1] == "finish"


def test_without_trackers_nothing_is_imported(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "accelerate", None)  # importing it would fail
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


@pytest.mark.integration
@pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("accelerate", "tensorboard")),
    reason="the extra `tensorboard` is not installed",
)
def test_tensorboard_itself_reads_what_was_logged(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    with tracking(["tensorboard"], tmp_path, "select", {"seed": 0}) as log:
        for step in (1, 2, 3):
            log({"select": step / 10}, step)
    events = EventAccumulator(str(tmp_path / "tensorboard" / "select"))
    events.Reload()
    assert [(event.step, round(event.value, 6)) for event in events.Scalars("select")] == [(1, 0.1), (2, 0.2), (3, 0.3)]
