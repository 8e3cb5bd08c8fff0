"""A probe: a short training run that is judged row by row instead of by the metric.

The metric of a small *select* is noise: a hundred rows have a standard error of several points of accuracy. The log-likelihood of
the truth after one temperature is continuous and bounded for every row. Where *select* is small beside *train*, rows of the
primary's train are held out and looked at too: they cost a little training and halve the noise of the rows.
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
    hold_out: int = 0,
    goal: str = "primary",
    progress: OnBatches | None = None,
) -> np.ndarray:
    """Train the phases to their end, without early stopping; `Probing.truth` of the primary, float64 [n].

    With goal `average` the rows of all tasks stand one after another. hold_out: rows of the primary's train, the same in every
    run, that it does not learn from and is judged by beside *select*.
    """
    primary = learner.primary
    kept = learner.all_but(primary, hold_out) if hold_out else None
    if kept is not None:
        phases = [phase.model_copy(update={"subsets": {**phase.subsets, primary: kept}}) for phase in phases]
    looked: list[np.ndarray] = []
    for index, phase in enumerate(phases):
        total = phase_length(phase, learner, train, goal).total
        learner.begin(total)
        last = index == len(phases) - 1
        stops = sorted({max(1, round(total * part)) for part in EVALUATED}) if last else [total]
        start = 0
        for stop in stops:
            rng = np.random.default_rng([seed, index, start])
            for task, n_batches in task_order(phase, start, stop, rng, primary):
                weight = phase.weights.get(task, 1.0) * train.loss_scale.get(task, 1.0)
                learner.train(task, n_batches, weight=weight, subset=phase.subsets.get(task))
            if progress is not None:
                progress(stop, total, None)
            if last:
                tasks = learner.tasks if goal == "average" else (primary,)
                looked.append(
                    np.concatenate([learner.truth(task, kept if task == primary else None) for task in tasks])
                )
            start = stop
    return np.mean(looked, axis=0)
