"""The powers of the torch learner, by the protocol that each keeps.

Which of them a model has is said by its family (`Family.powers`); a family may also bring powers of its own
(`Family.make_power`). So a power is offered where it works, and a method that needs another is refused before any work.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sidequest.errors import SettingsError
from sidequest.learning.protocol import (
    Deltas,
    Discrimination,
    GradientAlignment,
    HeadImportance,
    LabelScreen,
    PredictionGain,
    TaskDiscriminator,
    power_name,
)
from sidequest.learning.torch.alignment import AlignedTraining
from sidequest.learning.torch.core import Core
from sidequest.learning.torch.deltas import DeltaTraining
from sidequest.learning.torch.discriminator import Discriminating
from sidequest.learning.torch.head_importance import HeadCache, HeadScoring
from sidequest.learning.torch.prediction_gain import GainTraining
from sidequest.learning.torch.screening import LabelScreening
from sidequest.models.kinds import has_no


@dataclass(frozen=True)
class PowerStores:
    """Where powers keep what they computed between runs; None: nothing is kept.

    heads: importances of attention heads. discriminator: the directory of a discriminator and its ranking.
    """

    heads: HeadCache | None = None
    discriminator: Callable[[Discrimination], Path] | None = None


def make_power(core: Core, power: type, stores: PowerStores) -> object:
    """The object that gives this learner's model a power; an error that names models that have it, if this one has not."""
    own = core.family.make_power(power, core)
    if own is not None:
        return own
    if power not in core.family.powers:
        raise has_no(core.family.kind, power)
    if power is Deltas:
        return DeltaTraining(core)
    if power is PredictionGain:
        return GainTraining(core)
    if power is GradientAlignment:
        return AlignedTraining(core)
    if power is LabelScreen:
        return LabelScreening(core)
    if power is HeadImportance:
        return HeadScoring(core, stores.heads)
    if power is TaskDiscriminator:
        return Discriminating(core, stores.discriminator)
    raise SettingsError(f"model.kind={core.family.kind} names {power_name(power)} but does not make it")
