"""The loss of each objective, and predictions from logits."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from sidequest.models.base import IGNORE
from sidequest.tasks.task import Objective, Task


def task_loss(task: Task, logits: Tensor, labels: Tensor) -> Tensor:
    """Mean loss of a batch: cross-entropy per row, per choice or per labelled token; squared error in standardised units.

    The squared error is halved: it is then the negative log-likelihood of a unit-variance Gaussian (up to a constant), the same
    unit as cross-entropy.
    """
    if logits.dtype.itemsize < 4:  # a loss in half precision is too coarse to learn from
        logits = logits.float()
    if task.objective == Objective.REGRESSION:
        return 0.5 * functional.mse_loss(logits, labels)
    if task.objective == Objective.TAGGING:
        return functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORE)
    return functional.cross_entropy(logits, labels)


def predictions(task: Task, logits: Tensor, labels: Tensor | None) -> list[Tensor] | Tensor:
    """Class indices [n], values [n] in standardised units, or a tag index per labelled token of each row."""
    if task.objective == Objective.REGRESSION:
        return logits.float()
    best = logits.argmax(-1)
    if task.objective != Objective.TAGGING:
        return best
    if labels is None:
        raise ValueError("tagging needs labels to know which positions stand for words")
    mask = labels != IGNORE
    return list(torch.split(best[mask], mask.sum(1).tolist()))
