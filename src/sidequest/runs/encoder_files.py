"""What a stranger's encoder says of itself, checked before a library builds it: a few bytes can ask for a million layers."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import Any

from sidequest.errors import SettingsError, first_line
from sidequest.files import read_json
from sidequest.model_settings import EncoderSettings, ModelSettings
from sidequest.paths import input_file, user_path, what_is_at
from sidequest.settings import brief

CONFIG, INDEX = "config.json", "model.safetensors.index.json"
TOKENISER, TOKENISER_CONFIG = "tokenizer.json", "tokenizer_config.json"
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
    for file in directory.iterdir():
        if what_is_at(file) == "other":  # to read from a pipe is to wait for somebody to write
            input_file(file, "a file of an encoder")
    path, config = directory / CONFIG, _object(directory / CONFIG)
    for name, value in config.items():
        most = MOST_LAYERS if LAYERS.fullmatch(name) else LARGEST_SIZE if SIZES.fullmatch(name) else None
        if most is not None and value is not None and not _fits(value, most):
            raise SettingsError(f"{path}: {name}: a whole number from 1 to {most}, found {brief(value)}")
    width, heads = config.get("hidden_size"), config.get("num_attention_heads")
    if width and heads and not config.get("head_dim") and isinstance(heads, int) and width % heads:
        raise SettingsError(f"{path}: num_attention_heads: hidden_size {width} is no multiple of {heads}")
    _check_tokeniser(directory)
    for name in _parts(directory / INDEX):
        if not isinstance(name, str) or Path(name).name != name:
            raise SettingsError(f"{directory / INDEX}: weight_map: files beside it, found {brief(name)}")


def _check_tokeniser(directory: Path) -> None:
    if (path := directory / TOKENISER_CONFIG).is_file():
        longest = _object(path).get("model_max_length")
        if longest is not None and (isinstance(longest, bool | str | list | dict) or not longest >= 1):
            raise SettingsError(f"{path}: model_max_length: a number from 1, found {brief(longest)}")
    if (path := directory / TOKENISER).is_file():
        facts = path.stat()
        if fault := _tokeniser_fault(path.resolve(), facts.st_size, facts.st_mtime_ns):
            raise SettingsError(f"{path}: not a tokeniser: {fault}")


@functools.lru_cache
def _tokeniser_fault(path: Path, size: int, changed: int) -> str:
    """Why a file cannot be read as one; empty if it can. Once for each content: it may take a tenth of a second."""
    from tokenizers import Tokenizer

    try:
        Tokenizer.from_file(str(path))
    except Exception as error:  # it raises nothing more special
        return first_line(error)
    return ""


def _parts(path: Path) -> list[Any]:
    """The files of weights in several parts, as their index names them."""
    found = _object(path).get("weight_map") if path.is_file() else {}
    if not isinstance(found, dict):
        raise SettingsError(f"{path}: weight_map: an object is needed here, found {type(found).__name__}")
    return list({str(name): name for name in found.values()}.values())


def _object(path: Path) -> dict[str, Any]:
    found = read_json(input_file(path, "a file of an encoder"))
    if not isinstance(found, dict):
        raise SettingsError(f"{path}: an object is needed here, found {type(found).__name__}")
    return found


def _fits(value: Any, most: int) -> bool:
    """Some write a number for each part, as a list."""
    if isinstance(value, list):
        return all(_fits(each, most) for each in value)
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= most
