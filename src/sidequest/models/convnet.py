"""Small convolutional networks for images: conv 5×5, pool, conv 5×5, pool, a linear layer, one linear head per task.

`convnet` is made for few rows: 16 and 32 channels, 128 units, dropout, and in training each image is turned, zoomed and moved a
little.
`alphavil` is αVIL's own network, 10 and 20 channels and 50 units without either, for its reproduction: on MultiMNIST's 28×28 its
linear layer has 320 inputs, as in the paper. `convnet` pads images by 2 before each convolution, so that what is at their edges
counts as much; `alphavil` does so below 16×16 only, because nothing would be left of them otherwise.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from sidequest.errors import SettingsError
from sidequest.files import atomic_directory
from sidequest.model_settings import AlphaVILSettings, ConvnetSettings
from sidequest.models.base import Batch, Family, Inputs, MultiTaskModel, head_key, seeded
from sidequest.models.heads import answers, linear_heads
from sidequest.models.images import PROBE_SIDE, ImageInputs, Preparation, common_shape, pixel_features
from sidequest.models.readout import Features
from sidequest.models.saved import task_state, write_card, write_weights
from sidequest.tasks.examples import Examples
from sidequest.tasks.suite import Suite
from sidequest.tasks.task import Form, Task

KERNEL = 5
SMALLEST, UNPADDED = 4, 16


class ConvModel(MultiTaskModel):
    """Two convolutions and a linear layer, shared; one linear head per task."""

    def __init__(
        self, suite: Suite, settings: ConvnetSettings | AlphaVILSettings, shape: tuple[int, int, int], seed: int
    ) -> None:
        super().__init__()
        channels, *sides = shape
        if min(sides) < SMALLEST:
            raise SettingsError(
                f"model.kind={settings.kind} takes images of at least {SMALLEST}×{SMALLEST}, found {sides[0]}×{sides[1]}"
            )
        padding = 0 if settings.kind == "alphavil" and min(sides) >= UNPADDED else KERNEL // 2
        flat = settings.channels[1]
        for side in sides:
            for _ in settings.channels:
                side = (side + 2 * padding - KERNEL + 1) // 2
            flat *= side
        hidden = settings.hidden
        with seeded(seed, "trunk"):
            self.conv1 = nn.Conv2d(channels, settings.channels[0], KERNEL, padding=padding)
            self.conv2 = nn.Conv2d(*settings.channels, KERNEL, padding=padding)
            self.linear = nn.Linear(flat, hidden)
        self.rotate, self.zoom, self.shift = settings.rotate, settings.zoom, settings.shift
        self.dropout = nn.Dropout(settings.dropout)
        self.heads = linear_heads(suite.tasks.values(), lambda task: hidden, seed)
        self.objectives = {task.name: task.objective for task in suite.tasks.values()}
        # Twice as fast on a CPU; values and shapes are the same. (torch's stubs do not know the argument.)
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def forward(self, task: str, batch: Batch) -> Tensor:
        image = batch["image"]
        if self.training and (self.rotate or self.zoom or self.shift):
            image = distorted(image, self.rotate, self.zoom, self.shift)
        x = functional.max_pool2d(self.conv1(image), 2).relu()
        x = functional.max_pool2d(self.conv2(x), 2).relu()
        x = self.dropout(self.linear(self.dropout(x.flatten(1))).relu())
        return answers(self.heads[head_key(task)](x), self.objectives[task], batch)


def distorted(images: Tensor, rotate: float, zoom: float, shift: float) -> Tensor:
    """Each image [n, channels, height, width] turned by up to `rotate` degrees, scaled by up to 1 ± `zoom` and moved by up to
    `shift` pixels, each drawn evenly for each image; what comes in from outside is zero.

    Draws from torch's generator, as dropout does: a resumed training draws the same.
    """
    n, _, height, width = images.shape
    turn, size, down, right = torch.rand(4, n, device=images.device, dtype=images.dtype) * 2 - 1
    angle, size = turn * math.radians(rotate), 1 + size * zoom
    # Where each place of the result comes from, in coordinates from -1 to 1 of both sides.
    rows = [
        torch.stack([size * angle.cos(), -size * angle.sin() * height / width, right * 2 * shift / width], dim=1),
        torch.stack([size * angle.sin() * width / height, size * angle.cos(), down * 2 * shift / height], dim=1),
    ]
    places = functional.affine_grid(torch.stack(rows, dim=1), list(images.shape), align_corners=False)
    moved = functional.grid_sample(images, places, align_corners=False)
    return moved.contiguous(memory_format=torch.channels_last)


class ConvFamily(Family):
    """A convolutional network for few rows."""

    kind: ClassVar[str] = "convnet"
    Settings: ClassVar[type[ConvnetSettings] | type[AlphaVILSettings]] = ConvnetSettings
    settings: ConvnetSettings | AlphaVILSettings
    forms: ClassVar[tuple[Form, ...]] = (Form.IMAGE,)
    default_learning_rate = 1e-3

    def __init__(self, suite: Suite, settings: ConvnetSettings | AlphaVILSettings) -> None:
        super().__init__(suite, settings)
        self.shape = common_shape(list(suite.tasks.values()))

    def inputs(self, task: Task, examples: Examples) -> Inputs:
        inputs = ImageInputs(task, examples, self.scales[task.name], Preparation(), "image")
        if (found := inputs.images.shape[1:]) != self.shape:
            raise SettingsError(
                f"task {task.name!r}: the model takes images of the shape (channels, height, width) {self.shape}, found {found}"
            )
        return inputs

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


class AlphaVILFamily(ConvFamily):
    """αVIL's own network, for its reproduction."""

    kind: ClassVar[str] = "alphavil"
    Settings = AlphaVILSettings
