"""Compare methods over seeds: select, train, score on *report*, and say what the differences are worth."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

from sidequest.records.comparisons import Comparison, Outcome
from sidequest.runs.cells import Job, run_job
from sidequest.runs.selecting import make_method
from sidequest.runs.setup import Setup
from sidequest.runs.summarising import BASELINE, summarise
from sidequest.search.executors import run_jobs

CHANCE = "random-subset"
# What every comparison shows besides the methods asked for: without them a score means nothing.
ALWAYS = (BASELINE, "all", "size", CHANCE)


def compare(
    setup: Setup,
    methods: dict[str, dict[str, Any]],
    seeds: Sequence[int],
    directory: Path,
    *,
    budget: float | None = None,
    workers: int = 1,
    on_done: Callable[[int, int, Outcome], None] | None = None,
) -> Comparison:
    """Every method on every seed, each in `directory/METHOD/seed-N`; what is done already is not done again.

    methods: settings by method name; the baselines of `ALWAYS` are added. A random subset without a size of its own is as large
        as what the methods asked for chose on the same seed.
    budget: the most that a selection may cost, in x.
    """
    wanted = {name: methods.get(name, {}) for name in dict.fromkeys([*ALWAYS, *methods])}
    if not setup.suite.candidates:
        wanted = {BASELINE: {}}
    for name, settings in wanted.items():
        make_method(name, settings)  # refuse bad settings before any work
    last = [CHANCE] if CHANCE in wanted and "size" not in wanted[CHANCE] and {*methods} - {*ALWAYS} else []
    jobs = [
        Job(name, settings, seed, directory / name / f"seed-{seed}", budget)
        for seed in seeds
        for name, settings in wanted.items()
        if name not in last
    ]
    total = len(jobs) + len(last) * len(seeds)
    outcomes: list[Outcome] = []

    def run(some: list[Job]) -> None:
        done: dict[int, Outcome] = {}
        for index, outcome in run_jobs(run_job, setup, some, workers):
            done[index] = outcome
            if on_done is not None:
                on_done(len(outcomes) + len(done), total, outcome)
        outcomes.extend(done[index] for index in range(len(some)))

    run(jobs)
    if last:
        sizes = {seed: _usual_size(outcomes, seed, {*methods} - {*ALWAYS}) for seed in seeds}
        run([Job(CHANCE, {"size": sizes[s]}, s, directory / CHANCE / f"seed-{s}", budget) for s in seeds])
    comparison = summarise(setup, outcomes, list(wanted), list(seeds), budget)
    comparison.write(directory)
    write_outcomes(outcomes, setup.suite.primary, directory / "outcomes.parquet")
    return comparison


def _usual_size(outcomes: Sequence[Outcome], seed: int, methods: Collection[str]) -> int:
    """The median number of auxiliaries that these methods chose, at least one."""
    sizes = [len(outcome.auxiliaries) for outcome in outcomes if outcome.seed == seed and outcome.method in methods]
    return max(1, math.floor(statistics.median(sizes)))


def write_outcomes(outcomes: Sequence[Outcome], primary: str, path: Path) -> None:
    """One row per method and seed, for other tools."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    plain = ("method", "seed", "score", "auxiliaries", "seconds", "examples", "tokens", "stopped", "peak_memory")
    columns: dict[str, list[Any]] = {"primary": [primary] * len(outcomes)}
    columns |= {name: [getattr(outcome, name) for outcome in outcomes] for name in plain}
    columns["selection_x"] = [outcome.selection.x for outcome in outcomes]
    columns["training_x"] = [outcome.training.x for outcome in outcomes]
    for metric in sorted({name for outcome in outcomes for name in outcome.report}):
        columns[f"report.{metric}"] = [outcome.report.get(metric) for outcome in outcomes]
        columns[f"select.{metric}"] = [outcome.select.get(metric) for outcome in outcomes]
    table = pa.table(columns)
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path)
