"""What a family of models gives to the training loop.

A *family* (`hf`, `bilstm`, `pooled`, `convnet`, `custom`) knows how to turn rows into tensors, to build a model with one head per
task, and to export the primary's part. The training loop knows nothing else about models.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from sidequest.settings import ModelSettings
from sidequest.tasks.examples import Examples
from sidequest.tasks.suite import Suite
from sidequest.tasks.task import Task

IGNORE = -100  # cross-entropy's own mark for positions without a label
Batch = dict[str, Tensor]


class Inputs(ABC):
    """The rows of one split, ready to be batched. Holds no model and no random state."""

    lengths: np.ndarray  # int64 [n]: the cost of a row (tokens), by which batches are bucketed; all ones where rows are equal

    def __len__(self) -> int:
        return len(self.lengths)

    @abstractmethod
    def collate(self, positions: np.ndarray) -> Batch:
        """Tensors for these rows, padded to the longest of them.

        Has `labels` unless the rows have no target: int64 [n] (classification, choice), float32 [n] (regression, in standardised
        units), int64 [n, longest] with IGNORE where there is no label (tagging: one label per word, on the position whose
        output stands for that word).
        """


class MultiTaskModel(nn.Module):
    """A shared encoder and one head per task. Subclasses define `forward(task, batch)`:

    logits [n, classes] (classification), [n] (regression), [n, longest, tags] (tagging), [n, choices] (multiple choice).

    Initial values depend only on (seed, task name), never on which other tasks there are.
    """

    def forward(self, task: str, batch: Batch) -> Tensor:
        raise TypeError(f"{type(self).__name__} has no forward pass")


class Family(ABC):
    """One kind of model for one suite. Expensive, seed-independent things (tokeniser, pretrained weights, cached states) live here
    and are shared by all models that `build` makes."""

    default_learning_rate: ClassVar[float] = 1e-3

    def __init__(self, suite: Suite, settings: ModelSettings) -> None:
        self.suite = suite
        self.settings = settings
        self.scales = {task.name: TargetScale.of(task) for task in suite.tasks.values()}

    @abstractmethod
    def inputs(self, task: Task, examples: Examples) -> Inputs:
        """Rows of a task as inputs of this family's models."""

    @abstractmethod
    def build(self, seed: int) -> MultiTaskModel:
        """A new model with a head for every task of the suite."""

    @abstractmethod
    def export(self, model: MultiTaskModel, task: Task, directory: Path) -> None:
        """Write the encoder and one task's head so that `sidequest.models.load` can predict with it."""

    def fingerprint(self) -> str:
        """What identifies the pretrained weights (empty where there are none): part of the key of a trial."""
        return ""


class TargetScale:
    """Regression targets are learned in standardised units, so that a loss of 1 means the same for every task."""

    def __init__(self, mean: float = 0.0, deviation: float = 1.0) -> None:
        self.mean = mean
        self.deviation = deviation

    @classmethod
    def of(cls, task: Task) -> TargetScale:
        if task.objective != "regression" or "train" not in task.splits:
            return cls()
        target = np.asarray(task.train.target, dtype=np.float64)
        return cls(float(target.mean()), float(target.std()) or 1.0)

    def standardise(self, values: np.ndarray) -> np.ndarray:
        return ((values - self.mean) / self.deviation).astype(np.float32)

    def restore(self, values: np.ndarray) -> np.ndarray:
        return values.astype(np.float64) * self.deviation + self.mean


def seed_of(seed: int, *names: str) -> int:
    """A seed that is a function of a number and names, equal in every process."""
    import hashlib

    text = "\0".join((str(seed), *names))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little") >> 1


def generator(seed: int, *names: str) -> torch.Generator:
    return torch.Generator().manual_seed(seed_of(seed, *names))
