"""Trainings that go wrong: a loss that is no number, a model or a method of somebody else that raises. One clear message, earlier
work kept, and the search goes on."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from sidequest.learning.torch.learner import TorchLearner
from tests.helpers.command_line import run_command
from tests.helpers.good_inputs import write_images

MODEL = """
import torch
from torch import nn

class Flat(nn.Module):
    width = 36
    def forward(self, batch):
        x = batch["image"].flatten(1)
        {what}
        return x

def build(tasks):
    {before}
    return Flat()
"""
METHOD = """
from sidequest import Method, Phase, Plan, Recipe, State

class Mine(Method):
    name = "mine"
    summary = "somebody else's"
    class State(State):
        asked: int = 0
    def start(self, pool, rng):
        {start}
        return self.State()
    def ask(self, state, n):
        return [Plan(phases=(Phase(shares={{"main": 1}}),), seed=0, label="main")] if state.asked < 2 else []
    def tell(self, state, plan, score):
        {tell}
        return self.State(asked=state.asked + 1)
    def round(self, state, learner, rng):
        raise AssertionError("not reached")
    def done(self, state):
        return state.asked >= 2
    def recipe(self, state):
        {recipe}
        return Recipe(method=self.name, primary="main", phases=(Phase(shares={{"main": 1}}),))
"""


@pytest.fixture
def place(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SIDEQUEST_CACHE", str(tmp_path / "cache"))
    return tmp_path


@pytest.fixture
def diverging(monkeypatch):
    """Training on `far` gives a loss that is no number from its second batch on."""
    train = TorchLearner.train

    def trains(self, task, n_batches=1, **more):
        losses = train(self, task, n_batches, **more)
        return [math.nan if task == "far" else loss for loss in losses]

    monkeypatch.setattr(TorchLearner, "train", trains)


@pytest.mark.parametrize(
    "method", ["heu-size", "heu-len", "autosem-no-stage1", "counterfactual", "auto", "random-data"]
)
def test_a_trial_that_diverges_fails_and_the_search_goes_on(method, diverging, place):
    suite = write_images(place / "images")
    settings = {"autosem-no-stage1": ["--set", "trials=4", "--set", "initial=2"]}.get(method, [])
    ended = run_command("select", suite, "-m", method, "-o", "out", "--workers", "1", *settings, seconds=200)
    assert not ended.raw, ended.output[-2000:]
    if ended.code == 0:
        recipe = json.loads(Path("out/recipe.json").read_text())
        assert recipe["phases"]
        return
    assert ended.code == 2, ended.output
    assert "'far'" in ended.output
    assert "diverged" in ended.output


def test_a_heuristic_does_not_choose_what_diverges(diverging, place):
    suite = write_images(place / "images")
    ended = run_command("select", suite, "-m", "heu-size", "-o", "out", "--workers", "1", seconds=200)
    assert ended.code == 0, ended.output
    assert all("far" not in phase["shares"] for phase in json.loads(Path("out/recipe.json").read_text())["phases"])
    assert "'far', batch 2 of phase 1" in Path("out/journal.jsonl").read_text().replace('\\"', '"')


def test_a_comparison_shows_the_others(diverging, place):
    suite = write_images(place / "images")
    arguments = ["-m", "heu-size", "--seeds", "1", "-o", "out", "--workers", "1"]
    ended = run_command("compare", suite, *arguments, seconds=300)
    assert ended.code == 1, ended.output
    assert "diverged" in ended.output
    table = json.loads(Path("out/comparison.json").read_text())
    assert {"single", "heu-size"} <= {row["method"] for row in table["rows"]}
    assert any("'far'" in cell["error"] for cell in table["missing"])


def test_the_final_training_says_task_and_step(diverging, place):
    suite = write_images(place / "images")
    assert run_command("select", suite, "-m", "all", "-o", "out", seconds=120).code == 0
    ended = run_command("train", "out", seconds=120)
    assert ended.code == 2
    assert not ended.raw, ended.output
    assert "task 'far', batch" in ended.output
    assert Path("out/recipe.json").exists()  # earlier work is kept
    assert not Path("out/model").exists()


MODELS = {
    "raises when it is built": ("", "raise RuntimeError('no network today')", "no network today"),
    "raises in its forward pass": ("raise KeyError('pixels')", "", "pixels"),
    "returns another shape": ("x = x[:, :3]", "", "[n, width]"),
    "returns no tensor": ("x = None", "", "NoneType"),
    "returns numbers without gradients": ("x = x.detach().round().long()", "", "int64"),
    "returns NaN": ("x = x * float('nan')", "", "diverged"),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_model_of_somebody_else_that_fails(name, place):
    what, before, says = MODELS[name]
    Path("net.py").write_text(MODEL.format(what=what or "pass", before=before or "pass"))
    suite = write_images(place / "images")
    arguments = ["--model", "custom", "--set", "model.factory=net.py:build", "-o", "out"]
    select = run_command("select", suite, "-m", "single", *arguments, seconds=120)
    ended = run_command("train", "out", "--allow-code", seconds=120) if select.code == 0 else select
    assert not ended.raw, ended.output[-2000:]
    assert ended.code == 2, ended.output
    assert says.lower() in ended.output.lower(), ended.output


METHODS = {
    "raises at its start": {"start": "raise ZeroDivisionError('no start')"},
    "raises when it is told": {"tell": "raise KeyError('no score')"},
    "raises in its recipe": {"recipe": "raise IndexError('no recipe')"},
    "returns no recipe": {"recipe": "return None"},
    "trains on a task that is not there": {
        "recipe": "return Recipe(method='mine', primary='main', phases=(Phase(shares={'other': 1}),))"
    },
}


@pytest.mark.parametrize("name", METHODS)
def test_a_method_of_somebody_else_that_fails(name, place):
    parts = {"start": "pass", "tell": "pass", "recipe": "pass", **METHODS[name]}
    Path("mine.py").write_text(METHOD.format(**parts))
    suite = write_images(place / "images")
    ended = run_command("select", suite, "-m", "mine.py:Mine", "-o", "out", "--workers", "1", seconds=120)
    assert not ended.raw, ended.output[-2000:]
    assert ended.code == 2, ended.output
    assert "mine" in ended.output
    if "no " in str(METHODS[name]):
        assert "no " in ended.output  # what it said itself


def test_a_select_split_of_one_row_and_one_without_a_class(place):
    suite = write_images(place / "images")
    text = suite.read_text().replace("primary: main", "primary: main\nseed: 1")
    suite.write_text(text.replace("objective: classification", "objective: classification\n    select_limit: 1", 1))
    ended = run_command("select", suite, "-m", "heu-size", "-o", "out", "--workers", "1", seconds=120)
    assert ended.code in (0, 2), ended.output
    assert not ended.raw, ended.output
