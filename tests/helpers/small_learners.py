"""Learners of every family, of several dtypes and memory layouts, small enough that a training step takes milliseconds."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pyarrow as pa
import torch
from torch import nn

from sidequest.learning.torch.learner import TorchLearner
from sidequest.model_settings import CustomSettings, model_settings
from sidequest.models import family
from sidequest.models.base import Family, MultiTaskModel, seeded
from sidequest.models.images import ImageInputs, Preparation
from sidequest.settings import TrainSettings
from sidequest.tasks.examples import Examples
from sidequest.tasks.suite import Suite
from sidequest.tasks.task import Form, Objective, Task

WORDS = ("the", "a", "cat", "dog", "mat", "tree", "sat", "ran", "is", "was", "not", "very", "good", "bad", "film", "it")
ROWS = {"train": 48, "select": 24, "report": 24}


def sentences(rng: np.random.Generator, count: int) -> list[str]:
    return [" ".join(rng.choice(WORDS, rng.integers(1, 12))) for _ in range(count)]


def small_task(name: str, form: Form, objective: Objective = Objective.CLASSIFICATION) -> Task:
    splits = {}
    for number, (split, rows) in enumerate(ROWS.items()):
        rng = np.random.default_rng([number, *name.encode()])
        if form == Form.IMAGE:
            columns = {"image": rng.integers(0, 256, (rows, 3, 12, 12), dtype=np.uint8)}
        elif form == Form.TOKENS:
            words = [text.split() for text in sentences(rng, rows)]
            columns = {"tokens": pa.array(words, type=pa.list_(pa.string()))}
        else:
            columns = {"text": pa.array(sentences(rng, rows))}
        if objective == Objective.TAGGING:
            target = pa.array([rng.integers(0, 3, len(row)).tolist() for row in words], type=pa.list_(pa.int64()))
        elif objective == Objective.REGRESSION:
            target = 5 + rng.normal(size=rows)
        else:
            target = rng.integers(0, 3, rows)
        splits[split] = Examples(columns, target, np.arange(rows))
    labels = () if objective == Objective.REGRESSION else ("a", "b", "c")
    metrics = {Objective.REGRESSION: ("pearson",)}.get(objective, ("accuracy",))
    return Task(name, objective, form, splits, labels, metrics)


def images() -> Suite:
    return Suite.of(
        small_task("shape", Form.IMAGE), [small_task("ink", Form.IMAGE, Objective.REGRESSION)], name="images"
    )


def texts(*, tags: bool = False) -> Suite:
    other = (
        small_task("tags", Form.TOKENS, Objective.TAGGING)
        if tags
        else small_task("mark", Form.TEXT, Objective.REGRESSION)
    )
    return Suite.of(small_task("mood", Form.TEXT), [other], name="texts")


def learner_of(kind: str, encoder: str | None, optimizer: str, seed: int) -> TorchLearner:
    """A family of sidequest by its kind."""
    suite = images() if kind == "convnet" or "vit" in (encoder or "") else texts(tags=kind in ("hf", "bilstm"))
    options = {"kind": kind} | ({} if kind == "convnet" else {"encoder": encoder})
    options |= {"dropout": 0.2} if kind != "hf" else {}
    if kind in ("bilstm", "pooled", "convnet"):
        options["hidden"] = 8
    train = TrainSettings(batch_size=8, optimizer=optimizer)
    return TorchLearner(suite, family(suite, model_settings(options)), train, seed=seed)


class OddModel(MultiTaskModel):
    """What optimisers and files can get wrong: channels-last filters, a transposed weight, buffers, dropout, any dtype."""

    def __init__(self, suite: Suite, dtype: torch.dtype, memory_format: torch.memory_format, seed: int) -> None:
        super().__init__()
        with seeded(seed, "odd"):
            self.filters = nn.Conv2d(3, 6, 3)
            self.norm = nn.BatchNorm2d(6)
            self.mixing = nn.Parameter(torch.randn(7, 6).t() * 0.3)  # its memory runs along the columns
            self.heads = nn.ModuleDict({name: nn.Linear(7, task.outputs) for name, task in suite.tasks.items()})
        self.dropout = nn.Dropout(0.2)
        self.regression = {name for name, task in suite.tasks.items() if task.objective == Objective.REGRESSION}
        self.dtype = dtype
        self.to(dtype=dtype)
        self.to(memory_format=memory_format)

    def forward(self, task, batch):
        x = self.norm(self.filters(batch["image"].to(self.dtype))).relu().mean((2, 3))
        out = self.heads[task](self.dropout(x @ self.mixing)).float()
        return out[:, 0] if task in self.regression else out


class OddFamily(Family):
    kind = "odd"
    default_learning_rate = 0.01

    def __init__(self, suite: Suite, dtype: torch.dtype, memory_format: torch.memory_format) -> None:
        super().__init__(suite, CustomSettings())
        self.dtype, self.memory_format = dtype, memory_format

    def inputs(self, task, examples):
        return ImageInputs(task, examples, self.scales[task.name], Preparation(), "image")

    def build(self, seed):
        return OddModel(self.suite, self.dtype, self.memory_format, seed)

    def export(self, model, task, directory):
        raise AssertionError("never exported")


def odd_learner(dtype: torch.dtype, memory_format: torch.memory_format, optimizer: str, seed: int) -> TorchLearner:
    suite = images()
    train = TrainSettings(batch_size=8, optimizer=optimizer, learning_rate=0.01)
    return TorchLearner(suite, OddFamily(suite, dtype, memory_format), train, seed=seed)


class ForgetsLayout(TorchLearner):
    """A planted bug: optimiser states come back as the file has them."""

    def load(self, directory):
        super().load(directory)
        for state in self.optimizer.state.values():
            state.update({key: value.contiguous() for key, value in state.items()})


class ForgetsMomentum(TorchLearner):
    """A planted bug: the optimiser's first moments start again from zero."""

    def load(self, directory):
        super().load(directory)
        for state in self.optimizer.state.values():
            state["exp_avg"].zero_()


class KeepsStateInTheProcess(ForgetsMomentum):
    """A planted bug: what the files lack is remembered by the process that wrote them."""

    kept: ClassVar[dict] = {}

    def save(self, directory, snapshot=None):
        super().save(directory, snapshot)
        self.kept[directory] = snapshot or self.snapshot()

    def load(self, directory):
        if directory in self.kept:
            self.restore(self.kept[directory])
        else:
            super().load(directory)


def convnet_that(cls: type[TorchLearner], seed: int) -> TorchLearner:
    learner = learner_of("convnet", None, "adamw", seed)
    return cls(learner.suite, learner.family, learner.settings, seed=seed)
