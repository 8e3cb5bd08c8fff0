"""A learner's state on disk: safetensors for tensors, JSON for the rest. No pickle."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save

from sidequest.errors import Damaged
from sidequest.files import check_files, read_json, write_atomically, write_json
from sidequest.learning.torch.randomness import CPU, DEVICE

TENSORS, PLAIN = "state.safetensors", "state.json"


@dataclass(frozen=True)
class LearnerState:
    """Opaque to everybody but the learner that made it."""

    tensors: dict[str, torch.Tensor]
    plain: dict[str, Any]


def write_state(state: LearnerState, directory: Path) -> None:
    """`state.json` is written last: where it exists, the tensors are complete. It has their digest."""
    data = save({name: tensor.contiguous().cpu() for name, tensor in state.tensors.items()})
    write_atomically(directory / TENSORS, data)
    digests = {TENSORS: hashlib.sha256(data).hexdigest()}
    write_json(directory / PLAIN, {"plain": state.plain, "files": digests})


def read_state(directory: Path, device: torch.device) -> LearnerState:
    """Refuses files that are not those that were written."""
    try:
        record = read_json(directory / PLAIN, must_be_sealed=True)
    except FileNotFoundError:
        raise Damaged(directory / PLAIN, "it is missing") from None
    check_files(directory, record["files"])
    tensors = load_file(directory / TENSORS, device=str(device))
    for name in {CPU, DEVICE} & tensors.keys():  # generators take and give their states on the CPU
        tensors[name] = tensors[name].cpu()
    return LearnerState(tensors, record["plain"])
