"""One training in two gloo processes is the training in one with the same whole batch: gradients, weights, decisions."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from sidequest.errors import SettingsError
from sidequest.learning.fit import fit
from sidequest.learning.torch.optimising import prepare_network
from sidequest.learning.torch.processes import Group, parts_of
from sidequest.methods.base import Pool
from sidequest.recipe import Recipe
from sidequest.runs.driver import run_method
from sidequest.runs.setup import Setup
from sidequest.search.trials import LocalTrials
from sidequest.tasks.digits import digits_suite
from sidequest.tasks.task import Objective
from tests.helpers import ROOT

ROWS = {"top-left": 72, "parity": 60, "large": 60, "bottom-right": 0, "ink": 50, "shuffled": 0}
METHODS = {
    "single": {},
    "all": {},
    "autosem-p1": {"rounds": 4, "batches": 2},
    "exp3s": {"steps": 12},
    "alphavil": {"epochs": 2},
}
# For whole trainings by the command. Nothing is drawn for rows, because each process would draw for its own. And no AdamW: it
# divides gradients by their size, so where they are nearly zero rounding alone moves a weight by a whole step.
STILL = (
    "model.dropout=0",
    "model.shift=0",
    "model.rotate=0",
    "model.zoom=0",
    "train.optimizer=sgd",
    "train.learning_rate=0.05",
)
# Rounding grows with every step: by 80 steps from 1e-9 to 1e-5, by 160 to 1e-2.
SHORT = ("train.epochs=12", "train.max_batches=60")


def setup(**train):
    """Without dropout, whose masks are other ones in other processes; 7 rows in the last batch do not go into two parts."""
    model = {"kind": "convnet", "channels": [4, 8], "hidden": 16, "dropout": 0.0, "rotate": 0, "zoom": 0, "shift": 0}
    suite = digits_suite(0, rows=ROWS, select_rows=21, report_rows=30)
    return Setup.of(suite, model, {"epochs": 1, "batch_size": 13, "eval_batch_size": 8, **train})


def train_all(place, **train):
    """Every method, and its recipe trained: final weights, scores and the gradients of one batch of each."""
    chosen = setup(**train)
    found, scores = {}, {}
    for name, settings in METHODS.items():
        learner = chosen.learner(0)
        from sidequest.runs.selecting import make_method

        method = make_method(name, settings)
        pool: Pool = chosen.pool
        recipe = run_method(method, learner, pool, LocalTrials(learner, chosen.train), single_run_work=1.0)
        trained = learner if method.trains_model else chosen.learner(0)
        if not method.trains_model:
            scores[f"{name} fit"] = fit(trained, Recipe(**recipe.model_dump()).phases, chosen.train, 0).score
        found |= {f"{name}.{key}": value.detach().clone().contiguous() for key, value in trained._weights().items()}
        scores |= {f"{name} losses": trained.train("parity", 1), f"{name} select": trained.evaluate("top-left")}
        found |= {
            f"{name}.grad.{key}": value.grad.clone().contiguous()
            for key, value in trained.model.named_parameters()
            if value.grad is not None
        }
        predicted = trained.predict("ink", "select")
        scores[f"{name} predictions"] = np.asarray(predicted).tolist()
    if int(os.environ.get("RANK", "0")) == 0:
        place.mkdir(parents=True, exist_ok=True)
        save_file(found, place / "weights.safetensors")
        (place / "scores.json").write_text(json.dumps(scores))


CHILD = """
import sys
from pathlib import Path
sys.path.insert(0, {root!r})
import torch
torch.set_num_threads(1)
from tests.learning.torch.test_processes import train_all
train_all(Path(sys.argv[1]))
"""


def torchrun(arguments, processes, seconds=240, **more):
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
    environment = {**os.environ, "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1", **more}
    return subprocess.run([*command, *map(str, arguments)], env=environment, timeout=seconds, check=True)


@pytest.mark.slow
def test_two_processes_train_what_one_does(tmp_path):
    script = tmp_path / "child.py"
    script.write_text(CHILD.format(root=str(ROOT)))
    torchrun([script, tmp_path / "two"], 2)
    train_all(tmp_path / "one")
    train_all(tmp_path / "other", batch_size=12)
    one, two, other = (load_file(tmp_path / name / "weights.safetensors") for name in ("one", "two", "other"))
    assert one.keys() == two.keys()
    for name, value in one.items():
        torch.testing.assert_close(
            two[name], value, atol=1e-6, rtol=1e-5, msg=lambda words, name=name: f"{name}: {words}"
        )
    far = [name for name in METHODS if not close(one, other, name)]
    assert far == list(METHODS)  # the control: another whole batch is another training
    scores = [json.loads((tmp_path / name / "scores.json").read_text()) for name in ("one", "two")]
    assert scores[0].keys() == scores[1].keys()
    for name, value in scores[0].items():
        np.testing.assert_allclose(scores[1][name], value, atol=1e-5, err_msg=name)


def close(one, other, method):
    mine = [name for name in one if name.startswith(f"{method}.") and ".grad." not in name]
    return all(torch.allclose(one[name], other[name], atol=1e-6, rtol=1e-5) for name in mine)


@pytest.mark.slow
def test_a_training_of_two_that_was_killed_goes_on_in_one(tmp_path):
    """By the command, with checkpoints at every chance; the model is that of one process that was left alone."""
    environment = {**os.environ, "SIDEQUEST_CACHE": str(tmp_path / "cache"), "OMP_NUM_THREADS": "1"}
    model = [part for setting in (*STILL, "train.epochs=30") for part in ("--set", setting)]

    def sidequest(*arguments, wait=True):
        process = subprocess.Popen([sys.executable, "-m", "sidequest", *arguments], env=environment)
        assert not wait or process.wait(240) == 0
        return process

    sidequest("select", "digits", "-m", "single", "-o", str(tmp_path / "run"), *model)
    sidequest("train", str(tmp_path / "run"), "-o", str(tmp_path / "whole"))
    environment["SIDEQUEST_CHECKPOINT_SECONDS"] = "0"
    killed = tmp_path / "killed"
    two = sidequest("train", str(tmp_path / "run"), "-o", str(killed), "--processes", "2", wait=False)
    deadline = time.monotonic() + 200
    while not list(killed.glob("checkpoints/training/*/record.json")) and time.monotonic() < deadline:
        time.sleep(0.02)
    for child in Path(f"/proc/{two.pid}/task/{two.pid}/children").read_text().split():
        kill_tree(int(child))
    two.kill()
    two.wait()
    assert list(killed.glob("checkpoints/training/*/record.json"))
    assert not (killed / "model").exists()
    sidequest("train", str(tmp_path / "run"), "-o", str(killed))
    one, gone_on = (next((tmp_path / name / "model").glob("*.safetensors")) for name in ("whole", "killed"))
    whole, resumed = load_file(one), load_file(gone_on)
    for name, value in whole.items():
        torch.testing.assert_close(resumed[name], value, atol=1e-4, rtol=1e-3)
    # The control: had it begun again in one process, it would have the same bytes.
    assert any(not torch.equal(resumed[name], value) for name, value in whole.items())


def kill_tree(process):
    try:
        children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
        os.kill(process, 9)
    except OSError:
        return
    for child in children:
        kill_tree(int(child))


def test_parts_of_a_batch_make_up_the_batch():
    class Rows:
        def collate(self, positions):
            return {"labels": torch.tensor(positions)}

    positions = np.arange(7)
    for size in (1, 2, 3):
        parts = [parts_of(Group(rank, size), Rows(), positions, 2, Objective.CLASSIFICATION) for rank in range(size)]
        rows = sorted(int(row) for part in parts for batch, _ in part for row in batch["labels"])
        assert rows == list(range(7))
        assert sum(share for part in parts for _, share in part) == pytest.approx(1.0)
        assert max(len(batch["labels"]) for part in parts for batch, _ in part) == 2
    empty = parts_of(Group(1, 2), Rows(), positions[:1], None, Objective.CLASSIFICATION)
    assert [share for _, share in empty] == [0.0]  # it takes part with nothing


def test_a_micro_batch_is_the_same_step_in_pieces():
    whole, pieces, other = (setup(**more).learner(0) for more in ({}, {"micro_batch": 4}, {"batch_size": 12}))
    for learner in (whole, pieces, other):
        learner.begin(6)
    losses = [learner.train("top-left", 6) for learner in (whole, pieces, other)]
    np.testing.assert_allclose(losses[0], losses[1], atol=1e-6)
    assert not np.allclose(losses[0], losses[2], atol=1e-3)
    for name, value in whole._weights().items():
        torch.testing.assert_close(pieces._weights()[name], value, atol=1e-6, rtol=1e-5)
    assert (
        whole.meter.to_json()["tasks"]["top-left"]["examples"]
        == pieces.meter.to_json()["tasks"]["top-left"]["examples"]
    )


def test_batch_normalisation_is_refused_before_any_work():
    with pytest.raises(SettingsError, match=r"--processes.*batch normalisation"):
        Group(0, 2).check(torch.nn.Sequential(torch.nn.BatchNorm1d(3)))
    Group(0, 1).check(torch.nn.Sequential(torch.nn.BatchNorm1d(3)))


def test_recomputing_activations_is_refused_where_it_cannot_be():
    with pytest.raises(SettingsError, match=r"train\.recompute"):
        setup(recompute=True).learner(0)


def test_large_networks_get_what_they_want_where_it_pays():
    asked = []

    class Encoder(torch.nn.Linear):
        def gradient_checkpointing_enable(self, gradient_checkpointing_kwargs):
            asked.append(gradient_checkpointing_kwargs)

        def compile(self, **options):
            asked.append(options)

    settings = setup(recompute=True, compile=True).train
    prepare_network(Encoder(1, 1), settings, torch.device("cpu"))
    assert asked == [{"use_reentrant": False}]  # compiling takes longer than it saves on a CPU
    prepare_network(Encoder(1, 1), settings, torch.device("cuda"))
    assert asked[1:] == [{"use_reentrant": False}, {"dynamic": True}]
    prepare_network(Encoder(1, 1), setup().train, torch.device("cuda"))
    assert len(asked) == 3  # the control: nothing that was not asked for


def test_batches_go_to_a_gpu_from_pinned_memory_without_waiting():
    class Rows:
        calls = ()

        def pin_memory(self):
            self.calls += ("pinned",)
            return self

        def to(self, device, non_blocking):
            self.calls += (str(device), non_blocking)
            return self

    learner = setup().learner(0)
    for device, expected in (("cpu", ()), ("cuda:1", ("pinned", "cuda:1", True)), ("meta", ("meta", True))):
        learner.device = torch.device(device)
        assert learner.to_device({"x": Rows()})["x"].calls == expected


def test_each_process_of_a_machine_has_a_gpu_of_its_own(monkeypatch):
    from sidequest.models.devices import chosen_device

    monkeypatch.delenv("SIDEQUEST_DEVICE", raising=False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert str(chosen_device()) == "cuda"
    for name, value in {"TORCHELASTIC_RUN_ID": "x", "WORLD_SIZE": "4", "RANK": "3", "LOCAL_RANK": "1"}.items():
        monkeypatch.setenv(name, value)
    assert str(chosen_device()) == "cuda:1"


@pytest.mark.slow
def test_a_comparison_in_two_processes_is_that_of_one(tmp_path):
    """By the command, up to rounding; the second process leaves nothing behind."""
    model = [part for setting in (*STILL, *SHORT, "exp3s.steps=10") for part in ("--set", setting)]
    for processes in ("1", "2"):
        environment = {**os.environ, "SIDEQUEST_CACHE": str(tmp_path / f"cache-{processes}"), "OMP_NUM_THREADS": "1"}
        command = [
            sys.executable,
            "-m",
            "sidequest",
            "compare",
            "digits",
            "-m",
            "exp3s",
            "--seeds",
            "1",
            "--workers",
            "1",
        ]
        command += ["--processes", processes, "-o", str(tmp_path / processes), *model]
        subprocess.run(command, env=environment, timeout=300, check=True)
    one, two = (json.loads((tmp_path / name / "comparison.json").read_text()) for name in ("1", "2"))
    assert [row["method"] for row in one["rows"]] == [row["method"] for row in two["rows"]]
    for mine, theirs in zip(one["rows"], two["rows"], strict=True):
        np.testing.assert_allclose(theirs["scores"], mine["scores"], atol=0.01, err_msg=mine["method"])
    scores = [row["scores"][0] for row in one["rows"]]
    assert max(scores) - min(scores) > 0.1  # the control: they are not all alike
    assert not one["missing"] + two["missing"]


@pytest.mark.parametrize("more", [["--workers", "2"], ["--executor", "ray"], ["--tune", "6"]])
def test_processes_are_one_worker(more, tmp_path):
    from typer.testing import CliRunner

    from sidequest.cli import app

    for command in ("compare", "select"):
        arguments = [command, "digits", "-m", "single", "-o", str(tmp_path / "x"), "--processes", "2", *more]
        result = CliRunner().invoke(app, arguments)
        assert isinstance(result.exception, SettingsError)
        assert "--processes" in str(result.exception)


@pytest.mark.parametrize(
    ("device", "gpus", "processes", "refused"),
    [
        ("", 0, 8, None),
        ("", 2, 2, None),
        ("cuda", 2, 2, None),
        ("cpu", 2, 8, None),
        ("", 2, 3, "--processes 3: each process takes a GPU of its own, and there are 2"),
        ("cuda:1", 2, 2, "found 'cuda:1'"),
        ("mps", 0, 2, "found 'mps'"),
    ],
)
def test_processes_take_a_gpu_each_or_the_cpu(monkeypatch, tmp_path, device, gpus, processes, refused):
    """By the command: what cannot be is refused before any process is started."""
    from typer.testing import CliRunner

    from sidequest.cli import app, launching
    from sidequest.cli import processes as options

    started = []
    monkeypatch.setattr(options, "number_of_gpus", lambda: gpus)
    monkeypatch.setattr(launching, "run_together", lambda command, number, more: started.append((number, more)) or 0)
    monkeypatch.setenv("SIDEQUEST_DEVICE", device)
    arguments = ["select", "digits", "-m", "single", "-o", str(tmp_path / "x"), "--processes", str(processes)]
    result = CliRunner().invoke(app, arguments)
    if refused is None:
        assert result.exception is None
        assert started == [(processes, {"CUDA_VISIBLE_DEVICES": ""} if device == "cpu" else {})]
        return
    assert isinstance(result.exception, SettingsError)
    assert refused in str(result.exception)
    assert not started
