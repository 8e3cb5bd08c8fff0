"""A cell of a comparison: one method on one seed, selected, trained and scored in a directory of its own."""

from __future__ import annotations

import math
import re
import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sidequest.errors import RunMismatch, SettingsError, SidequestError, end_if_all_would_fail
from sidequest.files import digest, write_atomically
from sidequest.methods.registry import MethodClass
from sidequest.recipe import Recipe
from sidequest.records.comparisons import MissingCell, Outcome
from sidequest.records.controls import CONTROLS
from sidequest.records.runs import RunRecord, Spent
from sidequest.runs.controls import Scored, run_control
from sidequest.runs.directory import differences
from sidequest.runs.finals import train_once
from sidequest.runs.peak_memory import PeakMemory
from sidequest.runs.predictions import PREDICTIONS, read_predictions, write_predictions
from sidequest.runs.selecting import make_method, select
from sidequest.runs.setup import Setup

FAILURE = "failure.txt"  # what a cell that failed by itself leaves: the whole traceback
LONGEST_NAME = 60


@dataclass(frozen=True)
class Job:
    """One method, or control, on one seed.

    budget: the most that its selection may cost, in x; None: no bound. selected: whether its recipe is in the directory already.
    source: where the method comes from, if it is not one that its name says; see `MethodChoice`.
    """

    method: str
    settings: dict[str, Any]
    seed: int
    directory: Path
    budget: float | None = None
    selected: bool = False
    source: str | MethodClass | None = None


def attempt(setup: Setup, job: Job) -> Outcome | MissingCell:
    """`run_job`; what fails by itself fails alone."""
    try:
        outcome = run_job(setup, job)
        if not math.isfinite(outcome.score):
            raise SidequestError(f"the score is {outcome.score}: the training diverged")
    except Exception as error:  # whatever it is, the other cells go on, and the whole of it is kept
        end_if_all_would_fail(error)
        return _failed(job, error)
    (job.directory / FAILURE).unlink(missing_ok=True)
    return outcome


def _failed(job: Job, error: Exception) -> MissingCell:
    write_atomically(job.directory / FAILURE, "".join(traceback.format_exception(error)).encode())
    known = isinstance(error, SidequestError)
    words = (str(error).splitlines() or [""])[0]
    return MissingCell(
        method=job.method,
        seed=job.seed,
        error=words if known else f"{type(error).__name__}: {words} (see {job.directory / FAILURE})",
    )


def run_job(setup: Setup, job: Job) -> Outcome:
    """Select and train for one method and seed, or read what an earlier call left."""
    start = time.perf_counter()
    with PeakMemory() as memory:
        if job.method in CONTROLS or (job.method == "single" and setup.suite.goal == "average"):
            if (done := finished(job.directory)) is not None:
                return done
            scored = run_control(setup, job.method, job.settings, job.seed, job.directory)
        else:
            recipe = _recipe(setup, job)
            if (done := finished(job.directory)) is not None:
                return done
            scored = Scored(train_once(setup, recipe, job.seed, job.directory), recipe)
    outcome = _outcome(job, scored, time.perf_counter() - start, memory.peak)
    write_predictions(job.directory / PREDICTIONS, scored.final.predictions)
    outcome.write(job.directory)
    return outcome


def _recipe(setup: Setup, job: Job) -> Recipe:
    if job.selected:
        return Recipe.read(job.directory / "recipe.json")
    method = job.source or job.method
    return select(setup, method, settings=job.settings, seed=job.seed, directory=job.directory, budget=job.budget)


def finished(directory: Path) -> Outcome | None:
    """The outcome of a cell that is done; one that is damaged or lacks its predictions is made again, from the caches."""
    try:
        read_predictions(directory / PREDICTIONS)
        return Outcome.read_if_there(directory / Outcome.FILE)
    except (SidequestError, ValueError):
        return None


def _outcome(job: Job, scored: Scored, seconds: float, peak_memory: int | None) -> Outcome:
    record, recipe = scored.final.record, scored.recipe
    return Outcome(
        method=job.method,
        seed=job.seed,
        score=record.score,
        select_score=record.select_score,
        report=record.report,
        select=record.select,
        tasks=record.tasks,
        auxiliaries=[] if recipe is None else sorted(recipe.auxiliaries),
        selection=Spent() if recipe is None else Spent.of(recipe.cost),
        training=record.training,
        seconds=seconds,
        stopped=recipe is not None and "stopped_by_budget" in recipe.provenance,
        peak_memory=peak_memory,
        history=record.history,
    )


# Where a cell is


def place_job(
    base: Path,
    setup: Setup,
    method: str,
    settings: dict[str, Any],
    seed: int,
    budget: float | None = None,
    source: str | MethodClass | None = None,
) -> Job:
    """A cell in its directory: `METHOD/seed-N`, or `METHOD/VARIANT/seed-N` where that holds the method with other settings.

    So nothing that is done stands in the way of a comparison that grows, and nothing is done twice: a run without a budget is
    found again for any budget that it did not reach. Runs on other data, or with another model or other training, are refused.
    """
    plain = settings if method in CONTROLS else make_method(source or method, settings).settings.model_dump(mode="json")
    bounded = plain if budget is None else {**plain, "budget": budget}
    wanted = {"method": method, **setup.provenance(method, bounded, seed)}
    own = base / method
    names = [own / f"seed-{seed}", own / variant(settings, budget) / f"seed-{seed}"]
    free = [directory for directory in names if not _is_other_run(directory, wanted)]
    for directory in dict.fromkeys([*names, *sorted(own.glob(f"*/seed-{seed}"))]):
        if _serves(directory, wanted, budget):
            return Job(method, settings, seed, directory, budget, selected=True, source=source)
    if not free:
        raise RunMismatch(f"{names[-1]}: holds another run; give another -o, or delete it")
    return Job(method, settings, seed, free[0], budget, source=source)


def _is_other_run(directory: Path, wanted: dict[str, Any]) -> bool:
    """Whether a directory holds the same method with other settings; anything else that is not wanted is refused."""
    run = RunRecord.read_if_there(directory / RunRecord.FILE)
    if run is None:
        if directory.is_file() or directory.parent.is_file():
            raise SettingsError(f"{directory}: cannot be a directory, a file is in its way")
        return False
    there = {"method": run.method, **run.facts}
    lines = differences(_without(there, "method_settings"), _without(wanted, "method_settings"))
    if lines:
        raise RunMismatch(f"{directory}: holds another run; give another -o, or delete it:\n" + "\n".join(lines))
    return there != wanted


def _serves(directory: Path, wanted: dict[str, Any], budget: float | None) -> bool:
    """Whether a finished run is what a run with the wanted facts would be: the same but for a budget that neither reached."""
    run = RunRecord.read_if_there(directory / RunRecord.FILE)
    if run is None or not (directory / "recipe.json").is_file():
        return False
    there = {"method": run.method, **run.facts}
    if _without_budget(there) != _without_budget(wanted):
        return False
    if there == wanted:
        return True
    recipe = Recipe.read(directory / "recipe.json")
    return "stopped_by_budget" not in recipe.provenance and (budget is None or recipe.cost.x < budget)


def _without_budget(facts: dict[str, Any]) -> dict[str, Any]:
    return {**facts, "method_settings": _without(facts["method_settings"], "budget")}


def _without(values: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in values.items() if key != name}


def variant(settings: dict[str, Any], budget: float | None = None) -> str:
    """A name for settings that a file system takes: `size=2,budget=20`, or a digest of what is long or strange."""
    named = [*sorted(settings.items()), *([] if budget is None else [("budget", f"{budget:g}")])]
    parts = [f"{key}={value}" for key, value in named]
    name = ",".join(parts)
    plain = len(name) <= LONGEST_NAME and re.fullmatch(r"[\w=,.+-]+", name) and not name.startswith("seed-")
    return name if plain else f"settings-{digest(parts)[:12]}"
