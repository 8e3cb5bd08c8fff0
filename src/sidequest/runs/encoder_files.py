"""What a stranger's encoder says of itself, checked before a library builds it: a few bytes can ask for a million layers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from sidequest.errors import SettingsError
from sidequest.files import read_json
from sidequest.model_settings import EncoderSettings, ModelSettings
from sidequest.paths import input_file, user_path, what_is_at
from sidequest.settings import brief

CONFIG = "config.json"
LAYERS = re.compile(r"num_(hidden_|encoder_|decoder_)?layers|n_layers?|(en|de)coder_layers")
SIZES = re.compile(r"\w+_size|num_\w*heads|n_heads?|d_model|dim|max_position_embeddings")
MOST_LAYERS, LARGEST_SIZE = 1000, 10**8


def check_encoder(settings: ModelSettings) -> None:
    """Refuse an encoder on this disk whose numbers cannot be. One on a hub has no file here yet."""
    if isinstance(settings, EncoderSettings) and settings.encoder != "minilm":
        check_config(user_path(settings.encoder, "model.encoder"))


def check_config(directory: Path) -> None:
    """The same for a directory; one without `config.json` is left to others."""
    if what_is_at(directory) != "directory" or what_is_at(directory / CONFIG) == "nothing":
        return
    path = input_file(directory / CONFIG, "an encoder's configuration")
    config = read_json(path)
    if not isinstance(config, dict):
        raise SettingsError(f"{path}: an object is needed here, found {type(config).__name__}")
    for name, value in config.items():
        most = MOST_LAYERS if LAYERS.fullmatch(name) else LARGEST_SIZE if SIZES.fullmatch(name) else None
        if most is not None and value is not None and not _fits(value, most):
            raise SettingsError(f"{path}: {name}: a whole number from 1 to {most}, found {brief(value)}")
    width, heads = config.get("hidden_size"), config.get("num_attention_heads")
    if width and heads and not config.get("head_dim") and isinstance(heads, int) and width % heads:
        raise SettingsError(f"{path}: num_attention_heads: hidden_size {width} is no multiple of {heads}")


def _fits(value: Any, most: int) -> bool:
    """Some write a number for each part, as a list."""
    if isinstance(value, list):
        return all(_fits(each, most) for each in value)
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= most
