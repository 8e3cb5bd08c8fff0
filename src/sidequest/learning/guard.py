"""The learner that a method gets: the same, but *report* is refused."""

from __future__ import annotations

from typing import Any

from sidequest.errors import ReportSplitRefused
from sidequest.learning.protocol import Learner


class GuardedLearner:
    """Passes every call on, except a look at *report*.

    A method that could see *report* would, sooner or later, tune on it; then nothing that sidequest shows could be trusted.
    """

    def __init__(self, learner: Learner) -> None:
        self._learner = learner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._learner, name)

    def evaluate(self, task: str, split: str = "select") -> float:
        return self._learner.evaluate(task, _allowed(split))

    def evaluate_all(self, task: str, split: str = "select") -> dict[str, float]:
        return self._learner.evaluate_all(task, _allowed(split))

    def predict(self, task: str, split: str = "select") -> Any:
        return self._learner.predict(task, _allowed(split))  # type: ignore[attr-defined]

    def fresh(self, seed: int) -> GuardedLearner:
        return GuardedLearner(self._learner.fresh(seed))


def _allowed(split: str) -> str:
    if split == "report":
        raise ReportSplitRefused("a method asked for the 'report' split; it may train on 'train' and look at 'select'")
    return split
