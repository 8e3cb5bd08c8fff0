"""How long and how fast each kind of model is trained when the user does not say. No torch here: a setup is cheap to make.

A rule sees the primary's card (its rows, objective, form) and gives any of the fields of `TrainSettings`; a length is best given
in `steps`, because a fixed number of epochs is far too little for few rows and too much for many. docs/models.md says of each
number what it was chosen on and against what, or that it was set by hand.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from sidequest.errors import SettingsError
from sidequest.settings import TrainSettings, parse
from sidequest.tasks.task import Form, TaskCard

Rule = Callable[[TaskCard], dict[str, Any]]


def _pooled(card: TaskCard) -> dict[str, Any]:
    # 156 steps for 300 rows. The read-out stands at its solution from the start: slow steps add what the shared part finds.
    return {"steps": max(60, round(9 * math.sqrt(card.rows))), "batch_size": 32, "evaluations": 5, "patience": None}


def _bilstm(card: TaskCard) -> dict[str, Any]:
    if card.form != Form.TOKENS:
        # It starts at a read-out, which large steps would leave before the LSTM has learned anything.
        return {
            "steps": max(100, round(12 * math.sqrt(card.rows))),
            "batch_size": 16,
            "learning_rate": 3e-4,
            "warmup": 0.1,
            "evaluations": 5,
            "patience": None,
        }
    # About 30 epochs of 200 sentences; longer for more rows, but by the root of their number: later rows teach less. Chosen on
    # *select* of chunking (201 sentences) and NER (120), with dropout 0.5, against 18·√rows and dropout 0.3.
    steps = max(250, round(30 * math.sqrt(card.rows)))
    return {
        "steps": steps,
        "batch_size": 16,
        "learning_rate": 2e-3,
        "warmup": 0.1,
        "decay": "cosine",
        "evaluations": 10,
        "patience": None,
        "keep": "last",
    }


def _convnet(card: TaskCard) -> dict[str, Any]:
    # 600 steps of 32 for up to some 2,000 rows. Chosen on *select* of the embedded digits and of MNIST, see docs/models.md.
    steps = max(600, round(13 * math.sqrt(card.rows)))
    return {
        "steps": steps,
        "batch_size": 32,
        "learning_rate": 3e-3,
        "evaluations": 10,
        "patience": None,
        "keep": "last",
    }


def _hf(card: TaskCard) -> dict[str, Any]:
    """`hf`: 16 √rows steps of 16 rows, or three epochs where that is more (from 7,300 rows on): 280 steps for 300 rows, 800 for
    2,500. The learning rate depends on the encoder's width, see `HfFamily`."""
    batch = 16
    steps = max(100, round(16 * math.sqrt(card.rows)), math.ceil(3 * card.rows / batch))
    return {"steps": steps, "batch_size": batch, "warmup": 0.1, "evaluations": 8, "patience": 4}


def _other(card: TaskCard) -> dict[str, Any]:
    """A network of which nothing is known (a user's own, another package's, a paper's): as many steps as `hf`, of 32 rows."""
    batch = 32
    steps = max(100, round(16 * math.sqrt(card.rows)), math.ceil(3 * card.rows / batch))
    return {"steps": steps, "batch_size": batch, "evaluations": 8, "patience": 4}


RULES: dict[str, Rule] = {"pooled": _pooled, "bilstm": _bilstm, "convnet": _convnet, "hf": _hf}
LENGTHS = ("epochs", "steps")


def training_settings(
    kind: str, card: TaskCard, suite: Mapping[str, Any], given: Mapping[str, Any], where: str
) -> TrainSettings:
    """The settings that a primary is trained with: those given, else the suite's, else the model kind's, else the field's own.

    A length in steps becomes the same length in epochs, so that all that follows knows one unit.
    """
    layers = [RULES.get(kind, _other)(card), suite, given]
    merged: dict[str, Any] = {}
    for layer in layers:
        lengths = [name for name in LENGTHS if layer.get(name) is not None]
        if len(lengths) > 1:
            both = " and ".join(f"{name}={layer[name]}" for name in lengths)
            raise SettingsError(f"{where}: {both} both say how long to train; give one of them")
        if lengths:  # a length in one unit replaces a length in the other
            merged = {name: value for name, value in merged.items() if name not in LENGTHS}
        merged |= layer
    settings = parse(TrainSettings, merged, where)
    if settings.steps is None:
        return settings
    batches = max(1, math.ceil(card.rows / settings.batch_size))
    return settings.model_copy(update={"epochs": settings.steps / batches, "steps": None})
