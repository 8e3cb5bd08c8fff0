"""A learner's state on disk: safetensors for tensors, JSON for the rest. No pickle."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save

from sidequest.files import read_json, write_atomically, write_json
from sidequest.learning.torch.randomness import CPU, DEVICE


@dataclass(frozen=True)
class LearnerState:
    """Opaque to everybody but the learner that made it."""

    tensors: dict[str, torch.Tensor]
    plain: dict[str, Any]


def write_state(state: LearnerState, directory: Path) -> None:
    """`state.json` is written last: where it exists, the tensors are complete."""
    tensors = {name: tensor.contiguous().cpu() for name, tensor in state.tensors.items()}
    write_atomically(directory / "state.safetensors", save(tensors))
    write_json(directory / "state.json", state.plain)


def read_state(directory: Path, device: torch.device) -> LearnerState:
    tensors = load_file(directory / "state.safetensors", device=str(device))
    for name in {CPU, DEVICE} & tensors.keys():  # generators take and give their states on the CPU
        tensors[name] = tensors[name].cpu()
    return LearnerState(tensors, read_json(directory / "state.json"))
