"""Controls: what a method has to beat before anyone may say that auxiliary data helped.

`single-long`: the primary alone for as many batches as a method's final training, because auxiliaries add steps. `probe`: the
plain read-out of the model's features, without any training of the model. They choose nothing, so they are no methods. Where the
goal is the average of all tasks, `single` is made here too: one model for each task, each trained alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, median
from typing import Any

import numpy as np

from sidequest.errors import SettingsError
from sidequest.learning.meter import EVALUATION_SHARE
from sidequest.models.defaults import training_settings
from sidequest.recipe import Phase, Recipe
from sidequest.records.comparisons import Outcome
from sidequest.records.controls import PROBE, SINGLE_LONG
from sidequest.records.runs import Evaluation, Spent
from sidequest.runs.directory import open_run
from sidequest.runs.finals import Final, FinalRecord, train_once
from sidequest.runs.setup import Setup, length_card
from sidequest.tasks.metrics import compute_all


@dataclass(frozen=True)
class Scored:
    """recipe: None where nothing was trained by one."""

    final: Final
    recipe: Recipe | None = None


def run_control(setup: Setup, name: str, settings: dict[str, Any], seed: int, directory: Path) -> Scored:
    """A control on one seed; its directory is claimed as a method's is."""
    open_run(directory, setup, name, settings, seed)
    if name == PROBE:
        return Scored(probe(setup))
    if name == SINGLE_LONG:
        recipe = Recipe(
            method=SINGLE_LONG,
            primary=setup.suite.primary,
            phases=(long_phase(setup, settings),),
            provenance=setup.provenance(name, settings, seed),
        )
        recipe.write(directory / "recipe.json")
        return Scored(train_once(setup, recipe, seed), recipe)
    return Scored(one_model_per_task(setup, seed))


def long_phase(setup: Setup, settings: dict[str, Any]) -> Phase:
    """batches: None for no more than `single` has anyway: then it is `single`, and found instead of trained."""
    alone = {setup.suite.primary: 1.0}
    batches = settings["batches"]
    return Phase(shares=alone) if batches is None else Phase(shares=alone, batches=batches, stop_early=False)


def long_batches(
    outcomes: Sequence[Outcome], candidates: Sequence[str], seeds: Sequence[int]
) -> tuple[str, dict[int, int | None]]:
    """The method with the highest mean score on *select*, and for each seed how many batches `single-long` gets: those of its
    final training on that seed. A method that trains the model while it selects has its selection's. None: no more than
    `single` has on that seed. Empty where no method has trained."""
    by_method = {name: [outcome for outcome in outcomes if outcome.method == name] for name in candidates}
    trained = {name: found for name, found in by_method.items() if found}
    if not trained:
        return "", {}
    best = max(trained, key=lambda name: fmean(outcome.select_score for outcome in trained[name]))
    lengths = {outcome.seed: outcome.training.batches or outcome.selection.batches for outcome in trained[best]}
    usual = round(median(lengths.values()))  # for a seed on which the method failed
    alone = {outcome.seed: outcome.training.batches for outcome in outcomes if outcome.method == "single"}
    wanted = {seed: lengths.get(seed, usual) for seed in seeds}
    return best, {seed: batches if batches > alone.get(seed, 0) else None for seed, batches in wanted.items()}


def has_probe(setup: Setup) -> bool:
    """Whether this kind of model has features that can be read out without training it."""
    tasks = [setup.suite.tasks[name] for name in scored_tasks(setup)]
    return all(setup.family.features(task, task.train.take(np.arange(1))) is not None for task in tasks)


def probe(setup: Setup) -> Final:
    """The read-outs of the tasks that count. Its cost is one pass of the model over their train rows."""
    predictions: dict[str, Any] = {}
    scores: dict[str, dict[str, dict[str, float]]] = {"select": {}, "report": {}}
    rows = 0
    for name in scored_tasks(setup):
        task = setup.suite.tasks[name]
        read_out = setup.family.read_out(task)
        if read_out is None:
            raise SettingsError(f"model.kind={setup.family.kind} has no read-out of {name!r}")
        rows += len(task.train)
        for split, by_task in scores.items():
            predicted = read_out.predict(task.splits[split], setup.family.scales[name].restore)
            by_task[name] = compute_all(task.metrics, predicted, task.splits[split].target, task.labels)
            if split == "report":
                predictions[name] = predicted
    x = EVALUATION_SHARE * rows / setup.single_run_work
    return _final(setup, scores, predictions, Spent(x=x, evaluations=1, evaluated_examples=rows), ())


def one_model_per_task(setup: Setup, seed: int) -> Final:
    """Every task trained alone, each as the primary of a suite of its own: the other end from one model for all."""
    predictions: dict[str, Any] = {}
    scores: dict[str, dict[str, dict[str, float]]] = {"select": {}, "report": {}}
    parts = []
    for name in scored_tasks(setup):
        alone = _alone(setup, name)
        recipe = Recipe(method="single", primary=name, phases=(Phase(shares={name: 1.0}),))
        final = train_once(alone, recipe, seed)
        predictions |= final.predictions
        scores["report"][name], scores["select"][name] = final.record.report, final.record.select
        parts.append((final.record.training, alone.single_run_work))
    work = sum(part.x * unit for part, unit in parts)
    names = ("batches", "examples", "tokens", "evaluations", "evaluated_examples", "seconds")
    spent = Spent(
        x=work / setup.single_run_work, **{name: sum(getattr(part, name) for part, _ in parts) for name in names}
    )
    return _final(setup, scores, predictions, spent, ())


def _alone(setup: Setup, name: str) -> Setup:
    """A task by itself, trained as it would be: what was not asked for otherwise is the default for a task of its size."""
    task, kind = setup.suite.tasks[name], setup.model.kind
    usual = training_settings(kind, length_card(setup.suite), {}, {}, "train")
    asked = {field: value for field, value in setup.train if value != getattr(usual, field)}
    suite = replace(setup.suite, tasks={name: task}, primary=name, goal="primary")
    model = setup.model.model_copy(update={"kind": kind})
    return Setup(suite, model, training_settings(kind, task.card, {}, asked, "train"))


def _final(
    setup: Setup,
    scores: dict[str, dict[str, dict[str, float]]],
    predictions: dict[str, Any],
    spent: Spent,
    history: tuple[Evaluation, ...],
) -> Final:
    suite = setup.suite

    def mean(split: str) -> float:
        return fmean(found[suite.tasks[name].metric] for name, found in scores[split].items())

    record = FinalRecord(
        score=mean("report"),
        select_score=mean("select"),
        report=scores["report"].get(suite.primary, {}),
        select=scores["select"].get(suite.primary, {}),
        tasks=scores["report"],
        training=spent,
        history=history,
    )
    return Final(record, predictions)


def scored_tasks(setup: Setup) -> list[str]:
    """The tasks whose *report* scores make the comparison's score."""
    suite = setup.suite
    return [
        name
        for name, task in suite.tasks.items()
        if "report" in task.splits and (suite.goal == "average" or name == suite.primary)
    ]
