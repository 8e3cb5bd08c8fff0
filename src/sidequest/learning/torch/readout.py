"""The plain linear read-out of a task, beside the model that a learner trains: what it has to beat.

It depends on no seed and no training, and no meter counts it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sidequest.errors import DataError
from sidequest.learning.likelihood import Items, joined, row_likelihood
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
    """The log-likelihood of each row's truth by the plain linear read-out, as `Probing.truth`; None: it has none."""
    read_out = family.read_out(task)
    if read_out is None:
        return None
    rows = task.splits[split]
    target: Any = rows.target
    logits, counts = read_out.logits(rows)
    per_row = np.ones(len(rows), dtype=np.int64)
    if task.objective == Objective.REGRESSION:
        wanted = family.scales[task.name].standardise(np.asarray(target, dtype=np.float64))
        found = Items(logits[:, 0], wanted, per_row)
    elif task.objective == Objective.MULTILABEL:
        labels = np.asarray(target, dtype=np.int64)
        flat = np.stack([np.zeros(logits.size), logits.ravel()], axis=1)
        found = Items(flat, labels.ravel(), per_row * labels.shape[1])
    elif task.objective == Objective.CHOICE:
        scores = np.split(logits[:, 0], np.cumsum(counts)[:-1])
        found = joined(
            [Items(each[None], np.array([truth]), per_row[:1]) for each, truth in zip(scores, target, strict=True)]
        )
    elif task.objective == Objective.TAGGING:
        found = Items(logits, target.flatten().to_numpy(zero_copy_only=False), np.asarray(counts))
    else:
        found = Items(logits, np.asarray(target), per_row)
    return row_likelihood(found, task.objective)
