"""The texts of a task's rows, as lists. No torch here."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sidequest.errors import DataError
from sidequest.tasks.examples import Examples
from sidequest.tasks.task import Form, Task

PREMISE = ("text", "text_b")  # what may stand before the choices of a row; joined by a space where both do


def has_pairs(task: Task) -> bool:
    """Whether a task shows two texts at a time: a pair, or a premise with each of its choices."""
    if task.form == Form.CHOICES:
        return any(name in rows.columns for rows in task.splits.values() for name in PREMISE)
    return task.form == Form.PAIR


@dataclass(frozen=True)
class Texts:
    """The texts of a task's rows, flat. `second` is None for single texts.

    counts: int64 [rows], how many of the texts belong to each row (its choices); None: one each.
    """

    first: list[str]
    second: list[str] | None
    counts: np.ndarray | None

    @classmethod
    def of(cls, task: Task, examples: Examples) -> Texts:
        columns = examples.columns
        if task.form != Form.CHOICES:
            second = columns["text_b"].to_pylist() if task.form == Form.PAIR else None
            return cls(columns["text"].to_pylist(), second, None)
        rows = columns["choices"].to_pylist()
        counts = np.array([len(row) for row in rows], dtype=np.int64)
        if len(counts) and counts.min() < 1:
            raise DataError(f"task {task.name!r}: row {int(examples.ids[counts.argmin()])} has no choices")
        choices = [text for row in rows for text in row]
        premises = [columns[name].to_pylist() for name in PREMISE if name in columns]
        if not premises:
            return cls(choices, None, counts)
        joined = [" ".join(parts) for parts in zip(*premises, strict=True)]
        return cls([text for text, count in zip(joined, counts, strict=True) for _ in range(count)], choices, counts)
