"""The direct path of a task: a linear read-out of the encoder's own features, which starts at its regularised solution.

A model over frozen states adds what its shared part has learned to it. The shared part starts as no change, so training begins
at the level of a linear probe, and another task can act through what is shared only.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from sidequest.models.base import Family, head_key
from sidequest.numerics.linear_models import LinearModel

# Of the learning rate. The read-out starts where it is best for its rows; a full step would leave that place before the shared
# part has learned anything.
RATE = 0.1


def text_features(u: Tensor, v: Tensor | None) -> Tensor:
    """What a read-out sees of texts u, or of pairs: u, v, u ⋆ v, |u − v| and the cosine of each layer.

    u, v: float [n, layers, width] → [n, layers · width], or [n, layers · (4 · width + 1)].
    """
    if v is None:
        return u.flatten(1)
    cosine = functional.cosine_similarity(u, v, dim=-1)
    return torch.cat([u.flatten(1), v.flatten(1), (u * v).flatten(1), (u - v).abs().flatten(1), cosine], dim=1)


def feature_widths(layers: int, width: int, *, pair: bool) -> tuple[int, ...]:
    """How many columns of `text_features` say the same kind of thing."""
    return (*[layers * width] * 4, *[1] * layers) if pair else (layers * width,)


class DirectPath(nn.Module):
    """x ↦ (x − mean) / scale · weight + bias. Zero until `start` gives it a solution.

    Features are scaled by the root of their number, weights the other way: however many features there are, a step of the
    optimiser changes the logits by about as much.
    """

    mean: Tensor
    scale: Tensor

    def __init__(self, features: int, outputs: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(features))
        self.register_buffer("scale", torch.ones(features))
        self.linear = nn.Linear(features, outputs)
        nn.init.zeros_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)

    @torch.no_grad()
    def start(self, solution: LinearModel) -> None:
        root = math.sqrt(len(solution.mean))
        self.mean.copy_(torch.from_numpy(solution.mean))
        self.scale.copy_(torch.from_numpy(solution.scale * root))
        self.linear.weight.copy_(torch.from_numpy(solution.weight.T * root))
        self.linear.bias.copy_(torch.from_numpy(solution.bias))

    def forward(self, features: Tensor) -> Tensor:
        return self.linear((features - self.mean) / self.scale)


def zero_head(features: int, outputs: int) -> nn.Linear:
    """A linear head that adds nothing until it has learned."""
    head = nn.Linear(features, outputs)
    nn.init.zeros_(head.weight)
    nn.init.zeros_(head.bias)
    return head


def start_direct_paths(paths: nn.ModuleDict, family: Family) -> None:
    """Give every task's direct path the solution of its read-out, a function of its own train rows."""
    for task in family.suite.tasks.values():
        if head_key(task.name) not in paths:
            continue
        path, read_out = paths[head_key(task.name)], family.read_out(task)
        if isinstance(path, DirectPath) and read_out is not None:
            path.start(read_out.model)


def direct_rates(model: nn.Module) -> dict[str, float]:
    """The factors on the learning rate of a model with direct paths in `direct`."""
    return {name: RATE for name, _ in model.named_parameters() if name.startswith("direct.")}
