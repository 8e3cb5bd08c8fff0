"""What a method may ask of a learner. Nothing here needs torch.

A learner is a model in the middle of training: it owns weights, optimiser, schedule, random states and its position in every
task's data. Methods see only these calls. Powers beyond them are separate small protocols that a method names in `requires`; the
object that keeps one is `learner[Power]`, where the model has it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar, runtime_checkable

import numpy as np

from sidequest.errors import SettingsError
from sidequest.learning.meter import Meter
from sidequest.recipe import Subset

Snapshot = Any  # opaque: only the learner that made it can read it
PowerT = TypeVar("PowerT")


@runtime_checkable
class Learner(Protocol):
    """Contract, checked by `sidequest.testing.check_learner`:

    - `train` then `restore` of an earlier `snapshot`, then `train` again is bit-identical on CPU;
    - `fresh(seed)` starts again and shares no mutable state; equal seeds give equal learners;
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

    def begin(self, total_batches: int | None, *, rate: float = 1.0, keep_optimizer: bool = False) -> None:
        """Start a schedule of this many batches: learning-rate warm-up and decay are stretched over it. None: a constant rate,
        for work whose every stretch is to count the same. rate: a factor on the learning rate."""
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

    def snapshot(self, *, weights_only: bool = False) -> Snapshot:
        """All that `restore` needs to continue as from here; with `weights_only`, only what decides predictions."""
        ...

    def restore(self, snapshot: Snapshot) -> None:
        """Bring back all that the snapshot holds; one of weights leaves optimiser, schedule and positions as they are."""
        ...

    def fresh(self, seed: int) -> Learner: ...

    def save(self, directory: Path, snapshot: Snapshot | None = None) -> None:
        """Write a snapshot (None: one taken now) as safetensors and JSON."""
        ...

    def load(self, directory: Path) -> None: ...

    def __getitem__(self, power: type[PowerT]) -> PowerT:
        """A power beyond training; a `SettingsError` where the model does not have it."""
        ...


@runtime_checkable
class Probing(Learner, Protocol):
    """A learner that can be judged row by row and train beside shuffled targets (`auto`). Every torch learner can."""

    def truth(self, task: str, learned_from: Subset | None = None) -> np.ndarray:
        """The log-likelihood of the truth of each row of *select* after one temperature, float64 [n], in row order; then of the
        train rows that are not in `learned_from`. See `sidequest.learning.likelihood`."""
        ...

    def all_but(self, task: str, rows: int) -> Subset | None:
        """The train rows without some, the same ones every time; None: a learner without rows."""
        ...

    def read_out_truth(self, task: str) -> np.ndarray | None:
        """As `truth` on *select*, of the plain linear read-out of the model's features; None where it has none."""
        ...

    def with_permuted(self, tasks: Mapping[str, int]) -> Learner:
        """A learner like this one before any training, in which these tasks' train targets are shuffled among their rows by a
        seed each; it counts on the same meter."""
        ...


Delta = Any  # opaque: what training on one task changed; only the learner that collected it can read it


@runtime_checkable
class Deltas(Protocol):
    """The power to collect what training on each task would change, and to look at θ + Σᵢ αᵢδᵢ before taking it (αVIL).

    Call order: `begin_deltas` once; then, epoch after epoch, `collect_delta` for each task, `merged_loss` as often as wanted, and
    `apply_deltas`. All deltas of a call must have been collected since the parameters last changed.
    """

    def begin_deltas(self, totals: Mapping[str, int]) -> None:
        """Start again: for each task named an optimiser of its own, and a schedule over that many batches of the task."""
        ...

    def collect_delta(
        self, task: str, n_batches: int, *, weight: float = 1.0, rate: float = 1.0, keep_optimizer: bool = True
    ) -> Delta:
        """Train on a task's next batches, keep what changed, and put parameters and buffers back.

        The task's position in its data and its schedule move on, and so does its optimiser unless `keep_optimizer` is False,
        which starts and ends with none. `weight` multiplies the loss, `rate` the learning rate.
        """
        ...

    def merged_loss(
        self, task: str, deltas: Sequence[Delta], alphas: np.ndarray, rows: np.ndarray | None = None
    ) -> tuple[float, np.ndarray]:
        """A task's mean loss on *select* at θ + Σᵢ αᵢδᵢ, and its gradient with respect to α, float64 [len(deltas)].

        rows: positions in *select*; None: all. Without dropout. The learner stays as it was.
        """
        ...

    def apply_deltas(self, deltas: Sequence[Delta], alphas: np.ndarray) -> None:
        """θ ← θ + Σᵢ αᵢδᵢ."""
        ...


@runtime_checkable
class PredictionGain(Protocol):
    """The power to say what one training step did to the loss (Exp3.S, counterfactual estimation)."""

    def train_with_gain(self, task: str, *, target: str | None = None) -> tuple[float, float]:
        """One step on the task's next batch, exactly as `train(task, 1)`; the loss of that same batch before and after it.

        target: measure the loss on another batch, of this task, instead. Its rows come in an order of their own, so that
        measuring does not change which rows are trained on.
        """
        ...


@runtime_checkable
class GradientAlignment(Protocol):
    """The power to say whether two tasks pull the shared parameters the same way (FLAD)."""

    def train_aligned(self, task: str, target: str) -> float:
        """One step on the sum of both tasks' losses on their next batches; the cosine between the two gradients before it, over
        the parameters that both move."""
        ...


@runtime_checkable
class LabelScreen(Protocol):
    """The power to say, without training, what a candidate's labels know of the primary's (`auto`, with many candidates)."""

    def label_relatedness(self, task: str) -> float:
        """Higher is more related; nan where it cannot be said. Only *train* is looked at, and the learner stays as it was."""
        ...


@dataclass(frozen=True)
class Warmup:
    """Single-task fine-tuning of a fresh model before its heads are looked at.

    epochs: passes over the task's train rows; 0: none. most_batches: an upper bound on them, for large tasks.
    seed: of the fresh model, its order of rows and its dropout.
    """

    epochs: float = 3.0
    most_batches: int | None = None
    seed: int = 0


@runtime_checkable
class HeadImportance(Protocol):
    """The power to say how much each attention head matters to a task (GradTS).

    The importance of head h for a row is |∂L/∂ξ_h|, with ξ_h = 1 a factor on the head's output and L the row's loss, in
    evaluation mode, on a fresh model that was warmed up on the task alone. The learner itself stays as it was.
    """

    def head_importance(self, task: str, warmup: Warmup) -> np.ndarray:
        """The importances summed over the task's train rows, float64 [layers, heads]."""
        ...

    def instance_importance(self, task: str, warmup: Warmup) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """The importances of single train rows, in chunks and in any order: ids int64 [n], values float32 [n, layers, heads].

        The pass that gives `head_importance` gives these too, and that call is charged for it: this one is free after it.
        """
        ...


@dataclass(frozen=True)
class HeadMatrix:
    """A piece of work: `head_importance` of a task."""

    task: str
    warmup: Warmup

    def __str__(self) -> str:
        return f"heads of {self.task}"


@dataclass(frozen=True)
class Discrimination:
    """How a task-discriminative model is trained, and how rows are ranked with it (similarity sampling).

    loss: `bce` asks of each task by itself whether a row could be its own, `ce` which one task a row is of, `none` asks nothing
        (tasks alone: the paper's Figure 1a). rows: of each task, for training; a smaller task gives all it has.
    task_losses: whether the tasks themselves are learned too. chunk: rows ranked between two saves.
    """

    loss: Literal["bce", "ce", "none"] = "bce"
    rows: int = 500
    epochs: float = 5.0
    task_losses: bool = True
    chunk: int = 8192
    seed: int = 0


@runtime_checkable
class TaskDiscriminator(Protocol):
    """The power to say how much a row of one task looks like a row of the primary (similarity sampling).

    A fresh model learns some rows of all tasks and to tell tasks apart; then it ranks the rows that it has not seen. Which rows
    it learns from is a function of (seed, task), of nothing else. The learner itself stays as it was.

    Call order: `train_discriminator`; `rank_chunk` for chunks 0, 1, … of every task; `similarities`, which is free after them.
    A call whose result is lost or was never computed computes it, uncharged.
    """

    def rows_to_rank(self, task: str, discrimination: Discrimination) -> np.ndarray:
        """Ids of the train rows that the discriminator does not learn from, int64 [n]. No model is needed for this."""
        ...

    def train_discriminator(self, discrimination: Discrimination) -> dict[str, Any]:
        """Train it; what it came to: `rows` per task, `loss` and `accuracy` of telling tasks apart in the last epoch, `precision`
        of the ranking, `empty`: train rows without any text, per task that has some."""
        ...

    def rank_chunk(self, task: str, chunk: int, discrimination: Discrimination) -> int:
        """Rank rows chunk · size … of `rows_to_rank`; how many there were."""
        ...

    def similarities(self, task: str, discrimination: Discrimination) -> np.ndarray:
        """float32 [n], aligned with `rows_to_rank`: the logit of the primary (`bce`), or its log-probability (`ce`)."""
        ...

    def pooled_features(self, task: str, ids: np.ndarray, discrimination: Discrimination) -> np.ndarray:
        """The trained model's pooled output for train rows by id, float32 [n, width]; charged as one look at these rows."""
        ...


@dataclass(frozen=True)
class RankedChunk:
    """A piece of work: `rank_chunk` of a discriminator that is trained."""

    task: str
    chunk: int
    discrimination: Discrimination

    def __str__(self) -> str:
        return f"ranking of {self.task}, chunk {self.chunk + 1}"


Piece = HeadMatrix | RankedChunk  # what a worker can compute before a method's round asks for it; kept by content


# What people call a power; one that a third party adds is called by the name of its protocol.
_POWER_NAMES: dict[type, str] = {
    Deltas: "updates per task",
    PredictionGain: "prediction gain",
    GradientAlignment: "alignment of gradients",
    LabelScreen: "screen by labels",
    HeadImportance: "attention heads",
    TaskDiscriminator: "task discriminator",
}


def power_name(power: type) -> str:
    return _POWER_NAMES.get(power, power.__name__)


class OwnPowers:
    """For a learner whose powers are methods of its own, as the simulated ones: `learner[Power]` is the learner itself."""

    def __getitem__(self, power: type[PowerT]) -> PowerT:
        if not isinstance(self, power):
            raise SettingsError(f"{type(self).__name__} has no {power_name(power)}")
        return self
