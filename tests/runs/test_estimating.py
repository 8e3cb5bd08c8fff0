"""Costs before the start: what is counted dry is what a real training counts, for every method, and nothing is left behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from sidequest.errors import SidequestError
from sidequest.learning.meter import Meter
from sidequest.methods import METHODS
from sidequest.methods.registry import MethodChoice
from sidequest.runs.comparing import cells_to_run
from sidequest.runs.driver import check_requirements
from sidequest.runs.estimating import (
    Speed,
    dry_selection,
    dry_training,
    estimate_comparison,
    estimate_oracle,
    estimate_selection,
    measure_speed,
)
from sidequest.runs.selecting import select
from sidequest.runs.setup import Setup
from sidequest.runs.training import train_recipe
from sidequest.tasks.digits import digits_suite


@pytest.fixture(scope="module")
def setup() -> Setup:
    suite = digits_suite().subset(["ink", "shuffled"])
    return Setup.of(suite, train={"epochs": 1, "patience": None, "evaluations": 2})


def counts(meter: Meter) -> dict[str, tuple[int, int, int]]:
    return {name: (c.batches, c.examples, c.evaluated_examples) for name, c in sorted(meter.tasks.items())}


@pytest.mark.parametrize("method", ["single", "all"])
def test_a_training_is_counted_to_the_last_row(setup: Setup, method: str) -> None:
    recipe = select(setup, method)
    real = train_recipe(setup, recipe, 0).meter
    dry = dry_training(setup, recipe, 0)
    assert sum(c.batches for c in dry.tasks.values()) == sum(c.batches for c in real.tasks.values())
    if method == "single":
        assert counts(dry) == counts(real)
    assert dry.work == pytest.approx(real.work, rel=0.02)


def test_a_search_is_counted_as_it_runs(setup: Setup) -> None:
    # With one candidate a greedy search always trains twice; with more, when it stops depends on scores that no estimate has.
    setup = Setup(setup.suite.subset(["shuffled"]), setup.model, setup.train)
    real = select(setup, "heu-size")
    meter, recipe = dry_selection(setup, MethodChoice("heu-size"), 0)
    assert meter.trials == real.cost.trials == 2
    assert meter.work / setup.single_run_work == pytest.approx(real.cost.x, rel=0.02)
    assert set(recipe.tasks) <= set(setup.suite.tasks)


@pytest.mark.parametrize(
    "method", ["similarity", "random-data", "alphavil", "diw", "exp3s", "gradts-thres", "gradts-fg"]
)
def test_methods_with_powers_can_be_counted(setup: Setup, method: str) -> None:
    meter, _ = dry_selection(setup, MethodChoice(method), 0)
    assert (meter.work > 0) == (method != "random-data")


def test_no_method_but_those_that_need_attention_heads_is_refused_to_a_model(setup: Setup) -> None:
    learner = setup.learner(0)
    refused = set()
    for name in METHODS:
        try:
            check_requirements(MethodChoice(name).make(), learner)
        except SidequestError:
            refused.add(name)
    assert refused == {"gradts-thres", "gradts-trial", "gradts-fg"}


def test_a_budget_bounds_the_count(setup: Setup) -> None:
    free, _ = dry_selection(setup, MethodChoice("heu-size"), 0)
    bounded, _ = dry_selection(setup, MethodChoice("heu-size"), 0, budget=1.0)
    assert bounded.work < free.work


def test_a_comparison_counts_the_cells_that_are_missing(setup: Setup, tmp_path: Path) -> None:
    missing, done = cells_to_run(setup, ["heu-type"], range(3), tmp_path)
    assert done == 0
    assert {choice.name: seeds for choice, seeds in missing} == dict.fromkeys(
        ["single", "all", "size", "random-subset", "heu-type"], 3
    )
    whole = estimate_comparison(setup, missing, None, 1)
    half = estimate_comparison(setup, [(choice, 1) for choice, _ in missing], None, 1, done=10)
    assert whole.x == pytest.approx(3 * half.x)
    assert "10 cells are done already and are not counted" in half.notes
    assert "single-long" in [label for label, _, _ in whole.parts]
    assert not list(tmp_path.iterdir())


def test_minutes_follow_from_the_speed_and_the_processes(setup: Setup) -> None:
    estimate = estimate_oracle(setup, 5, None, 2)
    assert [label for label, _, _ in estimate.parts] == [
        "1 subset of size 0",
        "2 subsets of size 1",
        "1 subset of size 2",
    ]
    speed = Speed(dict.fromkeys(setup.suite.tasks, 20.0), dict.fromkeys(setup.suite.tasks, 0.0), 30.0)
    batches = sum(times * sum(c.batches for c in meter.tasks.values()) for _, times, meter in estimate.parts)
    assert speed.of(estimate.total) == 20.0 * batches
    text = "\n".join(estimate.lines(speed))
    assert f"in all: {batches:,} batches" in text
    assert f"about {(10 * batches + 30) / 60:.0f} min with 2 processes, 30 s of it to encode texts once" in text
    quick = Speed(dict.fromkeys(setup.suite.tasks, 1e-9), dict.fromkeys(setup.suite.tasks, 0.0), 0.0)
    assert "less than 1 s with 2 processes" in estimate.lines(quick)


def test_the_speed_is_measured_and_is_near_the_truth(setup: Setup) -> None:
    speed = measure_speed(setup)
    assert set(speed.batch) == set(setup.suite.tasks)
    recipe = select(setup, "all")
    real = train_recipe(setup, recipe, 0).meter
    assert speed.of(dry_training(setup, recipe, 0)) == pytest.approx(real.seconds, rel=3)  # the machine may be busy
    assert estimate_selection(setup, MethodChoice("all")).x == 0
