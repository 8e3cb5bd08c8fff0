"""Learners in double precision whose gradients can be checked to many digits: a convnet and a transformer, with and without
batch-norm."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from sidequest.learning.torch.learner import TorchLearner
from sidequest.model_settings import CustomSettings
from sidequest.models.base import Family, Inputs, MultiTaskModel, seed_of
from sidequest.settings import TrainSettings
from sidequest.tasks.examples import Examples
from sidequest.tasks.suite import Suite
from sidequest.tasks.task import Form, Objective, Task

SIDE = 8


def image_task(name: str, seed: int, rows: int = 60) -> Task:
    """Noise images; the class is the brightest of three bands."""
    splits = {}
    for index, (split, count) in enumerate({"train": rows, "select": 37, "report": 20}.items()):
        images = np.random.default_rng([seed, index]).normal(size=(count, 1, SIDE, SIDE))
        bands = np.stack([part.mean((1, 2, 3)) for part in np.array_split(images, 3, axis=2)])
        splits[split] = Examples({"image": images}, bands.argmax(0), np.arange(count))
    return Task(name, Objective.CLASSIFICATION, Form.IMAGE, splits, ("top", "middle", "bottom"))


class ImageInputs(Inputs):
    def __init__(self, examples: Examples) -> None:
        self.images = torch.from_numpy(np.asarray(examples.columns["image"]))
        self.target = torch.from_numpy(np.asarray(examples.target))
        self.lengths = np.ones(len(examples), dtype=np.int64)

    def collate(self, positions: np.ndarray) -> dict[str, torch.Tensor]:
        return {"image": self.images[positions], "labels": self.target[positions]}


class ConvTrunk(nn.Module):
    def __init__(self, batch_norm: bool) -> None:
        super().__init__()
        norm = nn.BatchNorm2d(4) if batch_norm else nn.Identity()
        self.layers = nn.Sequential(nn.Conv2d(1, 4, 3), norm, nn.Tanh(), nn.AvgPool2d(2), nn.Flatten(), nn.Dropout(0.3))
        self.width = 4 * 9

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.layers(images)


class TransformerTrunk(nn.Module):
    """Each image row is a token."""

    def __init__(self, batch_norm: bool) -> None:
        super().__init__()
        self.width = 8
        self.embed = nn.Linear(SIDE, self.width)
        layer = nn.TransformerEncoderLayer(self.width, 2, 16, dropout=0.2, activation="gelu", batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.norm = nn.BatchNorm1d(self.width) if batch_norm else nn.Identity()

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.norm(self.encoder(self.embed(images.squeeze(1))).mean(1))


class DoubleModel(MultiTaskModel):
    def __init__(self, suite: Suite, kind: str, batch_norm: bool) -> None:
        super().__init__()
        self.trunk = ConvTrunk(batch_norm) if kind == "convnet" else TransformerTrunk(batch_norm)
        self.heads = nn.ModuleDict(
            {name: nn.Linear(self.trunk.width, task.outputs) for name, task in suite.tasks.items()}
        )

    def forward(self, task: str, batch: dict[str, torch.Tensor]) -> torch.Tensor:
        return self.heads[task](self.trunk(batch["image"]))


class DoubleFamily(Family):
    kind = "double"
    default_learning_rate = 0.05

    def __init__(self, suite: Suite, kind: str, batch_norm: bool) -> None:
        super().__init__(suite, CustomSettings())
        self.kind, self.batch_norm = kind, batch_norm

    def inputs(self, task: Task, examples: Examples) -> Inputs:
        return ImageInputs(examples)

    def build(self, seed: int) -> MultiTaskModel:
        with torch.random.fork_rng():
            torch.manual_seed(seed_of(seed, self.kind))
            return DoubleModel(self.suite, self.kind, self.batch_norm).double()

    def export(self, model, task, directory) -> None:
        raise AssertionError("never exported")


def double_learner(kind: str, batch_norm: bool, candidates: int = 2, seed: int = 0, **train) -> TorchLearner:
    suite = Suite.of(image_task("primary", 0), [image_task(f"other-{i}", i + 1) for i in range(candidates)])
    settings = {"batch_size": 16, "eval_batch_size": 16, "optimizer": "sgd", "clip": None} | train
    return TorchLearner(suite, DoubleFamily(suite, kind, batch_norm), TrainSettings(**settings), seed=seed)
