"""The loss of each objective, and predictions from logits."""

from __future__ import annotations

import functools

import torch
from torch import Tensor
from torch.nn import functional

from sidequest.learning.likelihood import Items
from sidequest.models.base import IGNORE
from sidequest.tasks.task import ClassWeights, Objective, Task


def task_loss(task: Task, logits: Tensor, labels: Tensor) -> Tensor:
    """Mean loss of a batch, in nats per row (tagging: per labelled word), so that a loss of 1 means the same for every task.

    Cross-entropy for classes, choices and tags. Several labels: binary cross-entropy, *summed* over the labels of a row, which is
    the negative log-likelihood of its label set; a mean would let a task count for less the more labels it has. Regression:
    squared error in standardised units, halved, which is the negative log-likelihood of a Gaussian of unit variance.

    With class weights (the user's, or equal classes where the score is their mean) a row's loss is multiplied by the weight of
    its class. The sum is divided by the number of rows, not by their weights: a batch of rare rows counts for more than a batch
    of frequent ones, as it should.
    """
    losses = _losses(task, logits, labels)
    if task.objective == Objective.TAGGING:
        return losses.sum() / (labels != IGNORE).sum()
    return losses.mean()


def row_losses(task: Task, logits: Tensor, labels: Tensor) -> Tensor:
    """The loss of each row, [n]: the same loss as in training. A row to tag sums over its labelled words, so that a long
    sentence counts for as much as its words do."""
    losses = _losses(task, logits, labels)
    return losses.sum(1) if task.objective == Objective.TAGGING else losses


def _losses(task: Task, logits: Tensor, labels: Tensor) -> Tensor:
    """[n], for tagging [n, longest] with 0 where there is no label."""
    if logits.dtype.itemsize < 4:  # a loss in half precision is too coarse to learn from
        logits = logits.float()
    if task.objective == Objective.REGRESSION:
        return 0.5 * functional.mse_loss(logits, labels, reduction="none")
    weights = None if task.loss_weights is None else _weights(task.loss_weights, logits.device, logits.dtype)
    if task.objective == Objective.MULTILABEL:
        losses = functional.binary_cross_entropy_with_logits(logits, labels, reduction="none")
        return (losses if weights is None else losses * torch.where(labels > 0, weights[:, 1], weights[:, 0])).sum(1)
    if task.objective == Objective.TAGGING:
        words = logits.flatten(0, 1), labels.flatten()
        return functional.cross_entropy(*words, weight=weights, ignore_index=IGNORE, reduction="none").view(
            labels.shape
        )
    return functional.cross_entropy(logits, labels, weight=weights, reduction="none")


@functools.lru_cache(maxsize=64)
def _weights(weights: ClassWeights, device: torch.device, dtype: torch.dtype) -> Tensor:
    """[classes], or [labels, 2]."""
    with torch.inference_mode(False):  # a tensor made in inference mode could not be part of a later training step
        return torch.tensor(weights, device=device, dtype=dtype)


def items(task: Task, logits: Tensor, labels: Tensor) -> Items:
    """What logits say of each item of a batch; see `Items`."""
    given, truth = logits.cpu().double(), labels.cpu()  # in this order: not every device has float64
    counts = torch.ones(len(truth), dtype=torch.int64)
    if task.objective == Objective.REGRESSION:
        truth = truth.double()
    elif task.objective == Objective.TAGGING:
        words = truth != IGNORE
        given, truth, counts = given[words], truth[words], words.sum(1)
    elif task.objective == Objective.MULTILABEL:  # each decision is one of two classes
        counts *= truth.shape[1]
        given, truth = torch.stack([torch.zeros_like(given), given], dim=-1).flatten(0, 1), truth.flatten().long()
    return Items(given.numpy(), truth.numpy(), counts.numpy())


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
