"""The core of the torch learner: what a power may use of it, and nothing more.

A power (`deltas`, `prediction_gain`, `head_importance`, `discriminator`, or one that a third party's family brings) is an object
made from a core. It trains and measures through these members, so that there is one training loop whoever drives it.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from sidequest.errors import DataError
from sidequest.learning.meter import Meter
from sidequest.learning.torch.batching import Stream
from sidequest.learning.torch.randomness import Randomness
from sidequest.learning.torch.state import LearnerState
from sidequest.models.base import Batch, Family, Inputs, MultiTaskModel
from sidequest.recipe import Subset
from sidequest.settings import TrainSettings
from sidequest.tasks.suite import Suite
from sidequest.tasks.task import Task


@dataclass
class EncodedTasks:
    """Encoded rows per (task, split), made when first needed and shared by all learners of a family."""

    family: Family
    encoded: dict[tuple[str, str], Inputs] = field(default_factory=dict)

    def of(self, task: Task, split: str) -> Inputs:
        key = (task.name, split)
        if key not in self.encoded:
            if split not in task.splits:
                raise DataError(f"task {task.name!r} has no {split!r} split; it has {', '.join(task.splits)}")
            self.encoded[key] = self.family.inputs(task, task.splits[split])
        return self.encoded[key]


@dataclass
class Course:
    """A task's own optimiser (None: to be made) and its place in its own schedule."""

    total: int
    step: int = 0
    optimizer: torch.optim.Optimizer | None = None


class Core(Protocol):
    """courses: tasks with an optimiser and a schedule of their own; they are part of a snapshot. randomness: what dropout draws
    from, lent to torch while the model trains."""

    suite: Suite
    family: Family
    settings: TrainSettings
    seed: int
    meter: Meter
    device: torch.device
    randomness: Randomness
    model: MultiTaskModel
    courses: dict[str, Course]

    @property
    def sizes(self) -> Any: ...

    def task(self, name: str) -> Task:
        """A task by name; an unknown one is an error that names the nearest."""
        ...

    def inputs(self, task: str, split: str) -> Inputs:
        """The encoded rows of a split."""
        ...

    def stream(self, task: str, subset: Subset | None = None, *, order: str = "") -> Stream:
        """A task's endless shuffled batches and the position in them, which is part of a snapshot. order: the name of an order of
        its own, apart from training's."""
        ...

    def batch(self, task: str, positions: np.ndarray, count: Any) -> Batch:
        """The tensors of a training batch, counted."""
        ...

    def to_device(self, batch: Batch) -> Batch: ...

    def on_course(self, course: Course, rate: float) -> AbstractContextManager[None]:
        """Train with another optimiser and schedule, and a factor on the learning rate, for a while."""
        ...

    def begin(self, total_batches: int | None, *, rate: float = 1.0, keep_optimizer: bool = False) -> None: ...

    def train(self, task: str, n_batches: int, *, weight: float = 1.0) -> list[float]: ...

    def step(self, loss: Tensor) -> None:
        """One optimiser step: the only place where parameters learn."""
        ...

    def epoch_batches(self, task: str, subset: Subset | None = None) -> int: ...

    def snapshot(self, *, weights_only: bool = False) -> LearnerState: ...

    def restore(self, snapshot: LearnerState) -> None: ...

    def fresh(self, seed: int, *, suite: Suite | None = None, meter: Meter | None = None) -> Core:
        """A new learner; of another suite, its rows are encoded apart. meter: None counts on this learner's."""
        ...
