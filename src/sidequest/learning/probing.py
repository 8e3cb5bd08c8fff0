"""A probe: a short training run that is judged by the probability of the truth instead of the metric.

The metric of a small *select* is noise: a hundred rows have a standard error of several points of accuracy. The probability that
the model gives to the truth is continuous and bounded for every row, and runs with the same seed see the primary's rows in the
same order, so two probes can be compared row by row.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sidequest.learning.fit import OnBatches, phase_length, task_order
from sidequest.learning.protocol import Probing
from sidequest.recipe import Phase
from sidequest.settings import TrainSettings

EVALUATED = (0.8, 0.9, 1.0)  # of the last phase: the mean over a few late models is steadier than the last one


def probe(
    learner: Probing,
    phases: Sequence[Phase],
    train: TrainSettings,
    seed: int,
    *,
    goal: str = "primary",
    progress: OnBatches | None = None,
) -> np.ndarray:
    """Train the phases to their end, without early stopping; the probability of the truth of each *select* row, float64 [n].

    With goal `average` the rows of all tasks stand one after another.
    """
    return _train(learner, phases, train, seed, EVALUATED, goal, progress)


def probe_branches(
    learner: Probing,
    trunk: Sequence[Phase],
    branches: Sequence[Sequence[Phase]],
    train: TrainSettings,
    seed: int,
    *,
    goal: str = "primary",
    progress: OnBatches | None = None,
) -> np.ndarray:
    """Train the trunk once and every branch from where it ended; the truth of each branch as of `probe`, float64 [branches, n].

    How soon a model begins to learn at all is mostly luck; branches of one trunk share it, and the trunk is paid for once.
    """
    if trunk:
        _train(learner, trunk, train, seed, (), goal, progress)
    start, found = learner.snapshot(), []
    for branch in branches:
        learner.restore(start)
        found.append(_train(learner, branch, train, seed, EVALUATED, goal, progress))
    return np.array(found)


def _train(
    learner: Probing,
    phases: Sequence[Phase],
    train: TrainSettings,
    seed: int,
    evaluated: Sequence[float],
    goal: str,
    progress: OnBatches | None,
) -> np.ndarray:
    """evaluated: at which parts of the last phase *select* is looked at; the mean over them."""
    looked: list[np.ndarray] = []
    for index, phase in enumerate(phases):
        total = phase_length(phase, learner, train, goal).total
        learner.begin(total)
        last = index == len(phases) - 1
        stops = sorted({max(1, round(total * part)) for part in evaluated} or {total}) if last else [total]
        start = 0
        for stop in stops:
            rng = np.random.default_rng([seed, index, start])
            for task, n_batches in task_order(phase, start, stop, rng, learner.primary):
                weight = phase.weights.get(task, 1.0) * train.loss_scale.get(task, 1.0)
                learner.train(task, n_batches, weight=weight, subset=phase.subsets.get(task))
            if progress is not None:
                progress(stop, total, None)
            if last and evaluated:
                tasks = learner.tasks if goal == "average" else (learner.primary,)
                looked.append(np.concatenate([learner.truth(task) for task in tasks]))
            start = stop
    return np.mean(looked, axis=0) if looked else np.zeros(0)
