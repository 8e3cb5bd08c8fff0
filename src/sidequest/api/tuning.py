"""Tuning the primary alone, for Python: once, shared by everything that is then trained."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sidequest.api.suites import as_setup
from sidequest.errors import SettingsError
from sidequest.paths import what_is_at
from sidequest.progress import Progress, show_progress
from sidequest.runs import tuning
from sidequest.runs.tuning import TRAININGS, Tuning
from sidequest.settings import brief

if TYPE_CHECKING:
    from sidequest.model_settings import ModelSettings
    from sidequest.runs.setup import Setup
    from sidequest.search.executors import Executor
    from sidequest.settings import TrainSettings
    from sidequest.tasks.suite import Suite as LoadedSuite

MOST_TRAININGS = 10_000  # more is a slip
TuneLike = int | str | Path | Tuning


def tune(
    suite: str | Path | LoadedSuite | Setup,
    trainings: int = TRAININGS,
    *,
    model: str | Mapping[str, Any] | ModelSettings | None = None,
    train: Mapping[str, Any] | TrainSettings | None = None,
    seed: int = 0,
    workers: int | Executor = 1,
    progress: bool | Progress = True,
    allow_code: bool = False,
) -> Tuning:
    """Tune the primary alone: which rate, length and other settings are best on *select*.

    What was found for the same data and settings is found again without any training.

    Args:
        suite: A `Suite`, the path of a suite file, or a `Setup`.
        trainings: How many the tuning may take, 2 at least.
        model: A kind (`"pooled"`), or settings as a dictionary or an object; what is set here is not tuned.
        train: Settings of the training, as a dictionary or an object; what is set here, or in the suite, is not tuned.
        seed: Decides the splits and what is tried.
        workers: Trainings at once, or an `Executor`.
        progress: Bars on the error stream, or a listener of your own.
        allow_code: Whether a suite file may name code that builds the model; what `model` names always may.

    Returns:
        What was tried and found, to look at (`.chosen`, `.tried`), to keep (`.write(path)`) and to give to `select`, `compare`
        or a decision's `train` as `tune=`.

    Raises:
        SidequestError: Something that was given is wrong.
    """
    return _tune(as_setup(suite, model, train, allow_code=allow_code), trainings, seed, workers, progress)


def tuned(setup: Setup, tune: TuneLike | None, workers: int | Executor = 1, progress: bool | Progress = True) -> Setup:
    """The setup with tuned settings. tune: over how many trainings, what `tune` gave back, or the file of it."""
    if tune is None:
        return setup
    if isinstance(tune, int) and not isinstance(tune, bool):
        found = _tune(setup, tune, 0, workers, progress)
    elif isinstance(tune, Tuning):
        found = tune
    elif isinstance(tune, str | os.PathLike) and what_is_at(Path(tune)) == "file":
        found = Tuning.read(Path(tune))
    else:
        raise SettingsError(f"tune: a number of trainings, a tuning or the file of one; found {brief(tune)}")
    for warning in found.edges_met:
        warnings.warn(f"{warning}: the best may lie beyond it", stacklevel=3)
    return found.apply(setup)


def _tune(setup: Setup, trainings: int, seed: int, workers: int | Executor, progress: bool | Progress) -> Tuning:
    if not isinstance(trainings, int) or isinstance(trainings, bool) or not 2 <= trainings <= MOST_TRAININGS:
        raise SettingsError(f"a tuning takes 2 to {MOST_TRAININGS} trainings, found {brief(trainings)}")
    if isinstance(progress, Progress) or not progress:
        listener = progress if isinstance(progress, Progress) else None
        return tuning.tune(setup, trainings, seed=seed, progress=listener, workers=workers)
    with show_progress() as shown:
        return tuning.tune(setup, trainings, seed=seed, progress=shown, workers=workers)
