"""What a method may ask of a learner. Nothing here needs torch.

A learner is a model in the middle of training: it owns weights, optimiser, schedule, random states and its position in every
task's data. Methods see only these calls. Powers beyond them are separate small protocols that a method names in `requires`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from sidequest.learning.meter import Meter
from sidequest.recipe import Subset

Snapshot = Any  # opaque: only the learner that made it can read it


@runtime_checkable
class Learner(Protocol):
    """Contract, checked by `sidequest.testing.check_learner`:

    - `train` then `restore` of an earlier `snapshot`, then `train` again is bit-identical on CPU;
    - `fresh(seed)` starts anew and shares no mutable state; equal seeds give equal learners;
    - results do not depend on which other tasks the learner could have trained on.
    """

    meter: Meter  # counts this learner's work; `fresh` learners count on the same one

    @property
    def tasks(self) -> tuple[str, ...]: ...

    @property
    def primary(self) -> str: ...

    @property
    def sizes(self) -> Mapping[str, int]:
        """Train rows per task."""
        ...

    def epoch_batches(self, task: str, subset: Subset | None = None) -> int:
        """Batches in one pass over a task's train rows."""
        ...

    def begin(self, total_batches: int, *, keep_optimizer: bool = False) -> None:
        """Start a schedule of this many batches: learning-rate warm-up and decay are stretched over it."""
        ...

    def train(self, task: str, n_batches: int, *, weight: float = 1.0, subset: Subset | None = None) -> list[float]:
        """Take that many optimiser steps on a task's next batches; the (unweighted) loss of each before its step."""
        ...

    def evaluate(self, task: str, split: str = "select") -> float:
        """The task's metric on a split; higher is better."""
        ...

    def evaluate_all(self, task: str, split: str = "select") -> dict[str, float]:
        """Every metric of the task on a split."""
        ...

    def snapshot(self) -> Snapshot: ...

    def restore(self, snapshot: Snapshot) -> None: ...

    def fresh(self, seed: int) -> Learner: ...

    def save(self, directory: Path) -> None:
        """Write everything that `snapshot` holds, as safetensors and JSON."""
        ...

    def load(self, directory: Path) -> None: ...
