"""The plain linear read-out of a task, beside the model that a learner trains: what it has to beat."""

from __future__ import annotations

from typing import Any, Protocol

from sidequest.errors import DataError
from sidequest.models.base import Family
from sidequest.tasks.metrics import compute
from sidequest.tasks.task import Task


class Host(Protocol):
    """What is needed of a learner."""

    family: Family

    def _task(self, name: str) -> Task: ...

    def probe_predictions(self, task: str, split: str) -> Any: ...


class ReadingOut:
    """The scores and predictions of the read-out. They depend on no seed and no training, and no meter counts them."""

    def probe_scores(self: Host, task: str, split: str = "select") -> dict[str, float] | None:
        """The scores of the plain linear read-out of the same features, fitted on *train*; None where the model has none."""
        spec = self._task(task)
        rows = self.probe_predictions(task, split)
        if rows is None:
            return None
        return {name: compute(name, rows, spec.splits[split].target, spec.labels) for name in spec.metrics}

    def probe_predictions(self: Host, task: str, split: str) -> Any:
        """What the plain linear read-out says of each row, as `predict` gives it; None where the model has no such read-out."""
        spec = self._task(task)
        if split not in spec.splits:
            raise DataError(f"task {task!r} has no {split!r} split; it has {', '.join(spec.splits)}")
        read_out = self.family.read_out(spec)
        return None if read_out is None else read_out.predict(spec.splits[split], self.family.scales[task].restore)
