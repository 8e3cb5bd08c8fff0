"""One training step on two tasks, with the cosine between their gradients: the `GradientAlignment` power of `TorchLearner`."""

from __future__ import annotations

import torch

from sidequest.learning.torch.core import Core
from sidequest.learning.torch.deltas import trained
from sidequest.learning.torch.losses import task_loss


class AlignedTraining:
    """Keeps the `GradientAlignment` protocol for a torch learner; see there for what it promises."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def train_aligned(self, task: str, target: str) -> float:
        core = self._core
        core.model.train()
        parameters = list(trained(core.model).values())
        with core.randomness.lent():
            losses, gradients = [], []
            for name in (task, target):
                with core.meter.timed(name) as count:
                    batch = core.batch(name, core.stream(name).next(), count)
                    loss = task_loss(core.task(name), core.model(name, batch), batch["labels"])
                    gradients.append(torch.autograd.grad(loss, parameters, retain_graph=True, allow_unused=True))
                    losses.append(loss)
            core.step(losses[0] + losses[1])
        return _cosine(*gradients)


def _cosine(first: tuple[torch.Tensor | None, ...], second: tuple[torch.Tensor | None, ...]) -> float:
    """Over the parameters that both tasks move, in double precision where the device has it; 0 where one gradient is 0."""
    dot = one = two = 0.0
    for a, b in zip(first, second, strict=True):
        if a is None or b is None:
            continue
        if a.device.type != "mps":
            a, b = a.double(), b.double()
        dot += float((a * b).sum())
        one += float((a * a).sum())
        two += float((b * b).sum())
    return dot / (one * two) ** 0.5 if one and two else 0.0
