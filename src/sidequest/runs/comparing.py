"""Compare methods over seeds: select, train, score on *report*, and say what the differences are worth."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sidequest.files import read_json, write_json
from sidequest.learning.meter import Meter
from sidequest.numerics.statistics import holm, mean_interval, paired_comparison, probability_best, verdict
from sidequest.runs.finals import train_once
from sidequest.runs.peak_memory import PeakMemory
from sidequest.runs.selecting import make_method, select
from sidequest.runs.setup import Setup
from sidequest.search.executors import run_jobs

BASELINE = "single"
CHANCE = "random-subset"
# What every comparison shows besides the methods asked for: without them a score means nothing.
ALWAYS = (BASELINE, "all", "size", CHANCE)


@dataclass(frozen=True)
class Job:
    """One method on one seed. budget: the most that its selection may cost, in x; None: no bound."""

    method: str
    settings: dict[str, Any]
    seed: int
    directory: Path
    budget: float | None = None


@dataclass(frozen=True)
class Outcome:
    """What one job gave. selection_x, training_x: its cost in single-task training runs. examples, tokens: what it trained on in
    both. stopped: whether its selection reached the budget. peak_memory: of the process, in bytes."""

    method: str
    seed: int
    score: float
    report: dict[str, float]
    select: dict[str, float]
    tasks: dict[str, dict[str, float]]
    auxiliaries: list[str]
    selection_x: float
    training_x: float
    seconds: float
    examples: int = 0
    tokens: int = 0
    stopped: bool = False
    peak_memory: int | None = None


@dataclass(frozen=True)
class Row:
    """A method over all seeds, against the baseline on the same seeds.

    low, high: the t interval of the mean; difference_low, difference_high: of the paired difference, bootstrap_low and
    bootstrap_high: the bootstrap's. p_value: corrected for the number of methods (Holm). effect_size: Hedges' g.
    probability_best: how often its mean is the highest when the seeds are drawn anew. Costs are means over seeds.
    """

    method: str
    scores: list[float]
    mean: float
    low: float
    high: float
    difference: float
    difference_low: float
    difference_high: float
    verdict: str
    x: float
    seconds: float
    chosen: dict[str, float] = field(default_factory=dict)
    bootstrap_low: float = math.nan
    bootstrap_high: float = math.nan
    p_value: float = math.nan
    effect_size: float = math.nan
    probability_best: float = math.nan
    selection_x: float = 0.0
    examples: float = 0.0
    tokens: float = 0.0
    peak_memory_mb: float | None = None
    stopped: float = 0.0


@dataclass(frozen=True)
class Comparison:
    suite: str
    primary: str
    metric: str
    seeds: list[int]
    majority: float | None
    rows: list[Row]
    outcomes: list[Outcome]
    budget: float | None = None

    @property
    def verdict(self) -> str:
        """The answer in words."""
        helps = [row for row in self.rows if row.verdict == "helps"]
        if helps:
            best = max(helps, key=lambda row: row.difference)
            return f"auxiliary tasks help: {best.method} is {best.difference:+.3f} {self.metric} against {BASELINE}"
        return f"no auxiliary helps: no method beats {BASELINE} beyond the noise of {len(self.seeds)} seeds"

    def to_json(self) -> dict[str, Any]:
        plain = {k: v for k, v in vars(self).items() if k not in ("rows", "outcomes")}
        return plain | {
            "verdict": self.verdict,
            "rows": [vars(row) for row in self.rows],
            "outcomes": [vars(outcome) for outcome in self.outcomes],
        }


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
    common = Setup(setup.suite, setup.model, setup.train, setup.tuning)  # without what this process has already loaded
    outcomes: list[Outcome] = []

    def run(some: list[Job]) -> None:
        found: dict[int, Outcome] = {}
        for index, outcome in run_jobs(run_job, common, some, workers):
            found[index] = outcome
            if on_done is not None:
                on_done(len(outcomes) + len(found), total, outcome)
        outcomes.extend(found[index] for index in range(len(some)))

    run(jobs)
    if last:
        sizes = {seed: _usual_size(outcomes, seed, {*methods} - {*ALWAYS}) for seed in seeds}
        run([Job(CHANCE, {"size": sizes[s]}, s, directory / CHANCE / f"seed-{s}", budget) for s in seeds])
    comparison = summarise(setup, outcomes, list(wanted), list(seeds), budget)
    write_json(directory / "comparison.json", comparison.to_json())
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

    plain = ("method", "seed", "score", "auxiliaries", "selection_x", "training_x", "seconds", "examples", "tokens")
    columns: dict[str, list[Any]] = {"primary": [primary] * len(outcomes)}
    columns |= {name: [getattr(outcome, name) for outcome in outcomes] for name in (*plain, "stopped", "peak_memory")}
    for metric in sorted({name for outcome in outcomes for name in outcome.report}):
        columns[f"report.{metric}"] = [outcome.report.get(metric) for outcome in outcomes]
        columns[f"select.{metric}"] = [outcome.select.get(metric) for outcome in outcomes]
    table = pa.table(columns)
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path)


def run_job(setup: Setup, job: Job) -> Outcome:
    """Select and train for one method and seed, or read what an earlier call left."""
    import torch

    torch.set_num_threads(1)
    start = time.perf_counter()
    with PeakMemory() as memory:
        recipe = select(
            setup, job.method, settings=job.settings, seed=job.seed, directory=job.directory, budget=job.budget
        )
        scores_path = job.directory / "scores.json"
        data = read_json(scores_path) if scores_path.exists() else None
        trained = None if data is not None else train_once(setup, recipe, job.seed, job.directory)
    if data is None:
        assert trained is not None
        data = trained | {"seconds": time.perf_counter() - start, "peak_memory": memory.peak}
        write_json(scores_path, data)
    training = Meter.from_json(data["meter"]).cost(setup.single_run_work)
    return Outcome(
        method=job.method,
        seed=job.seed,
        score=data["score"],
        report=data["report"],
        select=data["select"],
        tasks=data["tasks"],
        auxiliaries=sorted(recipe.auxiliaries),
        selection_x=recipe.cost.x,
        training_x=data["training_x"],
        seconds=data["seconds"],
        examples=recipe.cost.examples + training.examples,
        tokens=recipe.cost.tokens + training.tokens,
        stopped=bool(recipe.provenance.get("stopped_by_budget", False)),
        peak_memory=data.get("peak_memory"),
    )


def summarise(
    setup: Setup, outcomes: list[Outcome], methods: list[str], seeds: list[int], budget: float | None = None
) -> Comparison:
    """Means, intervals and paired differences against single-task training."""
    from sidequest.tasks.majority import majority_score

    def scores(method: str) -> list[float]:
        found = {outcome.seed: outcome.score for outcome in outcomes if outcome.method == method}
        return [found[seed] for seed in seeds]

    others = [method for method in methods if method != BASELINE]
    compared = {method: paired_comparison(scores(method), scores(BASELINE)) for method in methods}
    # Corrected for many comparisons: where nothing helps, *any* claim that something does appears at the stated rate.
    corrected = dict(zip(others, holm([compared[method].p_value for method in others]), strict=True)) if others else {}
    best = probability_best({method: scores(method) for method in methods})
    rows = []
    for method in methods:
        of_method = [outcome for outcome in outcomes if outcome.method == method]
        mean = mean_interval(scores(method))
        paired = compared[method]
        words = "baseline" if method == BASELINE else verdict(paired.mean, corrected[method], len(seeds))
        rows.append(
            Row(
                method=method,
                scores=scores(method),
                mean=mean.mean,
                low=mean.low,
                high=mean.high,
                difference=paired.mean,
                difference_low=paired.low,
                difference_high=paired.high,
                verdict=words,
                x=_mean(outcome.selection_x + outcome.training_x for outcome in of_method),
                seconds=_mean(outcome.seconds for outcome in of_method),
                chosen={
                    name: sum(name in outcome.auxiliaries for outcome in of_method) / len(of_method)
                    for name in setup.suite.candidates
                },
                bootstrap_low=paired.bootstrap_low,
                bootstrap_high=paired.bootstrap_high,
                p_value=float(corrected.get(method, math.nan)),
                effect_size=paired.effect_size,
                probability_best=best[method],
                selection_x=_mean(outcome.selection_x for outcome in of_method),
                examples=_mean(outcome.examples for outcome in of_method),
                tokens=_mean(outcome.tokens for outcome in of_method),
                peak_memory_mb=max((o.peak_memory / 1e6 for o in of_method if o.peak_memory is not None), default=None),
                stopped=_mean(outcome.stopped for outcome in of_method),
            )
        )
    task = setup.suite.tasks[setup.suite.primary]
    metric = "mean score" if setup.suite.goal == "average" else task.metric
    majority = None if setup.suite.goal == "average" else majority_score(setup.suite.tasks[setup.suite.primary])
    return Comparison(setup.suite.name, setup.suite.primary, metric, seeds, majority, rows, outcomes, budget)


def _mean(values: Iterable[float]) -> float:
    return statistics.fmean(values)
