"""`convnet`: αVIL's network for images: conv 10@5×5, pool, conv 20@5×5, pool, linear → 50, one linear head per task.

On MultiMNIST's 28×28 the linear layer has 320 inputs, as in the paper; other sizes give other numbers. Images below 16×16 (the
embedded digits) are padded by 2 before each convolution, because nothing would be left of them otherwise.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from sidequest.errors import SettingsError
from sidequest.files import atomic_directory
from sidequest.model_settings import ConvnetSettings
from sidequest.models.base import Batch, Family, Inputs, MultiTaskModel, head_key, seeded
from sidequest.models.images import PROBE_SIDE, ImageInputs, Preparation, common_shape, pixel_features
from sidequest.models.readout import Features
from sidequest.models.saved import task_state, write_card, write_weights
from sidequest.tasks.examples import Examples
from sidequest.tasks.suite import Suite
from sidequest.tasks.task import Form, Objective, Task

CHANNELS, KERNEL = (10, 20), 5
SMALLEST, UNPADDED = 4, 16


class ConvModel(MultiTaskModel):
    """Two convolutions and a linear layer, shared; one linear head per task."""

    def __init__(self, suite: Suite, settings: ConvnetSettings, shape: tuple[int, int, int], seed: int) -> None:
        super().__init__()
        channels, *sides = shape
        if min(sides) < SMALLEST:
            raise SettingsError(
                f"model.kind=convnet takes images of at least {SMALLEST}×{SMALLEST}, found {sides[0]}×{sides[1]}"
            )
        padding = 0 if min(sides) >= UNPADDED else KERNEL // 2
        flat = CHANNELS[1]
        for side in sides:
            for _ in CHANNELS:
                side = (side + 2 * padding - KERNEL + 1) // 2
            flat *= side
        hidden = settings.hidden
        with seeded(seed, "trunk"):
            self.conv1 = nn.Conv2d(channels, CHANNELS[0], KERNEL, padding=padding)
            self.conv2 = nn.Conv2d(CHANNELS[0], CHANNELS[1], KERNEL, padding=padding)
            self.linear = nn.Linear(flat, hidden)
        self.dropout = nn.Dropout(settings.dropout)
        self.heads = nn.ModuleDict()
        for task in suite.tasks.values():
            with seeded(seed, "head", task.name):
                self.heads[head_key(task.name)] = nn.Linear(hidden, task.outputs)
        self.objectives = {task.name: task.objective for task in suite.tasks.values()}
        # Twice as fast on a CPU; values and shapes are the same. (torch's stubs do not know the argument.)
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def forward(self, task: str, batch: Batch) -> Tensor:
        x = functional.max_pool2d(self.conv1(batch["image"]), 2).relu()
        x = functional.max_pool2d(self.conv2(x), 2).relu()
        x = self.dropout(self.linear(x.flatten(1)).relu())
        logits = self.heads[head_key(task)](x)
        return logits[:, 0] if self.objectives[task] == Objective.REGRESSION else logits


class ConvFamily(Family):
    """αVIL's convolutional network."""

    kind: ClassVar[str] = "convnet"
    Settings = ConvnetSettings
    settings: ConvnetSettings
    forms: ClassVar[tuple[Form, ...]] = (Form.IMAGE,)
    default_learning_rate: ClassVar[float] = 1e-3

    def __init__(self, suite: Suite, settings: ConvnetSettings) -> None:
        super().__init__(suite, settings)
        self.shape = common_shape(list(suite.tasks.values()))

    def inputs(self, task: Task, examples: Examples) -> Inputs:
        return ImageInputs(task, examples, self.scales[task.name], Preparation(), "image")

    def features(self, task: Task, examples: Examples) -> Features:
        return pixel_features(task, examples)

    def features_key(self) -> Any:
        return ["pixels", PROBE_SIDE]

    def build(self, seed: int) -> ConvModel:
        return ConvModel(self.suite, self.settings, self.shape, seed)

    def export(self, model: MultiTaskModel, task: Task, directory: Path) -> None:
        with atomic_directory(directory) as place:
            write_weights(place, task_state(model, task.name))
            settings = self.settings.model_copy(update={"kind": self.kind})
            write_card(place, task, settings, loads_with="sidequest.models.load", scale=self.scales[task.name])
