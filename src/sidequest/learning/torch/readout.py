"""The plain linear read-out of a task, beside the model that a learner trains: what it has to beat.

It depends on no seed and no training, and no meter counts it.
"""

from __future__ import annotations

from typing import Any

from sidequest.errors import DataError
from sidequest.models.base import Family
from sidequest.tasks.metrics import compute
from sidequest.tasks.task import Task


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
