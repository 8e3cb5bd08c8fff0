"""Pretrained encoders: from a name to a directory, a fingerprint of its weights, a model and a tokeniser.

Code from a hub is never run (`trust_remote_code` is never set), and weights are read from safetensors alone: the older files
(`pytorch_model.bin`) are pickles, which run code when they are read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from sidequest.errors import SettingsError, first_line
from sidequest.models.base import seeded
from sidequest.models.local_encoders import MODULES, demo_directory, pools_by_mean
from sidequest.paths import shown, user_path, what_is_at
from sidequest.store import remembered_digest

# What an encoder's directory may hold besides its weights; everything else (ONNX copies, model cards) is left alone.
SMALL_FILES = (
    "config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.txt",
    "vocab.json",
    "merges.txt",
    "sentencepiece.bpe.model",
    "spiece.model",
    "spm.model",
    "preprocessor_config.json",
)
SAFE_WEIGHTS = ("model*.safetensors", "model.safetensors.index.json")


# What says how an encoder of sentence-transformers pools; not part of the encoder itself.
POOLING_FILES = (MODULES, "1_Pooling/config.json")


@dataclass(frozen=True)
class Encoder:
    """A pretrained encoder on disk. `name` is what the user called it."""

    name: str
    directory: Path

    def files(self) -> list[Path]:
        """The files that make up the encoder: configuration, tokeniser and weights."""
        small = [self.directory / name for name in SMALL_FILES if (self.directory / name).is_file()]
        return small + self.weights()

    def weights(self) -> list[Path]:
        if found := sorted(path for pattern in SAFE_WEIGHTS for path in self.directory.glob(pattern)):
            return found
        hint = ""
        if next(self.directory.glob("pytorch_model*.bin"), None) is not None:
            hint = "; pytorch_model.bin is a pickle, which could run code: save the encoder with a recent transformers"
        raise SettingsError(f"model.encoder={self.name}: {self.directory} holds no model.safetensors{hint}")

    def fingerprint(self) -> str:
        """A digest of configuration and weights: equal for equal contents, wherever they lie."""
        digest = hashlib.sha256((self.directory / "config.json").read_bytes())
        for path in self.weights():
            digest.update(remembered_digest(path).encode())
        return digest.hexdigest()

    def pools_by_mean(self) -> bool:
        """Whether the encoder was trained to mean something by the mean of its states, as its sentence-transformers files say."""
        return pools_by_mean(self.directory)

    def tokeniser_fingerprint(self) -> str:
        digest = hashlib.sha256()
        for name in SMALL_FILES:
            path = self.directory / name
            if name != "config.json" and path.is_file():
                digest.update(name.encode() + path.read_bytes())
        return digest.hexdigest()


def resolve(name: str) -> Encoder:
    """`minilm`, a directory, or a hub name → the encoder on disk, downloaded if it must be."""
    if name == "minilm":
        return Encoder(name, demo_directory())
    directory = user_path(name, "model.encoder")
    if what_is_at(directory) == "directory":
        if not (directory / "config.json").is_file():
            raise SettingsError(f"model.encoder={name}: the directory has no config.json, so it holds no encoder")
        return Encoder(name, directory)
    if directory.is_absolute() or name.startswith((".", "~")) or name.count("/") > 1 or directory.exists():
        raise SettingsError(f"model.encoder={shown(name)}: no such directory")
    return Encoder(name, _download(name))


def _download(name: str) -> Path:
    from huggingface_hub import snapshot_download

    # Weights in nested directories are copies for other engines, and pickled weights are not fetched beside safe ones.
    skip = ["*/*"]
    try:
        snapshot_download(name, allow_patterns=[*SMALL_FILES, *SAFE_WEIGHTS], ignore_patterns=skip)
        return Path(snapshot_download(name, allow_patterns=[*POOLING_FILES]))
    except Exception as error:  # the hub client raises a different class for each way a network can fail
        reason = str(error).strip().splitlines()
        raise SettingsError(
            f"model.encoder={name}: neither a directory nor `minilm`, and it could not be fetched from the hub "
            f"({type(error).__name__}: {reason[0] if reason else 'no details'})"
        ) from None


@dataclass(frozen=True)
class Pretrained:
    """A loaded base model. `fresh`: the names of parameters that the weights did not hold (a missing pooler)."""

    model: Any
    fresh: tuple[str, ...]


def load_config(encoder: Encoder, *, layers: int | None = None, dropout: float | None = None) -> Any:
    """The encoder's configuration with only the first `layers` layers, and with every dropout rate set, if asked for."""
    from transformers import AutoConfig

    try:
        config = AutoConfig.from_pretrained(encoder.directory)
    except Exception as error:  # transformers reads files that others wrote: it may fail in any way
        raise SettingsError(f"model.encoder={encoder.name}: {first_line(error)}") from None
    if layers is not None:
        if layers > config.num_hidden_layers:
            raise SettingsError(f"model.layers={layers}: {encoder.name} has {config.num_hidden_layers} layers")
        config.num_hidden_layers = layers
        if getattr(config, "layer_types", None):
            config.layer_types = config.layer_types[:layers]
    if dropout is not None:
        for name, value in config.to_dict().items():
            if "dropout" in name and isinstance(value, int | float) and not isinstance(value, bool):
                setattr(config, name, dropout)
    return config


def skeleton(encoder: Encoder, config: Any) -> Any:
    """The encoder's base model without values (on the meta device): what can be asked of it before the weights are read."""
    from transformers import AutoModel

    with quiet_transformers(), torch.device("meta"):
        try:
            return AutoModel.from_config(config)
        except Exception as error:  # as above
            raise SettingsError(f"model.encoder={encoder.name}: {first_line(error)}") from None


def load_base(encoder: Encoder, config: Any) -> Pretrained:
    """The encoder's base model in float32, in evaluation mode. Every weight but a pooler's must be found in the files."""
    from transformers import AutoModel

    # A pooler that the files do not hold gets values here; they are drawn again for each seed when a model is built.
    with quiet_transformers(), seeded(0, "fresh parameters"):
        try:
            model, found = AutoModel.from_pretrained(
                encoder.directory, config=config, dtype=torch.float32, output_loading_info=True, use_safetensors=True
            )
        except Exception as error:  # as above
            raise SettingsError(f"model.encoder={encoder.name}: {first_line(error)}") from None
    fresh = tuple(sorted(found["missing_keys"]))
    if strange := [name for name in fresh if not name.startswith("pooler.")]:
        raise SettingsError(
            f"model.encoder={encoder.name}: the weights do not fit the configuration; missing {strange[0]!r}"
            + (f" and {len(strange) - 1} more" if len(strange) > 1 else "")
        )
    return Pretrained(model.eval(), fresh)


def load_tokeniser(encoder: Encoder, *, words: bool = False) -> Any:
    """The encoder's fast tokeniser; with `words`, one that can take sentences already split into words."""
    from tokenizers.pre_tokenizers import ByteLevel
    from transformers import AutoTokenizer

    try:
        with quiet_transformers():
            tokeniser = AutoTokenizer.from_pretrained(encoder.directory)
            if words and tokeniser.is_fast and isinstance(tokeniser.backend_tokenizer.pre_tokenizer, ByteLevel):
                # Byte-level tokenisers know a word by the space before it: words given alone need that space put back.
                # Classes of their own take the option; the generic class passes it on to nobody.
                tokeniser = AutoTokenizer.from_pretrained(encoder.directory, add_prefix_space=True)
                splitter = tokeniser.backend_tokenizer.pre_tokenizer
                splitter.add_prefix_space = True
                tokeniser.backend_tokenizer.pre_tokenizer = splitter
    except Exception as error:  # as above
        raise SettingsError(f"model.encoder={encoder.name}: no tokeniser: {first_line(error)}") from None
    if not tokeniser.is_fast:
        raise SettingsError(f"model.encoder={encoder.name}: its tokeniser has no fast version, which sidequest needs")
    return tokeniser


def longest_input(config: Any, tokeniser: Any, model: Any = None) -> int | None:
    """How many tokens the encoder takes: the smaller of the tokeniser's limit and the number of positions; None: no limit."""
    limits = []
    if tokeniser is not None and tokeniser.model_max_length < 1_000_000:  # "no limit" is written as 1e30
        limits.append(int(tokeniser.model_max_length))
    positions = getattr(config, "max_position_embeddings", None)
    if positions and positions > 0:
        # RoBERTa's family counts positions from padding_idx + 1 and so takes fewer tokens than it has positions.
        table = getattr(getattr(model, "embeddings", None), "position_embeddings", None)
        padding = getattr(table, "padding_idx", None)
        limits.append(int(positions) - (0 if padding is None else padding + 1))
    return min(limits, default=None)


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """No progress bars and loading reports on the user's terminal: what matters in them is checked here instead."""
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
