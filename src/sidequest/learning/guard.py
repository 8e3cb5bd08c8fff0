"""The learner that a method gets: the protocol and nothing else, and *report* is refused.

A method that could see *report* would, sooner or later, tune on it; then nothing that sidequest shows could be trusted. So a
method gets an object that has the calls of the protocol and no attribute that leads to the learner, its rows or its model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

from sidequest.errors import ReportSplitRefused
from sidequest.learning.meter import Meter
from sidequest.learning.protocol import Learner, PowerT, Snapshot
from sidequest.recipe import Subset


def guard(learner: Learner) -> Learner:
    """The same learner, through the calls of the protocol alone."""

    class Guarded:
        """Its calls close over the learner: there is no attribute that holds it."""

        __slots__ = ()

        @property
        def meter(self) -> Meter:
            return learner.meter

        @property
        def tasks(self) -> tuple[str, ...]:
            return learner.tasks

        @property
        def primary(self) -> str:
            return learner.primary

        @property
        def sizes(self) -> Mapping[str, int]:
            return learner.sizes

        def epoch_batches(self, task: str, subset: Subset | None = None) -> int:
            return learner.epoch_batches(task, subset)

        def begin(self, total_batches: int | None, *, rate: float = 1.0, keep_optimizer: bool = False) -> None:
            learner.begin(total_batches, rate=rate, keep_optimizer=keep_optimizer)

        def train(self, task: str, n_batches: int, *, weight: float = 1.0, subset: Subset | None = None) -> list[float]:
            return learner.train(task, n_batches, weight=weight, subset=subset)

        def evaluate(self, task: str, split: str = "select") -> float:
            return learner.evaluate(task, _allowed(split))

        def evaluate_all(self, task: str, split: str = "select") -> dict[str, float]:
            return learner.evaluate_all(task, _allowed(split))

        def snapshot(self, *, weights_only: bool = False) -> Snapshot:
            return learner.snapshot(weights_only=weights_only)

        def restore(self, snapshot: Snapshot) -> None:
            learner.restore(snapshot)

        def fresh(self, seed: int) -> Learner:
            return guard(learner.fresh(seed))

        def save(self, directory: Path, snapshot: Snapshot | None = None) -> None:
            learner.save(directory, snapshot)

        def load(self, directory: Path) -> None:
            learner.load(directory)

        def __getitem__(self, power: type[PowerT]) -> PowerT:
            return cast(PowerT, _only(power, learner[power]))

    return cast(Learner, Guarded())


def _only(power: type, offered: Any) -> object:
    """A power with the calls of its protocol alone."""
    names = [name for name in dir(power) if callable(getattr(power, name)) and not name.startswith("_")]
    calls = {name: staticmethod(_call(getattr(offered, name))) for name in names}
    return type(power.__name__, (), {"__slots__": (), **calls})()


def _call(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*arguments: Any, **named: Any) -> Any:
        return function(*arguments, **named)

    return call


def _allowed(split: str) -> str:
    if split == "report":
        raise ReportSplitRefused("a method asked for the 'report' split; it may train on 'train' and look at 'select'")
    return split
