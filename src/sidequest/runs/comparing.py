"""Compare methods over seeds: select, train, score on *report*, and say what the differences are worth."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sidequest.files import digest, read_json, write_json
from sidequest.methods.base import Plan
from sidequest.numerics.statistics import holm, mean_interval, paired_comparison, verdict
from sidequest.recipe import Recipe
from sidequest.runs.selecting import make_method, select
from sidequest.runs.setup import Setup
from sidequest.runs.training import Trained, own_weights, train_recipe
from sidequest.search.executors import run_jobs
from sidequest.search.trials import TrialCache, TrialResult, plan_key

BASELINE = "single"
# What every comparison shows besides the methods asked for: without them a score means nothing.
ALWAYS = ("single", "all", "size", "random-subset")


@dataclass(frozen=True)
class Job:
    """One method on one seed."""

    method: str
    settings: dict[str, Any]
    seed: int
    directory: Path


@dataclass(frozen=True)
class Outcome:
    """What one job gave. `selection_x` and `training_x` are its cost in single-task training runs."""

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


@dataclass(frozen=True)
class Row:
    """A method over all seeds, against the baseline on the same seeds."""

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


@dataclass(frozen=True)
class Comparison:
    suite: str
    primary: str
    metric: str
    seeds: list[int]
    majority: float | None
    rows: list[Row]
    outcomes: list[Outcome]

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
    workers: int = 1,
    on_done: Callable[[int, int, Outcome], None] | None = None,
) -> Comparison:
    """Every method on every seed, each in `directory/METHOD/seed-N`; what is done already is not done again.

    methods: settings by method name; the baselines of `ALWAYS` are added.
    """
    wanted = {name: methods.get(name, {}) for name in dict.fromkeys([*ALWAYS, *methods])}
    if not setup.suite.candidates:
        wanted = {BASELINE: {}}
    for name, settings in wanted.items():
        make_method(name, settings)  # refuse bad settings before any work
    jobs = [
        Job(name, settings, seed, directory / name / f"seed-{seed}")
        for seed in seeds
        for name, settings in wanted.items()
    ]
    common = Setup(setup.suite, setup.model, setup.train)  # without what this process has already loaded
    outcomes: list[Outcome | None] = [None] * len(jobs)
    for count, (index, outcome) in enumerate(run_jobs(run_job, common, jobs, workers), start=1):
        outcomes[index] = outcome
        if on_done is not None:
            on_done(count, len(jobs), outcome)
    comparison = summarise(setup, [outcome for outcome in outcomes if outcome is not None], list(wanted), list(seeds))
    write_json(directory / "comparison.json", comparison.to_json())
    return comparison


def run_job(setup: Setup, job: Job) -> Outcome:
    """Select and train for one method and seed, or read what an earlier call left."""
    import torch

    torch.set_num_threads(1)
    start = time.perf_counter()
    recipe = select(setup, job.method, settings=job.settings, seed=job.seed, directory=job.directory)
    scores_path = job.directory / "scores.json"
    if scores_path.exists():
        data = read_json(scores_path)
    else:
        data = _train(setup, recipe, job.seed, job.directory) | {"seconds": time.perf_counter() - start}
        write_json(scores_path, data)
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
    )


def _train(setup: Setup, recipe: Recipe, seed: int, run: Path) -> dict[str, Any]:
    """Train and score; the same phases and seed are trained once, whichever method asked for them.

    A method that has trained the model itself is scored as it stands: its cost is in the selection.
    """
    if (own := own_weights(run, recipe, seed)) is not None:
        return _scores(setup, train_recipe(setup, recipe, seed, trained=own))
    facts = setup.facts(recipe.tasks)
    plan = Plan(phases=recipe.phases, seed=seed)
    report = {name: task.fingerprints.get("report") for name, task in setup.suite.tasks.items()}
    used = setup.suite.tasks if setup.suite.goal == "average" else [setup.suite.primary]
    cache = TrialCache()
    path = (
        cache.directory.with_name("finals") / f"{digest([plan_key(plan, facts), [report[name] for name in used]])}.json"
    )
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
    return TrialResult(max(entry["score"] for entry in trained.history), trained.history, trained.meter)


def _score(setup: Setup, trained: Trained) -> float:
    metric = {name: task.metric for name, task in setup.suite.tasks.items()}
    if setup.suite.goal == "average":
        return sum(scores[metric[name]] for name, scores in trained.tasks.items()) / len(trained.tasks)
    return trained.report[metric[setup.suite.primary]]


def summarise(setup: Setup, outcomes: list[Outcome], methods: list[str], seeds: list[int]) -> Comparison:
    """Means, intervals and paired differences against single-task training."""
    from sidequest.runs.training import majority_score

    def scores(method: str) -> list[float]:
        found = {outcome.seed: outcome.score for outcome in outcomes if outcome.method == method}
        return [found[seed] for seed in seeds]

    others = [method for method in methods if method != BASELINE]
    compared = {method: paired_comparison(scores(method), scores(BASELINE)) for method in methods}
    # Corrected for many comparisons: where nothing helps, *any* claim that something does appears at the stated rate.
    corrected = dict(zip(others, holm([compared[method].p_value for method in others]), strict=True)) if others else {}
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
                x=sum(outcome.selection_x + outcome.training_x for outcome in of_method) / len(of_method),
                seconds=sum(outcome.seconds for outcome in of_method) / len(of_method),
                chosen={
                    name: sum(name in outcome.auxiliaries for outcome in of_method) / len(of_method)
                    for name in setup.suite.candidates
                },
            )
        )
    task = setup.suite.tasks[setup.suite.primary]
    metric = "mean score" if setup.suite.goal == "average" else task.metric
    majority = None if setup.suite.goal == "average" else majority_score(setup)
    return Comparison(setup.suite.name, setup.suite.primary, metric, seeds, majority, rows, outcomes)
