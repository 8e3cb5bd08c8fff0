"""The loss of each objective, and predictions from logits."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from sidequest.models.base import IGNORE
from sidequest.tasks.task import Objective, Task


def task_loss(task: Task, logits: Tensor, labels: Tensor) -> Tensor:
    """Mean loss of a batch, in nats per row (tagging: per labelled word), so that a loss of 1 means the same for every task.

    Cross-entropy for classes, choices and tags. Several labels: binary cross-entropy, *summed* over the labels of a row, which is
    the negative log-likelihood of its label set; a mean would let a task count for less the more labels it has. Regression:
    squared error in standardised units, halved, which is the negative log-likelihood of a Gaussian of unit variance.
    """
    if logits.dtype.itemsize < 4:  # a loss in half precision is too coarse to learn from
        logits = logits.float()
    if task.objective == Objective.REGRESSION:
        return 0.5 * functional.mse_loss(logits, labels)
    if task.objective == Objective.TAGGING:
        return functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORE)
    if task.objective == Objective.MULTILABEL:
        return functional.binary_cross_entropy_with_logits(logits, labels, reduction="none").sum(-1).mean()
    return functional.cross_entropy(logits, labels)


def row_losses(task: Task, logits: Tensor, labels: Tensor) -> Tensor:
    """The loss of each row, [n]: the same loss as in training. A row to tag sums over its labelled words, so that a long
    sentence counts for as much as its words do."""
    if logits.dtype.itemsize < 4:
        logits = logits.float()
    if task.objective == Objective.REGRESSION:
        return 0.5 * functional.mse_loss(logits, labels, reduction="none")
    if task.objective == Objective.TAGGING:
        losses = functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORE, reduction="none")
        return losses.view(labels.shape).sum(1)
    if task.objective == Objective.MULTILABEL:
        return functional.binary_cross_entropy_with_logits(logits, labels, reduction="none").sum(-1)
    return functional.cross_entropy(logits, labels, reduction="none")


def predictions(task: Task, logits: Tensor, labels: Tensor | None) -> list[Tensor] | Tensor:
    """Class indices [n], whether a row has each label [n, labels] (probability above one half), values [n] in standardised
    units, or a tag index per labelled word of each row."""
    if task.objective == Objective.REGRESSION:
        return logits.float()
    if task.objective == Objective.MULTILABEL:
        return logits > 0
    best = logits.argmax(-1)
    if task.objective != Objective.TAGGING:
        return best
    if labels is None:
        raise ValueError("tagging needs labels to know which positions stand for words")
    mask = labels != IGNORE
    return list(torch.split(best[mask], mask.sum(1).tolist()))
