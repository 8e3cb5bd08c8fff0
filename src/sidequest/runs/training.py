"""The final model: train a recipe, look at *report* once, export."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sidequest.files import write_json
from sidequest.learning.fit import Progress, fit
from sidequest.learning.meter import Meter
from sidequest.recipe import Recipe
from sidequest.runs.driver import TRAINED
from sidequest.runs.setup import Setup
from sidequest.tasks.majority import majority_score

READING = "reading.json"  # beside an exported model: how the user's files are read, so that `predict` reads them alike


@dataclass(frozen=True)
class Trained:
    """select and report: every metric of the primary (and of all tasks, by name, when the goal is `average`)."""

    select: dict[str, float]
    report: dict[str, float]
    tasks: dict[str, dict[str, float]]
    history: list[dict[str, Any]]
    meter: Meter
    majority: float | None

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "meter": self.meter.to_json()}


def train_recipe(
    setup: Setup,
    recipe: Recipe,
    seed: int,
    *,
    directory: Path | None = None,
    trained: Path | None = None,
    progress: Progress | None = None,
) -> Trained:
    """Train on the recipe's phases; with a directory, export the model there and continue a killed training.

    trained: weights that the method itself has trained and saved (`Method.trains_model`); they are taken as they are.
    The model exported is the best on *select*; *report* is looked at once, at the end, and decides nothing.
    """
    learner = setup.learner(seed)
    checkpoints = None if directory is None else directory / "checkpoints" / "training"
    history: list[dict[str, Any]] = []
    if trained is not None:
        learner.load(trained)
    else:
        history = fit(
            learner,
            recipe.phases,
            setup.train,
            seed,
            goal=setup.suite.goal,
            progress=progress,
            checkpoints=checkpoints,
        ).history
    meter = Meter.from_json(learner.meter.to_json())  # what training cost, without the looks that follow
    suite, primary = setup.suite, setup.suite.primary
    tasks = {
        name: learner.evaluate_all(name, "report")
        for name, task in suite.tasks.items()
        if "report" in task.splits and (suite.goal == "average" or name == primary)
    }
    scores = Trained(
        select=learner.evaluate_all(primary, "select"),
        report=tasks[primary],
        tasks=tasks,
        history=history,
        meter=meter,
        majority=majority_score(suite.tasks[primary]),
    )
    if directory is not None:
        setup.family.export(learner.model, suite.tasks[primary], directory / "model")
        write_json(directory / "model" / READING, suite.tasks[primary].inputs)
        write_json(directory / "scores.json", scores.to_json())
        if checkpoints is not None and checkpoints.exists():
            shutil.rmtree(checkpoints)
    return scores


def own_weights(run: Path, recipe: Recipe, seed: int) -> Path | None:
    """The weights that a run's method trained itself, if it did and the seed is the run's."""
    saved = run / TRAINED
    return saved if saved.is_dir() and seed == recipe.provenance.get("seed") else None
