"""Final trainings: a recipe trained once and scored on *report*, kept by content so that nobody pays for it twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sidequest.files import digest, read_json, write_json
from sidequest.learning.fit import kept_score
from sidequest.methods.base import Plan
from sidequest.recipe import Recipe
from sidequest.runs.setup import Setup
from sidequest.runs.training import Trained, own_weights, train_recipe
from sidequest.search.trials import TrialCache, TrialResult, plan_key


def train_once(setup: Setup, recipe: Recipe, seed: int, run: Path | None = None) -> dict[str, Any]:
    """Train and score; the same phases and seed are trained once, whichever method asked for them.

    run: the directory of the recipe's run. A method that has trained the model itself is scored as it stands: its cost is in the
        selection.
    """
    if run is not None and (own := own_weights(run, recipe, seed)) is not None:
        return _scores(setup, train_recipe(setup, recipe, seed, trained=own))
    facts = setup.facts(recipe.tasks)
    plan = Plan(phases=recipe.phases, seed=seed)
    report = {name: task.fingerprints.get("report") for name, task in setup.suite.tasks.items()}
    used = setup.suite.tasks if setup.suite.goal == "average" else [setup.suite.primary]
    cache = TrialCache()
    key = digest([plan_key(plan, facts), [report[name] for name in used]])
    path = cache.directory.with_name("finals") / f"{key}.json"
    if path.exists():
        return read_json(path)
    trained = train_recipe(setup, recipe, seed)
    cache.put(plan_key(plan, facts), _as_trial(trained))
    data = _scores(setup, trained)
    write_json(path, data)
    return data


def _scores(setup: Setup, trained: Trained) -> dict[str, Any]:
    return {
        "score": _score(setup, trained),
        "report": trained.report,
        "select": trained.select,
        "tasks": trained.tasks,
        "training_x": trained.meter.cost(setup.single_run_work).x,
        "history": trained.history,
        "meter": trained.meter.to_json(),
    }


def _as_trial(trained: Trained) -> TrialResult:
    """A final training is also a trial, with the same score on *select*: a method may find it and not pay again."""
    trained.meter.trials = 1
    return TrialResult(kept_score(trained.history), trained.history, trained.meter)


def _score(setup: Setup, trained: Trained) -> float:
    metric = {name: task.metric for name, task in setup.suite.tasks.items()}
    if setup.suite.goal == "average":
        return sum(scores[metric[name]] for name, scores in trained.tasks.items()) / len(trained.tasks)
    return trained.report[metric[setup.suite.primary]]
