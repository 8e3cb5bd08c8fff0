"""The final model: train a recipe, evaluate on *report* once, export."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sidequest.errors import SettingsError
from sidequest.files import atomic_directory, digest
from sidequest.learning.checkpoints import Checkpoints
from sidequest.learning.fit import FitResult, fit, kept_score, score_of
from sidequest.learning.meter import Meter
from sidequest.learning.protocol import Learner
from sidequest.progress import Progress
from sidequest.recipe import Recipe
from sidequest.records.runs import Evaluation, ScoresRecord, Spent
from sidequest.runs.driver import TRAINED
from sidequest.runs.holding import holding
from sidequest.runs.setup import Setup
from sidequest.tasks.majority import majority_score
from sidequest.tasks.metrics import compute_all
from sidequest.tasks.resampling import row_interval
from sidequest.tasks.suite import Suite

if TYPE_CHECKING:
    from sidequest.models.saved import Calibration

# A temperature fits fewer rows by heart: where all of them are right it runs to the edge of what is tried.
FEWEST_TO_CALIBRATE = 20


@dataclass(frozen=True)
class Trained:
    """A final model, scored once.

    select, report: every metric of the primary; *select* has none if it was learned from. tasks: of the primary on *report*, and
    of all tasks when the goal is `average`.
    score, select_score: what the goal is, on *report* and on *select*. predictions: on *report*, by task.
    calibration: of the exported model's probabilities, if asked for. interval: of the primary's metric on *report*, at 95 % for
    other rows; only of a model that is exported.
    """

    select: dict[str, float]
    report: dict[str, float]
    tasks: dict[str, dict[str, float]]
    score: float
    select_score: float
    history: list[dict[str, Any]]
    meter: Meter
    majority: float | None
    predictions: dict[str, Any]
    calibration: Calibration | None = None
    interval: tuple[float, float] | None = None


def train_recipe(
    setup: Setup,
    recipe: Recipe,
    seed: int,
    *,
    directory: Path | None = None,
    trained: Path | None = None,
    progress: Progress | None = None,
    calibrate: bool = False,
    all_rows: bool = False,
) -> Trained:
    """Train on the recipe's phases; with a directory, export the model there and continue a killed training.

    The model exported is the best on *select* or the last (`train.keep`); *report* is evaluated once, at the end.

    Args:
        setup: The suite with the model and the training settings.
        recipe: The decision.
        seed: Decides initial weights, order and every draw.
        directory: Where the model goes.
        trained: Weights that the method itself has trained and saved (`Method.trains_model`); they are taken as they are.
        progress: Told of the batches trained.
        calibrate: Fit the temperature of the exported model's probabilities on *select*.
        all_rows: Learn from *select*, too (`Setup.with_all_rows`); it then has no scores. Where *select* says which moment
            of a training is kept, a training without it comes first, and the second ends there.
    """
    if all_rows:
        if calibrate:
            raise SettingsError("--calibrate needs rows that the model has not learned from; --all-rows leaves none")
        trained = None
    rows = len(setup.suite.tasks[setup.suite.primary].splits["select"])
    if calibrate and rows < FEWEST_TO_CALIBRATE:
        warnings.warn(
            f"--calibrate: select has {rows} row{'s' * (rows != 1)}, and a temperature that was fitted to fewer than "
            f"{FEWEST_TO_CALIBRATE} says little about other rows: its probabilities may be worse than before",
            stacklevel=2,
        )
    with holding(directory):
        return _train_recipe(setup, recipe, seed, directory, trained, calibrate, progress, all_rows)


def _train_recipe(
    setup: Setup,
    recipe: Recipe,
    seed: int,
    directory: Path | None,
    trained: Path | None,
    calibrate: bool,
    progress: Progress | None,
    all_rows: bool,
) -> Trained:
    if progress is not None:
        setup.family.progress = progress.encoding
    spent, ends = Meter(), None
    if all_rows:
        if setup.train.keep == "best":
            ends = _fit(setup, first := setup.learner(seed), recipe, seed, directory, "moment", progress).kept
            spent = first.meter
        setup = setup.with_all_rows()
    learner = setup.learner(seed)
    history: list[dict[str, Any]] = []
    if trained is not None:
        learner.load(trained)
    else:
        history = _fit(setup, learner, recipe, seed, directory, "training", progress, ends).history
    meter = Meter.from_json(learner.meter.to_json())  # what training cost, without the evaluations that follow
    meter.add(spent)
    suite, primary = setup.suite, setup.suite.primary
    scored = [
        name
        for name, task in suite.tasks.items()
        if "report" in task.splits and (suite.goal == "average" or name == primary)
    ]
    predictions = {name: learner.predict(name, "report") for name in scored}
    tasks = {name: _scores(suite, name, predictions[name]) for name in scored}
    select: dict[str, float] = {} if all_rows else learner.evaluate_all(primary, "select")
    if all_rows:
        history = []  # of scores on rows that were learned from
    scores = Trained(
        select=select,
        report=tasks[primary],
        tasks=tasks,
        score=sum(tasks[name][suite.tasks[name].metric] for name in scored) / len(scored),
        select_score=_select_score(learner, history, setup, all_rows),
        history=history,
        meter=meter,
        majority=majority_score(suite.tasks[primary]),
        predictions=predictions,
    )
    if directory is not None:
        with atomic_directory(directory / "model") as place:
            setup.family.export(learner.model, suite.tasks[primary], place)
            if calibrate:
                from sidequest.models.calibration import calibrate as fit_temperature

                fitted = fit_temperature(setup.family, learner.model, suite.tasks[primary], place)
                scores = replace(scores, calibration=fitted)
        task = suite.tasks[primary]
        interval = row_interval(task.metric, predictions[primary], task.splits["report"].target, task.labels)
        scores = replace(scores, interval=interval)
        scores_record(setup, scores, seed).write(directory)
        for name in ("moment", "training"):
            _checkpoints(setup, recipe, seed, directory, name).remove()
    return scores


def _checkpoints(setup: Setup, recipe: Recipe, seed: int, directory: Path, name: str) -> Checkpoints:
    identity = digest([[phase.model_dump(mode="json") for phase in recipe.phases], seed, setup.facts(recipe.tasks)])
    return Checkpoints(directory / "checkpoints" / name, identity)


def _fit(
    setup: Setup,
    learner: Learner,
    recipe: Recipe,
    seed: int,
    directory: Path | None,
    name: str,
    progress: Progress | None,
    ends: Sequence[int] | None = None,
) -> FitResult:
    """With a directory, a killed fit of this name continues from its checkpoints there."""
    return fit(
        learner,
        recipe.phases,
        setup.train,
        seed,
        goal=setup.suite.goal,
        progress=None if progress is None else progress.training,
        checkpoints=None if directory is None else _checkpoints(setup, recipe, seed, directory, name),
        ends=ends,
    )


def _select_score(learner: Learner, history: list[dict[str, Any]], setup: Setup, all_rows: bool) -> float:
    if all_rows:
        return math.nan
    return kept_score(history, setup.train.keep) if history else score_of(learner, setup.suite.goal)


def _scores(suite: Suite, name: str, predictions: Any) -> dict[str, float]:
    task = suite.tasks[name]
    return compute_all(task.metrics, predictions, task.splits["report"].target, task.labels)


def scores_record(setup: Setup, trained: Trained, seed: int) -> ScoresRecord:
    return ScoresRecord(
        seed=seed,
        select=trained.select,
        report=trained.report,
        tasks=trained.tasks,
        history=tuple(Evaluation(**entry) for entry in trained.history),
        training=Spent.of(trained.meter.cost(setup.single_run_work), trained.meter.seconds),
        majority=trained.majority,
        interval=trained.interval,
    )


def own_weights(run: Path, recipe: Recipe, seed: int) -> Path | None:
    """The weights that a run's method trained itself, if it did and the seed is the run's."""
    saved = run / TRAINED
    return saved if saved.is_dir() and seed == recipe.provenance.get("seed") else None
