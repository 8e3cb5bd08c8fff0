"""αVIL excludes a candidate with shuffled labels, where the primary's own training does not overfit *select*."""

from typing import Any

import pytest

from sidequest.methods.alphavil.alphavil import AlphaVIL, AlphaVILSettings
from sidequest.recipe import Recipe
from sidequest.runs.driver import run_method
from sidequest.runs.setup import Setup
from sidequest.search.trials import LocalTrials
from sidequest.tasks.digits import digits_suite
from tests.helpers.marks import slow_but

OTHERS = ("parity", "large", "bottom-right", "ink")


def recipe_of(seed: int, rows: dict[str, int], epochs: int, **settings: Any) -> Recipe:
    suite = digits_suite(seed, rows=rows, report_rows=10)
    train = {"epochs": epochs, "learning_rate": 0.002, "max_batches": None, "batch_size": 32, "patience": None}
    setup = Setup.of(suite, {"kind": "alphavil"}, train)
    learner = setup.learner(seed)
    published = {"alpha_rate": 0.05, "weight_on": "loss", "rescale": False}
    method = AlphaVIL(AlphaVILSettings(**{**published, **settings}), seed=seed)
    return run_method(method, learner, setup.pool, LocalTrials(learner, setup.train), single_run_work=1.0)


def share(weights: dict[str, float]) -> float:
    return weights["shuffled"] / sum(weights.values())


@pytest.mark.statistical
@pytest.mark.parametrize("seed", slow_but(range(3), 0))
def test_the_weight_of_shuffled_labels_goes_to_zero(seed):
    """In eight seeds of eight the share was below 0.0002: a false alarm at 0.05 is not to be expected."""
    recipe = recipe_of(seed, {**dict.fromkeys(OTHERS, 0), "top-left": 1200, "shuffled": 1200}, epochs=6)
    weights = recipe.evidence["weights"]
    assert share(weights) < 0.05
    assert weights["top-left"] > 1
    assert recipe.auxiliaries == ()
    assert recipe.verdict.startswith("no auxiliary helps")


@pytest.mark.slow
@pytest.mark.statistical
def test_on_the_learning_rate_it_falls_too():
    """The default under AdamW is slower: after six epochs the share was 0.17 to 0.22 in three seeds, from 0.5 at the start."""
    rows = {**dict.fromkeys(OTHERS, 0), "top-left": 1200, "shuffled": 1200}
    recipe = recipe_of(0, rows, 6, weight_on="auto", rescale=True)
    assert share(recipe.evidence["weights"]) < 0.35


@pytest.mark.slow
def test_in_the_whole_suite_it_goes_to_zero_on_most_seeds():
    """All five candidates with 1,200 rows each. In eight seeds the shares were 0.000 six times, 0.023 and 0.154."""
    shares = [
        share(recipe_of(seed, dict.fromkeys((*OTHERS, "top-left", "shuffled"), 1200), 12).evidence["weights"])
        for seed in range(5)
    ]
    assert sorted(shares)[3] < 0.01
