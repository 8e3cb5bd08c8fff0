"""What `tune` tries: the numbers of `search_spaces`, and of the model itself how it reads pairs, its layers, its dropout.

Only what the user left open is tried: a setting that was given stays.
"""

from __future__ import annotations

import json

from sidequest.model_settings import EncoderSettings, HfSettings
from sidequest.models.search_spaces import OneOf, Space, search_space
from sidequest.models.texts import has_pairs
from sidequest.runs.setup import Setup

WITH_LAYERS = ("hf", "bilstm", "pooled")  # `autosem` is as it was published
FINE_TUNING_DROPOUTS = (None, 0.0, 0.2)  # None: the encoder's own


def choices(setup: Setup) -> tuple[Space, list[str]]:
    """The settings to try for the primary of a setup, and the names of those that would be tried had they not been given."""
    card = setup.suite.tasks[setup.suite.primary].card
    train = setup.train.model_copy(update={"learning_rate": usual_rate(setup)})
    space = search_space(setup.model.kind, card, setup.model, train) | model_choices(setup)
    given = {*setup.given}
    if "train.steps" in given:  # the same length in another unit
        given.add("train.epochs")
    return {name: part for name, part in space.items() if name not in given}, sorted(given & {*space})


def model_choices(setup: Setup) -> Space:
    """The choices for the primary of a setup. `layers` are the first ones of `hf`, and the last ones whose states others read."""
    settings, primary = setup.model, setup.suite.tasks[setup.suite.primary]
    space: Space = {}
    if isinstance(settings, HfSettings):
        if settings.pairing == "auto" and has_pairs(primary):
            space["model.pairing"] = OneOf(("cross", "bi"))
        if settings.dropout is None:
            space["model.dropout"] = OneOf(FINE_TUNING_DROPOUTS)
    if (
        settings.kind in WITH_LAYERS
        and isinstance(settings, EncoderSettings)
        and getattr(settings, "layers", 0) is None
    ):
        there = _layers(settings.encoder)
        if there > 1:
            space["model.layers"] = OneOf((None, -(-there // 2)))
    return space


def usual_rate(setup: Setup) -> float:
    """The learning rate that the primary is trained with untuned; many kinds of model have one of their own."""
    return setup.train.learning_rate or setup.family.default_learning_rate


def _layers(encoder: str) -> int:
    from sidequest.models.encoders import resolve  # imports torch

    config = json.loads((resolve(encoder).directory / "config.json").read_text(encoding="utf-8"))
    return int(config.get("num_hidden_layers") or config.get("n_layers") or 1)
