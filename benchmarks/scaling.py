"""Many workers: how much faster, and at what price to the search.

    python benchmarks/scaling.py [--parts async,pending,costs,workers] [--seeds 24]

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
from pathlib import Path

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


def measure_costs() -> None:
    """Seconds = examples · a + evaluated · b, with a and b from `single`'s own training and evaluation."""
    import torch

    from sidequest.runs.selecting import select
    from sidequest.runs.setup import Setup
    from sidequest.tasks.loading import load_suite

    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as cache:
        os.environ["SIDEQUEST_CACHE"] = cache
        setup = Setup.of(load_suite("digits"), {}, {"epochs": 8})
        a, b = _prices(setup)
        rows, batch = len(setup.suite.tasks[setup.suite.primary].train), setup.train.batch_size
        looks = len(setup.suite.tasks[setup.suite.primary].splits["select"])
        print(f"costs: a trained row takes {1e6 * a:.0f} µs, an evaluated one {1e6 * b:.0f} µs of one core")
        for name, settings, work in _models(setup, rows, batch, looks):
            meter: Meter | None = None
            begun = time.process_time()
            recipe = select(setup, name, settings=settings)
            seconds = time.process_time() - begun
            examples, evaluated = work
            predicted = a * examples + b * evaluated
            model_x = (examples + evaluated / 3) / setup.single_run_work
            print(
                f"  {name:<12} x: model {model_x:6.2f}, metered {recipe.cost.x:6.2f} ({model_x / recipe.cost.x - 1:+.0%}); "
                f"CPU: model {predicted:6.1f} s, measured {seconds:6.1f} s ({predicted / seconds - 1:+.0%})",
                flush=True,
            )
            del meter


def _prices(setup) -> tuple[float, float]:
    learner = setup.learner(0)
    learner.train(learner.primary, 20)
    learner.evaluate(learner.primary)
    begun = time.process_time()
    learner.train(learner.primary, 200)
    a = (time.process_time() - begun) / (200 * setup.train.batch_size)
    begun = time.process_time()
    for _ in range(20):
        learner.evaluate(learner.primary)
    looks = len(setup.suite.tasks[setup.suite.primary].splits["select"])
    return a, (time.process_time() - begun) / (20 * looks)


def _models(setup, rows: int, batch: int, looks: int):
    """The formulas of docs/scaling.md: rows trained on and rows evaluated."""
    epochs, select = setup.train.epochs, 1 + (setup.train.evaluations or round(setup.train.epochs))
    yield "autosem-p1", {"rounds": 60, "batches": 5}, (60 * 5 * batch, 61 * looks)
    yield "exp3s", {"steps": 300}, (300 * batch, 300 * batch)
    candidates = len(setup.suite.candidates)
    for name, settings, trainings in (
        ("heu-size", {}, None),
        ("task-modelling", {"subsets": 6}, None),
        ("autosem-no-stage1", {"trials": 6, "initial": 5}, None),
    ):
        yield name, settings, _by_trials(setup, name, settings, rows, epochs, select, looks, candidates, trainings)


def _by_trials(setup, name, settings, rows, epochs, select, looks, candidates, trainings):
    """A search by whole trainings: one of s tasks 1:1 is as long as s trainings of the primary; a mixture as its sum over the
    primary's part. Which sets are tried is known afterwards; the formula takes them from the recipe's evidence."""
    from sidequest.runs.selecting import select as run

    evidence = run(setup, name, settings=settings).evidence
    if name == "heu-size":
        sizes = [1 + tried for tried in range(len(evidence["select_scores"]))]
    elif name == "autosem-no-stage1":
        sizes = [sum(trial["mixture"]) / trial["mixture"][0] for trial in evidence["stage2"]["trials"]]
    else:
        sizes = [1 + len(subset["tasks"]) for subset in evidence["subsets"]]
    os.environ["SIDEQUEST_CACHE"] = tempfile.mkdtemp()  # so that it is run again, and measured
    return sum(sizes) * rows * epochs, len(sizes) * select * looks


def measure_workers() -> None:
    from sidequest.runs.comparing import compare
    from sidequest.runs.setup import Setup
    from sidequest.tasks.loading import load_suite

    seconds = {}
    for workers in (1, 2):
        with tempfile.TemporaryDirectory() as place:
            os.environ["SIDEQUEST_CACHE"] = str(Path(place) / "cache")
            begun = time.perf_counter()
            setup = Setup.of(load_suite("digits"), {}, {})
            compare(setup, {"heu-size": {}, "autosem-p1": {}}, range(3), Path(place) / "runs", workers=workers)
            seconds[workers] = time.perf_counter() - begun
    print(
        f"workers: digits, two methods, 3 seeds: one worker {seconds[1]:.0f} s, two {seconds[2]:.0f} s "
        f"({seconds[1] / seconds[2]:.2f} x)"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default="async,pending,costs,workers")
    parser.add_argument("--seeds", type=int, default=24)
    options = parser.parse_args()
    parts = {
        "async": measure_async,
        "pending": lambda: measure_pending(options.seeds),
        "costs": measure_costs,
        "workers": measure_workers,
    }
    for name in options.parts.split(","):
        parts[name]()


if __name__ == "__main__":
    main()
