"""What a model says about rows: answers, probabilities and scores, in the order of the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sidequest.tasks.metrics import Values, compute_all
from sidequest.tasks.task import Objective, Task


@dataclass(frozen=True)
class Predictions:
    """Predictions of one task.

    indices: int64 [n], the class or choice (classification, multiple choice);
    marks: bool [n, labels], whether a row has each label (multi-label);
    probabilities: float64 [n, classes] (0 for choices that a row does not have), or of each label on its own;
    values: float64 [n], in the target's own units (regression);
    tags: per row, int64 [words] (tagging); tag_probabilities: per row, float64 [words, tags].
    """

    task: Task
    indices: np.ndarray | None = None
    marks: np.ndarray | None = None
    probabilities: np.ndarray | None = None
    values: np.ndarray | None = None
    tags: list[np.ndarray] | None = None
    tag_probabilities: list[np.ndarray] | None = None

    def __len__(self) -> int:
        return len(self.answers)

    @property
    def answers(self) -> Any:
        """What metrics compare with a target: indices, marks, values or tags."""
        return next(each for each in (self.indices, self.marks, self.values, self.tags) if each is not None)

    def scores(self, target: Values, rows: np.ndarray | None = None) -> dict[str, float]:
        """Every metric of the task. rows: positions of the rows that `target` is of; None: all."""
        answers = self.answers
        if rows is not None:
            answers = [answers[row] for row in rows] if self.tags is not None else answers[rows]
        return compute_all(self.task.metrics, answers, target, self.task.labels)

    def columns(self, *, probabilities: bool = True) -> dict[str, list[Any]]:
        """Plain values by column: `label`, `labels`, `choice` (with `label` where choices have names), `value` or `tags`; and
        `probabilities`, by label (of a choice by its number, of tags a list with an entry per word)."""
        names = self.task.labels
        if self.values is not None:
            return {"value": self.values.tolist()}
        if self.tags is not None:
            columns: dict[str, list[Any]] = {"tags": [[names[tag] for tag in row] for row in self.tags]}
            if probabilities and self.tag_probabilities is not None:
                columns["probabilities"] = [_named(names, row) for row in self.tag_probabilities]
            return columns
        assert self.probabilities is not None
        if self.marks is not None:
            columns = {"labels": [[names[i] for i in np.flatnonzero(row)] for row in self.marks]}
        else:
            assert self.indices is not None
            answers = self.indices.tolist()
            columns = {} if self.task.objective != Objective.CHOICE else {"choice": answers}
            if not columns or any(name != str(i) for i, name in enumerate(names)):
                # A row may have more choices than any row that the labels were named for.
                columns["label"] = [names[i] if i < len(names) else str(i) for i in answers]
        if probabilities and self.task.objective == Objective.CHOICE:
            columns["probabilities"] = self.probabilities.tolist()
        elif probabilities:
            columns["probabilities"] = _named(names, self.probabilities)
        return columns

    def to_rows(self, *, probabilities: bool = True) -> list[dict[str, Any]]:
        """One plain dict per row, see `columns`."""
        columns = self.columns(probabilities=probabilities)
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _named(names: Sequence[str], shares: np.ndarray) -> list[dict[str, float]]:
    return [dict(zip(names, row, strict=True)) for row in shares.tolist()]
