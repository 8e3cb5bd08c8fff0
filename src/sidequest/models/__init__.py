"""Models: a shared encoder and one head per task.

Belongs here: turning rows into tensors, networks, their export and prediction with exports. No training loop (that is
`learning/`). May import `learning.protocol`, `tasks`, `settings`, `files` and `errors`.

`family` and `load` import torch and transformers when called, so that importing this package stays cheap.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sidequest.errors import SettingsError
from sidequest.models.kinds import kind
from sidequest.settings import ModelSettings
from sidequest.tasks.suite import Suite
from sidequest.tasks.task import Form

if TYPE_CHECKING:
    from sidequest.models.base import Family
    from sidequest.models.predictor import Predictor

__all__ = ["family", "kind_of", "load"]

# The settings that each kind of model looks at: any other that is set is a mistake worth telling.
USED_SETTINGS = {
    "hf": {"encoder", "max_length", "layers", "freeze", "pooling", "precision", "dropout", "lora"},
    "bilstm": {"encoder", "max_length", "layers", "precision", "hidden", "depth", "dropout"},
    "autosem": {"encoder", "max_length", "layers", "precision", "hidden", "depth", "dropout"},
    "pooled": {"encoder", "max_length", "precision", "hidden", "depth", "dropout"},
    "convnet": {"hidden", "dropout"},
    "custom": {"encoder", "factory", "max_length"},
}


def kind_of(suite: Suite, settings: ModelSettings) -> str:
    """The kind of model that the settings mean: `auto` is `convnet` for a suite of images and `hf` otherwise."""
    if settings.kind != "auto":
        return settings.kind
    return "convnet" if all(task.form == Form.IMAGE for task in suite.tasks.values()) else "hf"


def family(suite: Suite, settings: ModelSettings) -> Family:
    """The family of models that the settings ask for."""
    settings = settings.model_copy(update={"kind": kind_of(suite, settings)})
    used = USED_SETTINGS[settings.kind] | {"kind"}
    for name, field in ModelSettings.model_fields.items():
        if name not in used and getattr(settings, name) != field.default:
            raise SettingsError(
                f"model.{name}={getattr(settings, name)} has no effect on model.kind={settings.kind}, which takes "
                f"{', '.join(sorted(used - {'kind'}))}"
            )
    return kind(settings.kind).load()(suite, settings)


def load(directory: Path | str, *, factory: str | None = None, device: str | None = None) -> Predictor:
    """A predictor from an exported model. factory: for a `custom` model, the user's function that builds it. device: see
    `devices`."""
    from sidequest.models.predictor import Predictor

    return Predictor.load(directory, factory=factory, device=device)
