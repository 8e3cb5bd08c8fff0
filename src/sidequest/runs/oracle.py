"""The oracle: train every subset of the candidates, and keep what each is worth as a truth table."""

from __future__ import annotations

import itertools
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sidequest.errors import SettingsError, WorldError, end_if_all_would_fail
from sidequest.formatting import fixed
from sidequest.progress import Progress
from sidequest.recipe import Phase, Recipe
from sidequest.runs.device import check_device
from sidequest.runs.finals import FinalRecord, train_once
from sidequest.runs.luggage import Luggage
from sidequest.runs.setup import Setup
from sidequest.runs.truth import SubsetScores, TruthTable, named
from sidequest.search.executors import Executor, WorkerJournal, as_executor, run_jobs
from sidequest.store import sweep

MOST_CANDIDATES = 8  # 256 subsets; beyond that a sample
SAMPLE = 256
SHOWN = 10  # failed trainings that an error names
SETS = (0, 1)  # batches of an auxiliary for one of the primary


@dataclass(frozen=True)
class SubsetJob:
    auxiliaries: tuple[str, ...]
    seed: int


@dataclass(frozen=True)
class SubsetResult:
    report: float
    select: float
    x: float
    untrained: bool


def oracle(
    setup: Setup,
    seeds: Sequence[int],
    path: Path,
    *,
    command: str,
    suite: str,
    sample: int | None = None,
    shares: Sequence[int] = SETS,
    workers: int | Executor = 1,
    progress: Progress | None = None,
) -> TruthTable:
    """Every subset on every seed. Each training is kept when it ends, so the same call continues after a kill.

    suite: the suite's name or file, as the user gave it. sample: this many random subsets instead of all. shares: the
    batches that each auxiliary may have for one of the primary.
    """
    candidates = tuple(sorted(setup.suite.candidates))
    if not candidates:
        raise SettingsError(f"suite {setup.suite.name!r} has no candidates: there is nothing to choose")
    subsets = some_subsets(candidates, sample) if tuple(shares) == SETS else mixtures(candidates, shares)
    jobs = [SubsetJob(auxiliaries, seed) for seed in seeds for auxiliaries in subsets]
    results: dict[SubsetJob, SubsetResult] = {}
    failed: dict[str, str] = {}
    executor = as_executor(workers)
    check_device(executor)
    sweep()
    journal = WorkerJournal(path.parent, only_trouble=True)
    setup.prepare(progress, executor, journal)
    labels = [f"{{{named(job.auxiliaries)}}} seed {job.seed}" for job in jobs]
    running = None if progress is None else progress.running
    common = Luggage.of(setup, executor)
    ended: Iterator[tuple[int, SubsetResult | str]] = run_jobs(
        run_subset, common, jobs, executor, labels=labels, failed=_failed, journal=journal, running=running
    )
    for index, result in ended:
        if isinstance(result, str):
            failed[labels[index]] = result
            continue
        results[jobs[index]] = result
        if progress is not None:
            label = f"{labels[index]}: {fixed(result.report)}"
            progress.job(len(results), len(jobs), label, result, sum(each.x for each in results.values()))
    if failed:
        raise _missing(failed, len(jobs))
    table = TruthTable(
        command=command,
        suite=_relative(suite, path),
        primary=setup.suite.primary,
        metric=setup.suite.tasks[setup.suite.primary].metric,
        candidates=candidates,
        seeds=tuple(seeds),
        shares=tuple(shares),
        complete=len(subsets) == len(shares) ** len(candidates),
        model=setup.model.model_dump(mode="json"),
        train=setup.train.model_dump(mode="json"),
        data={name: dict(task.fingerprints) for name, task in sorted(setup.suite.tasks.items())},
        rows={n: {s: len(rows) for s, rows in task.splits.items()} for n, task in sorted(setup.suite.tasks.items())},
        subsets=tuple(_over_seeds(auxiliaries, seeds, results) for auxiliaries in subsets),
        untrained=sum(result.untrained for result in results.values()),
    )
    table.write(path)
    return table


def some_subsets(candidates: Sequence[str], sample: int | None = None) -> list[tuple[str, ...]]:
    """All subsets, small ones first; or the empty, the full and random ones, drawn by the names of the candidates alone."""
    if sample is None and len(candidates) <= MOST_CANDIDATES:
        sizes = range(len(candidates) + 1)
        return [chosen for size in sizes for chosen in itertools.combinations(sorted(candidates), size)]
    wanted = min(sample or SAMPLE, 2 ** len(candidates))
    names = np.array(sorted(candidates))
    rng = np.random.default_rng(list("\0".join(names).encode()))
    subsets: dict[tuple[str, ...], None] = {(): None, tuple(names.tolist()): None}
    while len(subsets) < wanted:
        subsets[tuple(names[rng.random(len(names)) < 0.5].tolist())] = None
    return sorted(subsets, key=lambda chosen: (len(chosen), chosen))


def mixtures(candidates: Sequence[str], shares: Sequence[int]) -> list[tuple[str, ...]]:
    """Every combination of shares, each auxiliary as often as its share; few batches first."""
    names = sorted(candidates)
    sets = [
        tuple(name for name, share in zip(names, each, strict=True) for _ in range(share))
        for each in itertools.product(sorted(shares), repeat=len(names))
    ]
    return sorted(sets, key=lambda chosen: (len(chosen), chosen))


def run_subset(luggage: Luggage, job: SubsetJob) -> SubsetResult | str:
    """Train one subset on one seed, or find it."""
    setup = luggage.unpacked()
    primary = setup.suite.primary
    phase = Phase(shares={primary: 1, **Counter(job.auxiliaries)})
    recipe = Recipe(method="oracle", primary=primary, phases=(phase,))
    final = train_once(setup, recipe, job.seed).record
    return SubsetResult(final.score, final.select_score, final.training.x, stayed(setup, final))


def stayed(setup: Setup, final: FinalRecord) -> bool:
    """Whether what was kept is the model as it was before any training: its read-out was best on *select*."""
    before = [each.score for each in final.history if each.batches == 0]
    trained = [each.score for each in final.history if each.batches > 0]
    return setup.train.keep == "best" and bool(before) and max(trained, default=-np.inf) < max(before)


def _failed(job: SubsetJob, error: Exception) -> str:
    end_if_all_would_fail(error)
    return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"


def _missing(failed: dict[str, str], total: int) -> WorldError:
    """All other trainings have ended and are kept: a failure, as in a comparison, and no bad input."""
    shown = "\n".join(f"- {label}: {error}" for label, error in list(failed.items())[:SHOWN])
    more = f"\n- and {len(failed) - SHOWN} more" if len(failed) > SHOWN else ""
    return WorldError(
        f"{len(failed)} of {total} trainings failed, so there is no table. The others are kept; the same command repeats "
        f"these alone:\n{shown}{more}"
    )


def _over_seeds(
    auxiliaries: tuple[str, ...], seeds: Sequence[int], results: dict[SubsetJob, SubsetResult]
) -> SubsetScores:
    found = [results[SubsetJob(auxiliaries, seed)] for seed in seeds]
    return SubsetScores(
        auxiliaries=auxiliaries,
        report=tuple(round(result.report, 6) for result in found),
        select=tuple(round(result.select, 6) for result in found),
        x=round(sum(result.x for result in found) / len(found), 4),
    )


def _relative(suite: str, table: Path) -> str:
    """A suite file is named relative to the table, so that both can move together."""
    return os.path.relpath(Path(suite).resolve(), table.resolve().parent) if Path(suite).exists() else suite
