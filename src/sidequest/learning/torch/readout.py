"""The plain linear read-out of a task, beside the model that a learner trains: what it has to beat.

It depends on no seed and no training, and no meter counts it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit, softmax

from sidequest.errors import DataError
from sidequest.models.base import Family
from sidequest.tasks.metrics import compute
from sidequest.tasks.task import Objective, Task


def probe_scores(family: Family, task: Task, split: str = "select") -> dict[str, float] | None:
    """The scores of the plain linear read-out of the same features, fitted on *train*; None where the model has none."""
    rows = probe_predictions(family, task, split)
    if rows is None:
        return None
    return {name: compute(name, rows, task.splits[split].target, task.labels) for name in task.metrics}


def probe_predictions(family: Family, task: Task, split: str) -> Any:
    """What the plain linear read-out says of each row, as a learner's `predict` gives it; None where the model has none."""
    if split not in task.splits:
        raise DataError(f"task {task.name!r} has no {split!r} split; it has {', '.join(task.splits)}")
    read_out = family.read_out(task)
    return None if read_out is None else read_out.predict(task.splits[split], family.scales[task.name].restore)


def probe_truth(family: Family, task: Task, split: str = "select") -> np.ndarray | None:
    """The probability that the plain linear read-out gives to the truth of each row, as `Probing.truth`; None: it has none."""
    read_out = family.read_out(task)
    if read_out is None:
        return None
    rows = task.splits[split]
    target: Any = rows.target
    logits, counts = read_out.logits(rows)
    if task.objective == Objective.REGRESSION:
        wanted = family.scales[task.name].standardise(np.asarray(target, dtype=np.float64))
        return np.exp(-0.5 * (logits[:, 0] - wanted) ** 2)
    if task.objective == Objective.MULTILABEL:
        return np.where(np.asarray(target) > 0, expit(logits), expit(-logits)).mean(axis=1)
    if task.objective == Objective.CHOICE:
        scores = np.split(logits[:, 0], np.cumsum(counts)[:-1])
        return np.array([softmax(each)[chosen] for each, chosen in zip(scores, target, strict=True)])
    tagging = task.objective == Objective.TAGGING
    labels = target.flatten().to_numpy(zero_copy_only=False) if tagging else np.asarray(target)
    chosen = softmax(logits, axis=1)[np.arange(len(labels)), labels]
    if not tagging:
        return chosen
    row = np.repeat(np.arange(len(counts)), counts)
    return np.bincount(row, chosen, minlength=len(counts)) / np.maximum(counts, 1)


class ReadsOut:
    """For a learner: the read-out beside the model that it trains."""

    family: Family

    def task(self, name: str) -> Task:
        raise NotImplementedError

    def read_out_truth(self, task: str) -> np.ndarray | None:
        return probe_truth(self.family, self.task(task))
