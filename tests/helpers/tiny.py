"""A suite and a model small enough that a test of the training loop takes milliseconds."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from sidequest.model_settings import CustomSettings
from sidequest.models.base import Family, Inputs, MultiTaskModel, generator
from sidequest.settings import TrainSettings
from sidequest.tasks.examples import Examples
from sidequest.tasks.suite import Suite
from sidequest.tasks.task import Form, Objective, Task


def tiny_task(name: str, objective: Objective = Objective.CLASSIFICATION, rows: int = 70, seed: int = 0) -> Task:
    """Images of 3x3 noise; the label is the sign (or the value) of a fixed linear function."""
    splits = {}
    for index, (split, count) in enumerate({"train": rows, "select": 40, "report": 40}.items()):
        rng = np.random.default_rng([seed, index])
        images = rng.normal(size=(count, 1, 3, 3)).astype(np.float32)
        value = images.reshape(count, -1) @ np.linspace(-1, 1, 9) + 0.3 * rng.normal(size=count)
        target = (value > 0).astype(np.int64) if objective == Objective.CLASSIFICATION else 100 + 50 * value
        if objective == Objective.MULTILABEL:
            target = np.stack([value > 0, value > 0.5, images[:, 0, 0, 0] > 0], axis=1).astype(np.uint8)
        splits[split] = Examples({"image": images}, target, np.arange(count))
    labels, metrics = {
        Objective.CLASSIFICATION: (("low", "high"), ("accuracy",)),
        Objective.MULTILABEL: (("positive", "large", "corner"), ("micro_f1", "macro_f1", "subset_accuracy")),
        Objective.REGRESSION: ((), ("pearson", "neg_rmse")),
    }[objective]
    return Task(name, objective, Form.IMAGE, splits, labels, metrics, kind="noise")


def tiny_suite() -> Suite:
    return Suite.of(
        tiny_task("main-one"),
        [tiny_task("helper", rows=150, seed=1), tiny_task("value", Objective.REGRESSION, rows=90, seed=2)],
        name="tiny",
    )


class TinyInputs(Inputs):
    def __init__(self, examples: Examples, target: np.ndarray) -> None:
        self.images = torch.from_numpy(np.asarray(examples.columns["image"])).flatten(1)
        self.target = torch.from_numpy(target)
        self.lengths = np.ones(len(examples), dtype=np.int64)

    def collate(self, positions: np.ndarray) -> dict[str, torch.Tensor]:
        return {"image": self.images[positions], "labels": self.target[positions]}


class TinyModel(MultiTaskModel):
    """Batch-norm and dropout are there on purpose: buffers and random states must survive a restore."""

    def __init__(self, suite: Suite, seed: int) -> None:
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(9, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.2))
        self.heads = nn.ModuleDict({name: nn.Linear(8, task.outputs) for name, task in suite.tasks.items()})
        for name, module in [("trunk", self.trunk[0]), *self.heads.items()]:
            for parameter in module.parameters():
                nn.init.normal_(parameter, std=0.3, generator=generator(seed, name, str(tuple(parameter.shape))))
        self.regression = {name for name, task in suite.tasks.items() if task.objective == Objective.REGRESSION}

    def forward(self, task: str, batch: dict[str, torch.Tensor]) -> torch.Tensor:
        out = self.heads[task](self.trunk(batch["image"]))
        return out.squeeze(-1) if task in self.regression else out


class TinyFamily(Family):
    kind = "tiny"
    default_learning_rate = 0.02

    def inputs(self, task: Task, examples: Examples) -> Inputs:
        target = np.asarray(examples.target)
        if task.objective == Objective.REGRESSION:
            target = self.scales[task.name].standardise(target)
        if task.objective == Objective.MULTILABEL:
            target = target.astype(np.float32)
        return TinyInputs(examples, target)

    def build(self, seed: int) -> MultiTaskModel:
        return TinyModel(self.suite, seed)

    def export(self, model, task, directory) -> None:
        raise AssertionError("the tiny model is never exported")


def tiny_learner(suite: Suite | None = None, seed: int = 0, **train):
    from sidequest.learning.torch.learner import TorchLearner

    suite = suite or tiny_suite()
    family = TinyFamily(suite, CustomSettings())
    return TorchLearner(suite, family, TrainSettings(batch_size=16, **train), seed=seed)
