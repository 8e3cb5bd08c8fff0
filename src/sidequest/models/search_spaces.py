"""What `tune` tries: for each kind of model the settings worth searching, around the defaults. No torch here."""

from __future__ import annotations

import math
from dataclasses import dataclass

from sidequest.model_settings import ModelSettings
from sidequest.settings import TrainSettings
from sidequest.tasks.task import TaskCard

RATE_FACTOR, LENGTH_FACTOR = 8.0, 3.0  # the search goes this far above and below the default
FALLBACK_RATES = {"hf": 1e-4}  # where the settings give no rate, since it is the model's own
OTHER_RATE = 1e-3
DROPOUTS = (0.0, 0.1, 0.3, 0.5)


@dataclass(frozen=True)
class Range:
    """A number searched on a logarithmic scale."""

    low: float
    high: float


@dataclass(frozen=True)
class OneOf:
    """One of a few values."""

    values: tuple[object, ...]


Space = dict[str, Range | OneOf]  # by the name of the setting: train.learning_rate, model.dropout, …


def search_space(kind: str, card: TaskCard, model: ModelSettings, train: TrainSettings) -> Space:
    """The space around the settings that the primary would be trained with untuned."""
    rate = train.learning_rate or FALLBACK_RATES.get(kind, OTHER_RATE)
    space: Space = {
        "train.learning_rate": Range(rate / RATE_FACTOR, rate * RATE_FACTOR),
        "train.epochs": Range(train.epochs / LENGTH_FACTOR, train.epochs * LENGTH_FACTOR),
        "train.weight_decay": Range(1e-3, 1.0),
    }
    if kind in ("pooled", "bilstm", "convnet"):
        space["model.dropout"] = OneOf(DROPOUTS)
    return space


def edges(space: Space, chosen: dict[str, object], margin: float = 0.05) -> list[str]:
    """The numbers of a choice that lie at the edge of their range: the best may lie beyond it."""
    return [
        f"{name}={value:.3g} lies at the edge of the search from {dimension.low:.3g} to {dimension.high:.3g}"
        for name, value in chosen.items()
        if isinstance(dimension := space.get(name), Range)
        and isinstance(value, (int, float))
        and not margin < _position(dimension, float(value)) < 1 - margin
    ]


def _position(dimension: Range, value: float) -> float:
    """Where a value lies in its range on the logarithmic scale: 0 at the low end, 1 at the high one."""
    return math.log(value / dimension.low) / math.log(dimension.high / dimension.low)
