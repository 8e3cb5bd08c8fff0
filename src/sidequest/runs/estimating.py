"""What a run will cost, before it starts: in batches and x by counting, in minutes by a short measurement on this machine.

A method is really run, on a learner that only counts (`simulation/dry.py`); a method that searches may take another way on real
scores, so its count is an estimate. The length of a training is exact, but for early stopping, which only shortens it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from sidequest.learning.fit import fit
from sidequest.learning.meter import Meter
from sidequest.methods.baselines import one_to_one
from sidequest.methods.registry import MethodChoice
from sidequest.progress import duration
from sidequest.recipe import Recipe
from sidequest.runs.driver import check_requirements, run_method
from sidequest.runs.oracle import some_subsets
from sidequest.runs.setup import Setup
from sidequest.search.trials import LocalTrials
from sidequest.simulation.dry import DryLearner
from sidequest.tasks.examples import Examples
from sidequest.threads import one_torch_thread

if TYPE_CHECKING:
    from sidequest.learning.torch.learner import TorchLearner

SAMPLE_BATCHES = 4  # of train rows per task: enough to see how fast a batch is
SECONDS_PER_TASK = 1.0  # spent on measuring


@dataclass(frozen=True)
class Speed:
    """Seconds on this machine, by task: of a training batch, and of an evaluated row; and to encode all texts, once."""

    batch: dict[str, float]
    row: dict[str, float]
    encoding: float

    def of(self, meter: Meter) -> float:
        """How long the work that a meter counted takes in one process, without the encoding."""
        return sum(
            count.batches * self.batch[name] + count.evaluated_examples * self.row[name]
            for name, count in meter.tasks.items()
        )


@dataclass
class CostEstimate:
    """Parts of the work, each with its count; what the same part costs is multiplied by `times`."""

    setup: Setup
    workers: int = 1
    notes: list[str] = field(default_factory=list)
    parts: list[tuple[str, int, Meter]] = field(default_factory=list)

    def add(self, label: str, meter: Meter, times: int = 1) -> None:
        if times:
            self.parts.append((label, times, meter))

    @property
    def total(self) -> Meter:
        whole = Meter()
        for _, times, meter in self.parts:
            for _ in range(times):
                whole.add(meter)
        return whole

    @property
    def x(self) -> float:
        return self.total.work / self.setup.single_run_work

    def lines(self, speed: Speed | None = None) -> list[str]:
        """For people. Without a measured speed, without minutes."""
        out = ["dry run: this is what it would cost"]
        for label, times, meter in self.parts:
            work = f"{_batches(meter):,} batches, {meter.work / self.setup.single_run_work:.1f}x"
            out.append(f"  {label}: {work}" + (f", {times} times" if times > 1 else ""))
        out.append(f"in all: {_batches(self.total):,} batches, {self.x:.1f}x" + (", at most" if self.parts else ""))
        if speed is not None:
            working = speed.of(self.total) / self.workers
            once = f", {duration(speed.encoding)} of it to encode texts once" if speed.encoding >= 1 else ""
            rate = ", ".join(f"{name} {1 / seconds:,.3g}" for name, seconds in speed.batch.items())
            long = duration(working + speed.encoding)
            out.append(f"{long if long.startswith('less') else f'about {long}'} with {_processes(self.workers)}{once}")
            out.append(f"(measured here, batches of {self.setup.train.batch_size} per second: {rate})")
        return out + [f"note: {note}" for note in self.notes]


def estimate_selection(setup: Setup, choice: MethodChoice, seed: int = 0, workers: int = 1) -> CostEstimate:
    """Of `select`: the method's own work; the final training is another command."""
    estimate = CostEstimate(setup, workers)
    meter, recipe = dry_selection(setup, choice, seed)
    trials = f", {meter.trials} trials" if meter.trials else ""
    estimate.add(f"choosing by {choice.name}{trials}", meter)
    if meter.trials:
        estimate.notes.append("a method that searches may take another way on real scores: fewer or more trials")
    training = dry_training(setup, recipe, seed).work / setup.single_run_work
    estimate.notes.append(f"`sidequest train` then takes about {training:.1f}x")
    return estimate


def estimate_training(setup: Setup, recipe: Recipe, seed: int = 0) -> CostEstimate:
    """Of `train`."""
    estimate = CostEstimate(setup)
    estimate.add(f"training the recipe of {recipe.method}", dry_training(setup, recipe, seed))
    return estimate


def estimate_oracle(setup: Setup, seeds: int, sample: int | None, workers: int) -> CostEstimate:
    """Of `oracle`: every subset, by its size."""
    estimate = CostEstimate(setup, workers)
    primary = setup.suite.primary
    by_size: dict[int, list[Meter]] = {}
    for chosen in some_subsets(setup.suite.candidates, sample):
        recipe = Recipe(method="oracle", primary=primary, phases=(one_to_one(primary, list(chosen)),))
        by_size.setdefault(len(chosen), []).append(dry_training(setup, recipe, 0))
    for size, meters in by_size.items():
        whole = Meter()
        for meter in meters:
            whole.add(meter)
        estimate.add(f"{len(meters)} {'subset' if len(meters) == 1 else 'subsets'} of size {size}", whole, seeds)
    estimate.notes.append("trainings that were done before are found, not repeated")
    return estimate


def estimate_comparison(
    setup: Setup,
    missing: Sequence[tuple[MethodChoice, int]],
    budget: float | None,
    workers: int,
    done: int = 0,
) -> CostEstimate:
    """Of `compare`. missing: each method, and on how many seeds it has not been run. done: how many cells are."""
    estimate = CostEstimate(setup, workers)
    longest: Meter | None = None
    most = 0
    for choice, seeds in missing:
        meter, recipe = dry_selection(setup, choice, 0, budget)
        if not choice.method.trains_model:
            training = dry_training(setup, recipe, 0)
            if longest is None or training.work > longest.work:
                longest = training
            meter.add(training)
        estimate.add(choice.name, meter, seeds)
        most = max(most, seeds)
    if longest is not None and len(setup.suite.tasks) > 1 and setup.suite.goal == "primary":
        alone = Meter()
        primary = alone.of(setup.suite.primary)
        primary.batches = _batches(longest)
        primary.examples = primary.batches * setup.train.batch_size
        estimate.add("single-long", alone, most)
    if done:
        estimate.notes.append(f"{done} cells are done already and are not counted")
    estimate.notes.append("a method that searches may take another way on real scores")
    return estimate


def dry_selection(setup: Setup, choice: MethodChoice, seed: int, budget: float | None = None) -> tuple[Meter, Recipe]:
    """What a method asks for, and a recipe of the kind that it gives."""
    learner = DryLearner.of(setup.pool, seed)
    trials = LocalTrials(learner, setup.train, goal=setup.suite.goal)
    work = setup.single_run_work
    recipe = run_method(choice.make(seed), learner, setup.pool, trials, single_run_work=work, budget=budget)
    return learner.meter, recipe


def dry_training(setup: Setup, recipe: Recipe, seed: int) -> Meter:
    """The work of a recipe's final training without early stopping."""
    learner = DryLearner.of(setup.pool, seed)
    fit(learner, recipe.phases, setup.train.model_copy(update={"patience": None}), seed, goal=setup.suite.goal)
    return learner.meter


def measure_speed(setup: Setup, choices: Sequence[MethodChoice] = (), *, one_thread: bool = False) -> Speed:
    """Train a few batches of each task for real, on a sample of its rows, and evaluate once. Refuses what the model can't do.

    The sample is drawn again each time: states of its texts are kept, and the same rows would be found encoded.
    """
    rng = np.random.default_rng()
    most = {"train": SAMPLE_BATCHES * setup.train.batch_size}
    tasks = {
        name: replace(
            task, splits={split: _sample(rows, most.get(split, 64), rng) for split, rows in task.splits.items()}
        )
        for name, task in setup.suite.tasks.items()
    }
    sample = Setup(replace(setup.suite, tasks=tasks), setup.model, setup.train)
    times_rows = _rows(setup) / _rows(sample)
    if one_thread:
        with one_torch_thread():
            return _measure(sample, choices, times_rows)
    return _measure(sample, choices, times_rows)


def _measure(sample: Setup, choices: Sequence[MethodChoice], times_rows: float) -> Speed:
    learner = sample.learner(0)
    for choice in choices:
        check_requirements(choice.make(), learner)
    encoding = 0.0
    if sample.family.keeps_states:
        first = sample.suite.tasks[sample.suite.primary]
        sample.family.inputs(first, first.train.take(np.arange(1)))  # loads the encoder
        start = time.perf_counter()
        sample.prepare()
        encoding = (time.perf_counter() - start) * times_rows
    batch, row = {}, {}
    for name in learner.tasks:
        learner.begin(10_000)
        batch[name] = _batch_seconds(learner, name)
        start = time.perf_counter()
        learner.evaluate(name)
        row[name] = (time.perf_counter() - start) / len(sample.suite.tasks[name].splits["select"])
    return Speed(batch, row, encoding)


def _batch_seconds(learner: TorchLearner, task: str) -> float:
    learner.train(task, 1)  # the first batch pays for what comes once
    start, done, more = time.perf_counter(), 0, 1
    while time.perf_counter() - start < SECONDS_PER_TASK / 2 and done < 64:
        learner.train(task, more)
        done, more = done + more, more * 2
    return (time.perf_counter() - start) / done


def _sample(rows: Examples, most: int, rng: np.random.Generator) -> Examples:
    return rows if len(rows) <= most else rows.take(np.sort(rng.choice(len(rows), most, replace=False)))


def _rows(setup: Setup) -> int:
    return sum(len(rows) for task in setup.suite.tasks.values() for rows in task.splits.values())


def _batches(meter: Meter) -> int:
    return sum(count.batches for count in meter.tasks.values())


def _processes(workers: int) -> str:
    return "one process" if workers == 1 else f"{workers} processes"
