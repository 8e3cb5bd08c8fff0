"""A task whose *select* rows are learned from, too: for a final model, when nothing is left to choose."""

from __future__ import annotations

import dataclasses

from sidequest.tasks.examples import concatenate
from sidequest.tasks.task import Task


def with_select(task: Task) -> Task:
    """*train* followed by *select*, so that positions in *train* name the same rows as before."""
    return dataclasses.replace(task, splits={**task.splits, "train": concatenate([task.train, task.splits["select"]])})
