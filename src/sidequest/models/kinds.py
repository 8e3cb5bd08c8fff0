"""The kinds of models, by the name that `model.kind` gives them. No torch here: listing and refusing are cheap."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sidequest.errors import SettingsError
from sidequest.learning.protocol import (
    Deltas,
    GradientAlignment,
    HeadImportance,
    LabelScreen,
    PredictionGain,
    TaskDiscriminator,
    power_name,
)
from sidequest.model_settings import load_plugin, plugins

if TYPE_CHECKING:
    from sidequest.models.base import Family

EVERY_MODEL: frozenset[type] = frozenset({Deltas, PredictionGain, GradientAlignment, LabelScreen, TaskDiscriminator})


@dataclass(frozen=True)
class Kind:
    """family: `module:Class`, imported when a model is made. powers: what methods may ask of its models beyond training."""

    family: str
    powers: frozenset[type] = EVERY_MODEL


KINDS: dict[str, Kind] = {
    "hf": Kind("sidequest.models.hf:HfFamily", EVERY_MODEL | {HeadImportance}),
    "bilstm": Kind("sidequest.models.bilstm:BiLstmFamily"),
    "autosem": Kind("sidequest.models.autosem:AutoSeMFamily"),
    "pooled": Kind("sidequest.models.pooled:PooledFamily"),
    "convnet": Kind("sidequest.models.convnet:ConvFamily"),
    "alphavil": Kind("sidequest.models.convnet:AlphaVILFamily"),
    # What a factory makes may have attention heads; whether it has is seen when it is made.
    "custom": Kind("sidequest.models.custom:CustomFamily", EVERY_MODEL | {HeadImportance}),
}


def kind_names() -> list[str]:
    return [*KINDS, *sorted(plugins())]


def family_class(kind: str) -> type[Family]:
    """The class of a kind of model, ours or another installed package's."""
    if kind not in KINDS:
        return load_plugin(kind)
    module, _, name = KINDS[kind].family.partition(":")
    return getattr(importlib.import_module(module), name)


def powers_of(kind: str) -> frozenset[type]:
    """What methods may ask of a kind's models beyond training; nothing of a package that cannot be imported."""
    if kind in KINDS:
        return KINDS[kind].powers
    try:
        return family_class(kind).powers
    except SettingsError:
        return frozenset()


def has_no(kind_name: str, power: type) -> SettingsError:
    """What a method is told whose power this kind of model lacks, with the kinds that have it."""
    able = kinds_with(power)
    advice = f"set model.kind to {' or '.join(able)}" if able else "no kind of model that is installed has it"
    return SettingsError(f"model.kind={kind_name} has no {power_name(power)}: {advice}")


def kinds_with(power: type) -> list[str]:
    """The kinds of models that have a power, as `model.kind` names them."""
    return [name for name in kind_names() if power in powers_of(name)]
