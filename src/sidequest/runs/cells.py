"""A cell of a comparison: one method on one seed, selected, trained and scored in a directory of its own."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sidequest.errors import SettingsError
from sidequest.recipe import Recipe
from sidequest.records.comparisons import Outcome
from sidequest.records.runs import Spent
from sidequest.runs.finals import Final, train_once
from sidequest.runs.peak_memory import PeakMemory
from sidequest.runs.predictions import PREDICTIONS, write_predictions
from sidequest.runs.selecting import select
from sidequest.runs.setup import Setup


@dataclass(frozen=True)
class Job:
    """One method on one seed. budget: the most that its selection may cost, in x; None: no bound."""

    method: str
    settings: dict[str, Any]
    seed: int
    directory: Path
    budget: float | None = None


def run_job(setup: Setup, job: Job) -> Outcome:
    """Select and train for one method and seed, or read what an earlier call left."""
    start = time.perf_counter()
    with PeakMemory() as memory:
        recipe = select(
            setup, job.method, settings=job.settings, seed=job.seed, directory=job.directory, budget=job.budget
        )
        if (done := finished(job.directory)) is not None:
            return done
        final = train_once(setup, recipe, job.seed, job.directory)
    outcome = _outcome(job, recipe, final, time.perf_counter() - start, memory.peak)
    write_predictions(job.directory / PREDICTIONS, final.predictions)
    outcome.write(job.directory)
    return outcome


def finished(directory: Path) -> Outcome | None:
    """The outcome of a cell that is done; one that is damaged or lacks its predictions is made again, from the caches."""
    if not (directory / PREDICTIONS).is_file():
        return None
    try:
        return Outcome.read_if_there(directory / Outcome.FILE)
    except SettingsError:
        return None


def _outcome(job: Job, recipe: Recipe, final: Final, seconds: float, peak_memory: int | None) -> Outcome:
    record = final.record
    return Outcome(
        method=job.method,
        seed=job.seed,
        score=record.score,
        select_score=record.select_score,
        report=record.report,
        select=record.select,
        tasks=record.tasks,
        auxiliaries=sorted(recipe.auxiliaries),
        selection=Spent.of(recipe.cost),
        training=record.training,
        seconds=seconds,
        stopped="stopped_by_budget" in recipe.provenance,
        peak_memory=peak_memory,
        history=record.history,
    )
