"""Every method takes a task with several labels per row, as the primary and as an auxiliary."""

from __future__ import annotations

import pytest

from sidequest.methods import METHODS
from sidequest.runs.selecting import select
from sidequest.runs.training import train_recipe
from sidequest.tasks.task import Objective
from tests.helpers.marks import slow_but
from tests.helpers.tiny_suites import task, tiny_setup

pytestmark = pytest.mark.integration
SHORT = {
    "autosem": {"rounds": 3, "batches": 1, "trials": 3, "initial": 2},
    "autosem-p1": {"rounds": 3, "batches": 1},
    "autosem-no-stage1": {"trials": 3, "initial": 2},
    "autosem-grid": {"rounds": 3, "batches": 1, "trials": 2},
    "exp3s": {"steps": 12, "round_steps": 6},
    "counterfactual": {"steps": 20, "round_steps": 10, "iterations": 1, "entropy_weights": [0.5], "cma_iterations": 3},
    "alphavil": {"epochs": 1, "alpha_steps": 2},
    "diw": {"epochs": 1, "patience": 1},
    "similarity": {"rows": 10, "share": 0.5, "discriminator_epochs": 1},
    "similarity-ce": {"rows": 10, "share": 0.5, "discriminator_epochs": 1},
    "random-data": {"share": 0.5},
}


# One of each way to work: by facts, trials, rounds of a bandit, deltas, heads, and a discriminator.
QUICK = ("all", "heu-size", "autosem-p1", "exp3s", "alphavil", "gradts-thres", "similarity")


@pytest.mark.parametrize("method", slow_but(METHODS, *QUICK))
def test_every_method_runs_on_it(method, encoder):
    setup = tiny_setup(
        encoder,
        [
            task("topics", objective=Objective.MULTILABEL),
            task("more", objective=Objective.MULTILABEL, rows=30),
            task("plain", rows=30),
        ],
        max_batches=6,
    )
    recipe = select(setup, method, settings=SHORT.get(method, {}))
    assert recipe.primary == "topics"
    assert recipe.evidence is not None


@pytest.mark.parametrize("primary", ["topics", "plain"])
def test_a_recipe_with_it_trains_on_it(primary, encoder):
    tasks = {"topics": task("topics", objective=Objective.MULTILABEL), "plain": task("plain")}
    setup = tiny_setup(encoder, [tasks[primary], *(t for name, t in tasks.items() if name != primary)], epochs=1)
    together, alone = (train_recipe(setup, select(setup, method), 0) for method in ("all", "single"))
    assert set(together.report) == set(tasks[primary].metrics)
    assert set(together.meter.tasks) == {"topics", "plain"}
    assert set(alone.meter.tasks) == {primary}
