"""Optimisers and the learning rate's schedule: how they are made, and brought back from a snapshot."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from sidequest.errors import SettingsError
from sidequest.models.base import MultiTaskModel
from sidequest.settings import TrainSettings


def new_optimizer(model: MultiTaskModel, settings: TrainSettings, rate: float) -> torch.optim.Optimizer:
    """Biases and normalisation gains are not decayed, as is usual. A group's `factor` stands on the learning rate: the layers of
    a pretrained encoder learn the slower the further they are from the heads, if `layer_decay` is below 1."""
    below = model.layers_below_the_top() if settings.layer_decay < 1 else {}
    own = model.rate_factors()
    groups: dict[tuple[float, bool], dict[str, Any]] = {}
    for name, parameter in model.named_parameters():
        if not parameter.requires_grad:
            continue
        decayed = parameter.ndim > 1
        factor = settings.layer_decay ** below.get(name, 0) * own.get(name, 1.0)
        new = {"params": [], "weight_decay": settings.weight_decay if decayed else 0.0, "factor": factor}
        groups.setdefault((-factor, not decayed), new)["params"].append(parameter)
    ordered = [group for _, group in sorted(groups.items(), key=lambda item: item[0])]
    if settings.optimizer == "sgd":
        return torch.optim.SGD(ordered, lr=rate, momentum=settings.momentum)
    return torch.optim.AdamW(ordered, lr=rate, fused=True)


def prepare_network(model: torch.nn.Module, settings: TrainSettings, device: torch.device) -> None:
    """What large networks want: activations computed again instead of kept, and kernels made for this network."""
    if settings.recompute:
        able: list[Any] = [part for part in model.modules() if hasattr(part, "gradient_checkpointing_enable")]
        if not able:
            raise SettingsError("train.recompute: this model cannot compute its activations again; set it to false")
        able[0].gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    if settings.compile and device.type != "cpu":  # on a CPU compiling takes longer than it saves
        model.compile(dynamic=True)


def parameters_of(optimizer: torch.optim.Optimizer) -> list[Tensor]:
    return [p for group in optimizer.param_groups for p in group["params"]]


def optimizer_tensors(optimizer: torch.optim.Optimizer, prefix: str) -> dict[str, Tensor]:
    """Its states by `prefix.index.key`."""
    return {
        f"{prefix}.{index}.{key}": value
        for index, parameter in enumerate(parameters_of(optimizer))
        for key, value in optimizer.state.get(parameter, {}).items()
        if isinstance(value, Tensor)
    }


def restore_optimizer(optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor], prefix: str) -> None:
    """Give a new optimiser the states that `optimizer_tensors` named."""
    parameters = parameters_of(optimizer)
    for name, tensor in tensors.items():
        if name.startswith(f"{prefix}."):
            _, index, key = name.split(".")
            parameter = parameters[int(index)]
            # A file keeps no memory layout. The fused optimiser walks memory, not indices: a state that is laid out otherwise
            # than its parameter would be combined with the wrong weights, without an error.
            like = parameter if tensor.shape == parameter.shape else tensor
            optimizer.state[parameter][key] = torch.empty_like(like, dtype=tensor.dtype).copy_(tensor)


def schedule(step: int, total: int | None, settings: TrainSettings) -> float:
    """The learning rate's factor: linear warm-up, then decay to zero over the total; 1 without a total."""
    if total is None:
        return 1.0
    warmup = max(1.0, settings.warmup * total)
    if step < warmup - 1:
        return (step + 1) / warmup
    left = max(0.0, (total - step) / max(1.0, total - warmup + 1))
    if settings.decay == "linear":
        return min(1.0, left)
    if settings.decay == "cosine":
        return 0.5 * (1 - math.cos(math.pi * min(1.0, left)))
    return 1.0
