"""Where models compute: the device that was asked for, or the first GPU, or the processor.

The choice belongs to the process, not to a run: it stands in the environment (`SIDEQUEST_DEVICE`, or `--device` on the command
line, which sets it), so that worker processes inherit it, and it is no part of a trial's key. A score found on another device
counts as the same trial, as one found on another processor does.
"""

from __future__ import annotations

import os
from typing import Any

import torch

from sidequest import ranks
from sidequest.errors import SettingsError

VARIABLE = "SIDEQUEST_DEVICE"


def chosen_device(name: str | torch.device | None = None) -> torch.device:
    """The device named here, else in the environment; else CUDA where there is any, else the CPU."""
    if isinstance(name, torch.device):
        return name
    asked = name or os.environ.get(VARIABLE)
    if not asked:
        if not torch.cuda.is_available():
            return torch.device("cpu")
        return torch.device("cuda", ranks.local_rank()) if ranks.size() > 1 else torch.device("cuda")
    try:
        device = torch.device(asked)
    except RuntimeError:
        raise SettingsError(f"--device {asked}: not a device; examples: cpu, cuda, cuda:1, mps") from None
    if device.type == "cpu":
        return torch.device("cpu")
    module = getattr(torch, device.type, None)
    if module is None or not hasattr(module, "device_count") or not module.is_available():
        raise SettingsError(
            f"--device {asked}: this machine's torch finds no {device.type} device; leave it out or use cpu"
        )
    if device.index is not None and device.index >= module.device_count():
        raise SettingsError(
            f"--device {asked}: there are {module.device_count()} {device.type} devices, counted from 0"
        )
    return device


def computes_bf16(device: torch.device) -> bool:
    """Whether the device computes in bfloat16 by itself; elsewhere it is emulated, slower and coarser than float32."""
    if device.type == "cpu":
        capabilities: dict[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()
        return bool(capabilities.get("avx512_bf16") or capabilities.get("amx_bf16"))
    return device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)


def batch_tokens(device: torch.device) -> int:
    """Padded tokens in one forward pass without gradients. On a CPU larger passes leave its caches: 8,192 take 1.45 times as long
    as 2,048; a GPU wants enough to be busy."""
    return 2_048 if device.type == "cpu" else 65_536
