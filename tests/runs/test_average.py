"""The goal `average` is a comparison: one length for all policies, one model per task as `single`, verdicts against `uniform`."""

from dataclasses import replace

import numpy as np
import pytest

from sidequest.learning.fit import phase_length
from sidequest.recipe import Phase, Recipe
from sidequest.records.comparisons import Comparison
from sidequest.runs import comparing
from sidequest.runs.comparing import compare
from sidequest.runs.finals import train_once
from sidequest.runs.pages import WrittenPage
from sidequest.runs.setup import Setup
from sidequest.tasks.digits import digits_suite
from sidequest.tasks.suite import Suite
from sidequest.tasks.task import Task

ROWS = {"top-left": 40, "parity": 80, "bottom-right": 120, "large": 0, "ink": 0, "shuffled": 0}
TRAIN = {"epochs": 1, "batch_size": 20}


def average_suite(primary: str = "top-left") -> Suite:
    """Three tasks of different sizes, each with all three splits."""
    suite = digits_suite(0, rows=ROWS, select_rows=20, report_rows=40)
    return replace(with_report(suite), goal="average").with_primary(primary)


def with_report(suite: Suite) -> Suite:
    def whole(task: Task) -> Task:
        if "report" in task.splits and "select" in task.splits:
            return task
        first = np.arange(20)
        return replace(task, splits={"select": task.train.take(first), "report": task.train.take(first), **task.splits})

    return replace(suite, tasks={name: whole(task) for name, task in suite.tasks.items()})


@pytest.fixture(autouse=True)
def quick(tmp_path, monkeypatch):
    monkeypatch.setenv("SIDEQUEST_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(comparing, "write_run_page", lambda *_: WrittenPage())


@pytest.mark.parametrize("primary", ["top-left", "parity", "bottom-right"])
def test_every_policy_trains_equally_long_whichever_task_is_called_primary(primary):
    setup = Setup.of(average_suite(primary), {}, {**TRAIN, "epochs": 3})
    learner = setup.learner(0)
    one = dict.fromkeys(learner.tasks, 1)
    sizes = {name: float(card.rows) for name, card in setup.pool.cards.items()}
    phases = [
        Phase(shares=one, order="sample"),
        Phase(shares=sizes, order="sample"),
        Phase(shares={primary: 1}),
        Phase(shares={name: 0.01 if name == primary else 1 for name in one}, order="sample"),
    ]
    lengths = {phase_length(phase, learner, setup.train, "average").total for phase in phases}
    assert lengths == {3 * (2 + 4 + 6)}
    # With one primary the same phases are of very different lengths: each gives the primary its epochs.
    assert len({phase_length(phase, learner, setup.train).total for phase in phases}) > 2


def test_1x_is_one_training_over_all_tasks():
    works = {Setup.of(average_suite(primary), {}, TRAIN).single_run_work for primary in ("top-left", "bottom-right")}
    (work,) = works
    assert work > sum(ROWS.values())


@pytest.fixture(scope="module")
def comparison(tmp_path_factory) -> tuple[Setup, Comparison]:
    """Made once, with a cache of its own: what a test trains again is trained, not found."""
    place = tmp_path_factory.mktemp("average")
    setup = Setup.of(average_suite(), {}, TRAIN)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SIDEQUEST_CACHE", str(place / "cache"))
        patch.setattr(comparing, "write_run_page", lambda *_: WrittenPage())
        return setup, compare(setup, {"temperature": {}, "exp3s": {}}, [0, 1, 2], place / "c")


def test_differences_are_against_uniform_and_lengths_are_equal(comparison):
    found = comparison[1]
    assert found.baseline == "uniform"
    assert found.row("uniform").verdict == "baseline"
    assert {row.method for row in found.rows} == {"uniform", "single", "probe", "all", "size", "temperature", "exp3s"}
    assert all(row.against[0].to == "uniform" and len(row.against) == 1 for row in found.rows if row.role == "method")
    assert all(row.against[0].has_rows for row in found.rows if row.role == "method")
    # `exp3s` is judged by the model of its online run, which needs no further training.
    policies = [outcome for outcome in found.outcomes if outcome.method not in ("single", "probe", "exp3s")]
    assert {outcome.training.batches for outcome in policies} == {2 + 4 + 6}
    assert found.row("uniform").x == pytest.approx(1, abs=0.25)
    assert found.metric == "mean score"


def test_single_is_one_model_per_task(comparison):
    setup, found = comparison
    outcome = next(o for o in found.outcomes if o.method == "single" and o.seed == 1)
    alone = {}
    for name, task in setup.suite.tasks.items():
        suite = replace(setup.suite, tasks={name: task}, primary=name, goal="primary")
        recipe = Recipe(method="single", primary=name, phases=(Phase(shares={name: 1}),))
        alone[name] = train_once(Setup.of(suite, {}, TRAIN), recipe, 1).record
    assert outcome.tasks == {name: record.report for name, record in alone.items()}
    assert outcome.score == pytest.approx(np.mean([record.score for record in alone.values()]))
    assert outcome.training.batches == sum(record.training.batches for record in alone.values()) == 2 + 4 + 6
    assert outcome.auxiliaries == []


def test_the_score_is_the_mean_over_tasks_and_the_probe_too(comparison):
    setup, found = comparison
    for outcome in found.outcomes:
        scores = [outcome.tasks[name][task.metric] for name, task in setup.suite.tasks.items()]
        assert outcome.score == pytest.approx(np.mean(scores))
        assert set(outcome.tasks) == set(setup.suite.tasks)


def test_the_verdict_speaks_of_uniform(comparison):
    assert "uniform" in comparison[1].verdict
