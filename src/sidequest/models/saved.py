"""Exported models on disk: a directory with `sidequest.json` beside the weights.

`sidequest.json` says which task the model solves and how its inputs are made, so that `sidequest.models.load` needs nothing else.
A directory is written beside its place and then renamed: a crash leaves the old model or the new one.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from safetensors.torch import save_file
from torch import Tensor, nn

from sidequest import __version__
from sidequest.errors import SettingsError
from sidequest.files import read_json, write_json
from sidequest.models.base import TargetScale, head_key
from sidequest.models.encoders import Encoder
from sidequest.settings import ModelSettings
from sidequest.tasks.examples import Examples
from sidequest.tasks.task import Form, Objective, Task

FORMAT = 1
CARD = "sidequest.json"
WEIGHTS = "model.safetensors"
ENCODER = "encoder"


@contextmanager
def new_directory(directory: Path) -> Iterator[Path]:
    """A directory to fill; it takes the place of `directory` when all went well, and is gone otherwise."""
    directory = Path(directory).absolute()
    directory.parent.mkdir(parents=True, exist_ok=True)
    workplace = Path(tempfile.mkdtemp(prefix=f".{directory.name}.", dir=directory.parent))
    fresh, old = workplace / "new", workplace / "old"
    fresh.mkdir()
    try:
        yield fresh
        if directory.exists():
            os.replace(directory, old)
        os.replace(fresh, directory)
    finally:
        shutil.rmtree(workplace, ignore_errors=True)


def write_card(
    directory: Path,
    task: Task,
    settings: ModelSettings,
    *,
    loads_with: str,
    scale: TargetScale | None = None,
    extra: Mapping[str, Any] | None = None,
) -> None:
    """Write `sidequest.json`. loads_with: the class that reads the directory, of transformers or of sidequest.
    scale: the units of a regression's output; None where the weights already give the original ones."""
    scale = scale or TargetScale()
    card = {
        "format": FORMAT,
        "sidequest": __version__,
        "loads_with": loads_with,
        "task": task_facts(task),
        "model": settings.model_dump(mode="json"),
        "target": {"mean": scale.mean, "deviation": scale.deviation},
    }
    write_json(directory / CARD, card | dict(extra or {}))


def read_card(directory: Path) -> dict[str, Any]:
    path = directory / CARD
    if not path.is_file():
        raise SettingsError(f"{directory}: not a model exported by sidequest: it has no {CARD}")
    try:
        card = read_json(path)
    except ValueError as error:
        raise SettingsError(f"{path}: {error}") from None
    if not isinstance(card, dict) or card.get("format") != FORMAT:
        found = card.get("format") if isinstance(card, dict) else type(card).__name__
        raise SettingsError(f"{path}: this sidequest reads model format {FORMAT}, found {found!r}")
    return card


def task_facts(task: Task) -> dict[str, Any]:
    """What a model needs to know about a task that it was trained on: everything but the rows."""
    facts: dict[str, Any] = {
        "name": task.name,
        "objective": task.objective.value,
        "form": task.form.value,
        "labels": list(task.labels),
        "metrics": list(task.metrics),
    }
    columns = next(iter(task.splits.values())).columns if task.splits else {}
    facts["columns"] = sorted(columns)
    if "image" in columns:
        facts["image"] = {"shape": list(columns["image"].shape[1:]), "dtype": str(columns["image"].dtype)}
    return facts


def rowless_task(facts: Mapping[str, Any]) -> Task:
    """A task without rows, from its facts; images keep their shape."""
    columns: dict[str, Any] = {}
    for name in facts["columns"]:
        if name == "image":
            columns[name] = np.zeros((0, *facts["image"]["shape"]), dtype=facts["image"]["dtype"])
        else:
            listed = name in ("tokens", "choices")
            columns[name] = pa.array([], type=pa.list_(pa.string()) if listed else pa.string())
    splits = {"train": Examples(columns, None, np.zeros(0, dtype=np.int64))}
    return Task(
        facts["name"],
        Objective(facts["objective"]),
        Form(facts["form"]),
        splits,
        tuple(facts["labels"]),
        tuple(facts["metrics"]),
    )


def write_weights(directory: Path, state: Mapping[str, Tensor]) -> None:
    save_file({name: value.detach().cpu().contiguous() for name, value in state.items()}, directory / WEIGHTS)


def task_state(model: nn.Module, task: str) -> dict[str, Tensor]:
    """The parameters that one task's predictions need: everything shared, and this task's head."""
    mine = f"heads.{head_key(task)}."
    return {
        name: value
        for name, value in model.state_dict().items()
        if name.startswith(mine) or not name.startswith("heads.")
    }


def copy_encoder(encoder: Encoder, directory: Path) -> None:
    """The frozen encoder goes with the model, so that a directory is all that a prediction needs."""
    (directory / ENCODER).mkdir()
    for path in encoder.files():
        shutil.copyfile(path, directory / ENCODER / path.name)
