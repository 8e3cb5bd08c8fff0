"""Final trainings: a recipe trained once and scored on *report*, kept by content so that nobody pays for it twice."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from sidequest.files import digest
from sidequest.learning.meter import Meter
from sidequest.methods.base import Plan
from sidequest.recipe import Recipe
from sidequest.records.base import Known, Record
from sidequest.records.runs import Evaluation, Spent
from sidequest.runs.predictions import PREDICTIONS, read_predictions, write_predictions
from sidequest.runs.setup import Setup
from sidequest.runs.training import Trained, own_weights, train_recipe
from sidequest.search import recheck
from sidequest.search.trials import TrialCache, TrialResult, plan_key
from sidequest.store import ContentStore


class FinalRecord(Record):
    """The scores and the cost of a final training. score, select_score: what the goal is, on *report* and on *select*."""

    FILE: ClassVar[str] = "final.json"
    MADE_BY: ClassVar[str] = "sidequest compare"

    score: Known
    select_score: Known
    report: dict[str, Known]
    select: dict[str, Known]
    tasks: dict[str, dict[str, Known]]
    training: Spent
    history: tuple[Evaluation, ...]


@dataclass(frozen=True)
class Final:
    """predictions: on *report* by task, as `Learner.predict` gives them."""

    record: FinalRecord
    predictions: dict[str, Any]


def train_once(setup: Setup, recipe: Recipe, seed: int, run: Path | None = None) -> Final:
    """Train and score; the same phases and seed are trained once, whichever method asked for them.

    run: the directory of the recipe's run. A method that has trained the model itself is scored as it stands: its cost is in the
        selection.
    """
    if run is not None and (own := own_weights(run, recipe, seed)) is not None:
        return _final(setup, train_recipe(setup, recipe, seed, trained=own))
    facts = setup.facts(recipe.tasks)
    plan = Plan(phases=recipe.phases, seed=seed)
    report = {name: task.fingerprints.get("report") for name, task in setup.suite.tasks.items()}
    used = setup.suite.tasks if setup.suite.goal == "average" else [setup.suite.primary]
    key = digest([FinalRecord.VERSION, plan_key(plan, facts), [report[name] for name in used]])

    def make(directory: Path) -> dict[str, Any]:
        trained = train_recipe(setup, recipe, seed)
        # A final training is also a trial, with the same score on *select*: a method may find it and not pay again.
        meter = Meter.from_json({**trained.meter.to_json(), "trials": 1})
        TrialCache().put(plan_key(plan, facts), TrialResult(trained.select_score, trained.history, meter))
        final = _final(setup, trained)
        write_predictions(directory / PREDICTIONS, final.predictions)
        return final.record.to_json()

    entry = ContentStore("finals").get_or_make(key, make)
    kept = Final(FinalRecord.of(dict(entry.data), entry.directory), read_predictions(entry.directory / PREDICTIONS))
    if not entry.made and recheck.is_due(key):
        again = _final(setup, train_recipe(setup, recipe, seed))
        recheck.confirm(
            key, (kept.record.score, kept.record.report), (again.record.score, again.record.report), entry.directory
        )
    return kept


def _final(setup: Setup, trained: Trained) -> Final:
    record = FinalRecord(
        score=trained.score,
        select_score=trained.select_score,
        report=trained.report,
        select=trained.select,
        tasks=trained.tasks,
        training=Spent.of(trained.meter.cost(setup.single_run_work), trained.meter.seconds),
        history=tuple(Evaluation(**entry) for entry in trained.history),
    )
    return Final(record, trained.predictions)
