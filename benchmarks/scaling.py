"""Many workers: how much faster, and at what price to the search.

    python benchmarks/scaling.py [--parts async,pending,costs,workers] [--seeds 24] [--epochs 50]

`async`: trials of unequal length on two workers that sleep, the executor's own loop against whole batches (goal: 1.3 x).
`pending`: AutoSeM's search on simulated surfaces with 1 to 16 trainings under way: median regret after 20 trials.
`costs`: the cost model of docs/scaling.md against the CPU time of five methods (goal: within 20 %).
`workers`: the digits comparison with two workers against one, by the clock (goal: 1.6 x; on an idle machine).
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sidequest.learning.meter import Meter
from sidequest.methods.autosem import stage2
from sidequest.methods.base import Plan
from sidequest.numerics.mixtures import MixtureSpace
from sidequest.recipe import Phase
from sidequest.search.executors import Executor
from sidequest.search.parallel_trials import Trials
from sidequest.search.trials import TrialResult
from sidequest.simulation.surfaces import surface

if TYPE_CHECKING:
    from sidequest.runs.setup import Setup


def sleep(lengths: list[float], plan: Plan) -> TrialResult:
    time.sleep(lengths[plan.seed])
    return TrialResult(0.0, [], Meter())


def measure_async() -> None:
    """Two kinds of unequal trials: trainings of random mixtures of AutoSeM's space (as long as all ratios over the primary's),
    and trainings whose length is searched too (log-uniform, 1 to 16). With a barrier a batch takes as long as its longest
    trial."""
    rng, space = np.random.default_rng(0), MixtureSpace(2, 20, 5)
    mixtures = [space.at(number) for number in rng.choice(len(space), 24, replace=False)]
    _measure_async("mixtures", [0.15 * sum(mixture) / mixture[0] for mixture in mixtures])
    _measure_async("lengths searched", (0.06 * 16 ** rng.random(40)).tolist())


def _measure_async(what: str, lengths: list[float]) -> None:
    plans = [Plan(phases=(Phase(shares={"p": 1}),), seed=number) for number in range(len(lengths))]
    seconds = {}
    for name in ("barrier", "asynchronous"):
        with Executor(2, timeout=600).open(sleep, lengths) as session:
            [session.submit(plan) for plan in plans[:2]]  # both workers are up before the clock runs
            [session.wait() for _ in range(2)]
            trials = Trials(lambda: session, 2)
            begun = time.perf_counter()
            if name == "barrier":
                for start in range(0, len(plans), 2):
                    trials.run(plans[start : start + 2])
            else:
                for index in range(len(plans)):
                    trials.first(plans[index : index + trials.room])
            seconds[name] = time.perf_counter() - begun
    best = sum(lengths) / 2
    ratio = seconds["barrier"] / seconds["asynchronous"]
    print(
        f"async, {what}: {len(plans)} trials, two workers: barrier {seconds['barrier']:.1f} s, asynchronous "
        f"{seconds['asynchronous']:.1f} s ({ratio:.2f} x); the least possible is {best:.1f} s",
        flush=True,
    )


def measure_pending(seeds: int) -> None:
    space = MixtureSpace(2, 20, 5)
    print("pending: median regret (in hundredths) after 20 trials, and the time in trials with as many workers")
    for pending in (1, 2, 4, 8, 16):
        regrets = []
        for seed in range(seeds):
            target = surface(space, seed)
            mixing = stage2.Hedge(stage2.HedgeSettings(trials=20, pending=pending))
            search = mixing.search(2, seed)
            trials: list[stage2.Trial] = []
            while len(trials) < search.budget:
                (found,) = stage2.upcoming(trials, search, mixing, 1)
                trials.append(stage2.Trial(suggestion=found, scores=[target.trial(found.mixture)]))
            best = search.best(stage2.history_of(trials, 1))
            regrets.append(100 * target.regret(trials[best].mixture))
        rounds = -(-6 // pending) + -(-14 // pending)
        low, high = np.percentile(regrets, [25, 75])
        print(
            f"  {pending:>2}: {np.median(regrets):.2f} (quartiles {low:.2f} to {high:.2f}), {rounds} trials long",
            flush=True,
        )


@dataclass(frozen=True)
class Prices:
    """Seconds of one core, measured in a moment of training.

    turn: of a change of task. batch, row: of a step, and of each row in it. look, looked_row: of an evaluation, and of each row
    in it. gain: of a step whose gain is measured. training: what a whole training costs besides, to start and to keep its best.
    """

    turn: float
    batch: float
    row: float
    look: float
    looked_row: float
    gain: float
    training: float = 0.0


@dataclass(frozen=True)
class Work:
    """What a method does by the formulas of docs/scaling.md. gains: steps with a measured gain, which are counted apart."""

    turns: float = 0.0
    batches: float = 0.0
    rows: float = 0.0
    looks: float = 0.0
    looked_rows: float = 0.0
    gains: float = 0.0
    gain_rows: float = 0.0  # in x: rows trained and a third of rows evaluated
    trainings: float = 0.0

    def x(self, unit: float) -> float:
        return (self.rows + self.looked_rows / 3 + self.gain_rows) / unit

    def seconds(self, prices: Prices) -> float:
        named = {"turns": "turn", "batches": "batch", "rows": "row", "looks": "look", "looked_rows": "looked_row"}
        named |= {"gains": "gain", "trainings": "training"}
        return sum(getattr(self, count) * getattr(prices, price) for count, price in named.items())


COSTED: dict[str, dict[str, Any]] = {
    "autosem-p1": {"rounds": 60, "batches": 5},
    "exp3s": {"steps": 300},
    "heu-size": {},
    "task-modelling": {"subsets": 6},
    "autosem-no-stage1": {"trials": 6, "initial": 5},
}


def measure_costs(epochs: float) -> None:
    """x and CPU seconds of five methods, by the model and measured. Which sets are tried is known afterwards: the formula takes
    them from the recipe's evidence."""
    import torch

    from sidequest.runs.selecting import select
    from sidequest.runs.setup import Setup
    from sidequest.tasks.loading import load_suite

    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as cache:
        os.environ["SIDEQUEST_CACHE"] = cache
        setup = Setup.of(load_suite("digits"), {}, {"epochs": epochs, "patience": None})
        before = _prices(setup)
        shown = ", ".join(f"{name} {1e3 * value:.3f}" for name, value in asdict(before).items())
        print(f"costs: digits, {epochs:g} epochs; milliseconds of one core: {shown}", flush=True)
        for name, settings in COSTED.items():
            begun = time.process_time()
            recipe = select(setup, name, settings=settings)
            seconds = time.process_time() - begun
            work = _work(setup, name, settings, recipe.evidence)
            after = _prices(setup)  # what else the machine does changes its speed: prices of before and after
            x, predicted = work.x(setup.single_run_work), (work.seconds(before) + work.seconds(after)) / 2
            before = after
            print(
                f"  {name:<17} x: model {x:6.2f}, metered {recipe.cost.x:6.2f} ({x / recipe.cost.x - 1:+.0%}); "
                f"CPU: model {predicted:6.1f} s, measured {seconds:6.1f} s ({predicted / seconds - 1:+.0%})",
                flush=True,
            )


def _prices(setup: Setup) -> Prices:
    """Batches of two sizes tell the price of a step from that of its rows; likewise looks at two splits."""
    from sidequest.learning.protocol import PredictionGain
    from sidequest.search.trials import LocalTrials

    learner = setup.learner(0)
    few = learner.primary
    many = max(learner.tasks, key=lambda name: learner.sizes[name])

    def timed(work: Callable[[], object], times: int) -> float:
        work()
        begun = time.process_time()
        for _ in range(times):
            work()
        return (time.process_time() - begun) / times

    def step(task: str) -> tuple[float, float]:
        seconds = timed(lambda: learner.train(task, 20), 5) / 20
        return learner.sizes[task] / learner.epoch_batches(task), seconds

    def split(task: str, name: str) -> tuple[float, float]:
        return len(setup.suite.tasks[task].splits[name]), timed(lambda: learner.evaluate(task, name), 5)

    def turn(task: str) -> float:
        return timed(lambda: learner.train(task, 1), 60)

    batch, row = _line(step(few), step(many))
    look, looked_row = _line(split(few, "select"), split(few, "report"))
    gain = timed(lambda: learner[PredictionGain].train_with_gain(many, target=few), 60)
    prices = Prices(max(0.0, turn(many) - step(many)[1]), batch, row, look, looked_row, gain)
    plan = Plan(phases=(Phase(shares={few: 1}),), seed=99)
    alone = timed(lambda: LocalTrials(learner, setup.train).run([plan]), 1)
    return replace(prices, training=max(0.0, alone - _trainings(setup, [1.0], [1]).seconds(prices)))


def _line(one: tuple[float, float], two: tuple[float, float]) -> tuple[float, float]:
    """The line through two measurements (rows, seconds): seconds at no row, and of each row."""
    (few, first), (many, second) = one, two
    slope = max(0.0, (second - first) / (many - few)) if many != few else 0.0
    return max(0.0, first - slope * few), slope


def _trainings(setup: Setup, lengths: Sequence[float], tasks: Sequence[float]) -> Work:
    """Whole trainings; length: all batches over the primary's. tasks: how many take turns."""
    primary = setup.suite.tasks[setup.suite.primary]
    epochs, size = setup.train.epochs, setup.train.batch_size
    own, looks = len(primary.train), 1 + (setup.train.evaluations or round(setup.train.epochs))
    batches = epochs * -(-own // size)
    # The primary's batches end with a short one; those of the others, which have many rows, hardly ever do.
    turns = [epochs if several == 1 else batches * several for several in tasks]
    return Work(
        turns=sum(turns),
        batches=batches * sum(lengths),
        rows=epochs * own * len(lengths) + batches * size * (sum(lengths) - len(lengths)),
        looks=looks * len(lengths),
        looked_rows=looks * len(lengths) * len(primary.splits["select"]),
        trainings=len(lengths),
    )


def _work(setup: Setup, name: str, settings: Mapping[str, Any], evidence: Mapping[str, Any]) -> Work:
    size, looked = setup.train.batch_size, len(setup.suite.tasks[setup.suite.primary].splits["select"])
    if name == "autosem-p1":
        rounds, batches = settings["rounds"], settings["rounds"] * settings["batches"]
        return Work(rounds, batches, batches * size, rounds + 1, (rounds + 1) * looked)
    if name == "exp3s":  # the gain on the primary: a batch of it, before and after each step
        steps, own = settings["steps"], len(setup.suite.tasks[setup.suite.primary].train)
        return Work(gains=steps, gain_rows=steps * (size + 2 / 3 * own / -(-own // size)))
    if name == "heu-size":
        lengths = [1.0 + tried for tried in range(len(evidence["select_scores"]))]
        return _trainings(setup, lengths, [round(length) for length in lengths])
    if name == "task-modelling":
        lengths = [1.0 + len(subset["tasks"]) for subset in evidence["subsets"]]
        return _trainings(setup, lengths, [round(length) for length in lengths])
    mixtures = [trial["mixture"] for trial in evidence["stage2"]["trials"]]
    lengths = [sum(mixture) / mixture[0] for mixture in mixtures]
    # In a cycle of shares, a task has as many turns as there are cycles: as the primary's batches over its share.
    return _trainings(setup, lengths, [sum(share > 0 for share in mixture) / mixture[0] for mixture in mixtures])


def measure_workers(epochs: float) -> None:
    """Fewer epochs are the harder case: what starts and ends a comparison weighs more."""
    from sidequest.runs.comparing import compare
    from sidequest.runs.setup import Setup
    from sidequest.tasks.loading import load_suite

    seconds, cores = {}, {}
    for workers in (1, 2):
        with tempfile.TemporaryDirectory() as place:
            os.environ["SIDEQUEST_CACHE"] = str(Path(place) / "cache")
            begun, before = time.perf_counter(), sum(os.times()[:4])
            setup = Setup.of(load_suite("digits"), {}, {"epochs": epochs})
            compare(setup, {"heu-size": {}, "exp3s": {}}, range(3), Path(place) / "runs", workers=workers)
            seconds[workers] = time.perf_counter() - begun
            cores[workers] = (sum(os.times()[:4]) - before) / seconds[workers]
    print(
        f"workers: digits, {epochs:g} epochs, two methods, 3 seeds: one worker {seconds[1]:.0f} s, two {seconds[2]:.0f} s "
        f"({seconds[1] / seconds[2]:.2f} x); they had {cores[1]:.2f} and {cores[2]:.2f} cores, the rest other work had"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default="async,pending,costs,workers")
    parser.add_argument("--seeds", type=int, default=24)
    parser.add_argument("--epochs", type=float, default=50.0, help="of the trainings for `costs` and `workers`")
    options = parser.parse_args()
    parts = {
        "async": measure_async,
        "pending": lambda: measure_pending(options.seeds),
        "costs": lambda: measure_costs(options.epochs),
        "workers": lambda: measure_workers(options.epochs),
    }
    for name in options.parts.split(","):
        parts[name]()


if __name__ == "__main__":
    main()
