"""Models: a shared encoder and one head per task.

Belongs here: turning rows into tensors, networks, their export and prediction with exports. No training loop (that is
`learning/`). May import `learning.protocol`, `tasks`, `settings`, `files` and `errors`.

`family` and `load` import torch and transformers when called, so that importing this package stays cheap.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sidequest.model_settings import AUTO, ModelSettings
from sidequest.models.kinds import family_class
from sidequest.tasks.suite import Suite
from sidequest.tasks.task import Form

if TYPE_CHECKING:
    from sidequest.models.base import Family
    from sidequest.models.predictor import Predictor

__all__ = ["family", "load", "resolved_kind"]


def resolved_kind(suite: Suite, kind: str) -> str:
    """The kind of model that a name means for a suite: `auto` is `convnet` where all tasks are of images, else `hf`."""
    if kind != AUTO:
        return kind
    return "convnet" if all(task.form == Form.IMAGE for task in suite.tasks.values()) else "hf"


def family(suite: Suite, settings: ModelSettings) -> Family:
    """The family of models that the settings ask for."""
    return family_class(settings.kind)(suite, settings)


def load(directory: Path | str, *, factory: str | None = None, device: str | None = None) -> Predictor:
    """A predictor from an exported model. factory: for a `custom` model, the user's function that builds it. device: see
    `devices`."""
    from sidequest.models.predictor import Predictor

    return Predictor.load(directory, factory=factory, device=device)
