"""Images as inputs: kept as they are (uint8 stays one byte per pixel), turned into float tensors batch by batch."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from sidequest.errors import DataError, SettingsError
from sidequest.models.base import Batch, Inputs, Targets, TargetScale
from sidequest.models.readout import Features
from sidequest.tasks.examples import Examples
from sidequest.tasks.task import Task

PROBE_SIDE = (
    28  # pixels on a side that a linear read-out sees, at most: more of them are hundreds of thousands of weights
)


@dataclass(frozen=True)
class Preparation:
    """How pixels become numbers: uint8 is divided by 255, floats are taken as they are; then resized and standardised.

    size, channels: what the model takes; None takes images as they are.
    """

    size: tuple[int, int] | None = None
    channels: int | None = None
    mean: tuple[float, ...] = ()
    deviation: tuple[float, ...] = ()

    def __call__(self, images: np.ndarray) -> Tensor:
        """[n, channels, height, width], uint8 or float → float32 of the model's shape."""
        pixels = torch.from_numpy(np.ascontiguousarray(images))
        values = pixels.float() / 255 if pixels.dtype == torch.uint8 else pixels.float()
        if self.size is not None and tuple(values.shape[-2:]) != self.size:
            values = functional.interpolate(values, self.size, mode="bilinear", antialias=True, align_corners=False)
        if self.channels is not None and values.shape[1] != self.channels:
            values = values.expand(-1, self.channels, -1, -1)  # grey to colour
        if self.mean:
            values = (values - torch.tensor(self.mean)[:, None, None]) / torch.tensor(self.deviation)[:, None, None]
        return values

    @classmethod
    def of_encoder(cls, config: Any, directory: Path) -> Preparation:
        """What a vision encoder was trained with; the customary 0.5 and 0.5 where its directory does not say."""
        size = config.image_size
        mean, deviation = [0.5] * config.num_channels, [0.5] * config.num_channels
        recipe = directory / "preprocessor_config.json"
        if recipe.is_file():
            told = json.loads(recipe.read_text(encoding="utf-8"))
            mean, deviation = told.get("image_mean") or mean, told.get("image_std") or deviation
        shape = (size, size) if isinstance(size, int) else tuple(size)
        return cls(shape, config.num_channels, tuple(mean), tuple(deviation))

    def to_processor(self) -> dict[str, Any]:
        """The same, in the words of transformers' `preprocessor_config.json`."""
        assert self.size is not None
        return {
            "image_processor_type": "ViTImageProcessor",
            "do_resize": True,
            "size": {"height": self.size[0], "width": self.size[1]},
            "do_rescale": True,
            "rescale_factor": 1 / 255,
            "do_normalize": True,
            "image_mean": list(self.mean),
            "image_std": list(self.deviation),
        }


class ImageInputs(Inputs):
    """Rows with an image each; `key` is the model's name for them."""

    def __init__(self, task: Task, examples: Examples, scale: TargetScale, prepare: Preparation, key: str) -> None:
        self.images = image_column(task, examples)
        if prepare.channels is not None and self.images.shape[1] not in (1, prepare.channels):
            raise SettingsError(
                f"task {task.name!r}: images have {self.images.shape[1]} channels, the encoder takes {prepare.channels}"
            )
        self.lengths = np.ones(len(examples), dtype=np.int64)
        self.targets = Targets(task, examples, scale)
        self.prepare, self.key = prepare, key

    def collate(self, positions: np.ndarray) -> Batch:
        return self.targets.into({self.key: self.prepare(self.images[positions])}, positions)


def image_column(task: Task, examples: Examples) -> np.ndarray:
    images = examples.columns["image"]
    if not isinstance(images, np.ndarray) or images.ndim != 4:
        found = getattr(images, "shape", type(images).__name__)
        raise DataError(f"task {task.name!r}: images have the shape [rows, channels, height, width], found {found}")
    return images


def common_shape(tasks: list[Task]) -> tuple[int, int, int]:
    """The (channels, height, width) that all tasks' images have."""
    shapes = {task.name: tuple(image_column(task, next(iter(task.splits.values()))).shape[1:]) for task in tasks}
    first = next(iter(shapes.values()))
    for name, shape in shapes.items():
        if shape != first:
            raise SettingsError(
                f"tasks share one network, so their images have one shape (channels, height, width): {next(iter(shapes))!r} has "
                f"{first}, {name!r} has {shape}"
            )
    channels, height, width = first
    return channels, height, width


def pixel_features(task: Task, examples: Examples) -> Features:
    """The pixels, for a linear read-out; images larger than 28×28 are averaged down to that."""
    images = image_column(task, examples)
    pixels = Preparation()(images)
    height, width = pixels.shape[-2:]
    if max(height, width) > PROBE_SIDE and len(pixels):
        size = (min(height, PROBE_SIDE), min(width, PROBE_SIDE))
        pixels = functional.adaptive_avg_pool2d(pixels, size)
    return Features(pixels.flatten(1).numpy())
