"""Several processes that train one model: each takes its part of every batch, and gradients are summed.

`batch_size` is the whole batch, whatever the number of processes: a run with two is the run with one up to rounding, and a
checkpoint of one continues in the other. All processes are at the same task at each step, because all draw from the same
streams with the same seeds. What decides (losses, scores) is the first process's, sent to all. A power that steps on a loss of
its own computes it in full in every process, with the same random state: the same on all, and summed by none.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from sidequest import ranks
from sidequest.errors import SettingsError
from sidequest.models.base import IGNORE, Batch, Inputs
from sidequest.tasks.task import Objective

Value = TypeVar("Value")
BUCKET = 25 * 2**20 // 4  # numbers summed in one message: 25 MB, as in torch's own DDP


class Group:
    """rank, size: of this process among those that train together. With one, everything here does nothing."""

    def __init__(self, rank: int = 0, size: int = 1) -> None:
        self.rank, self.size = rank, size

    def part(self, positions: np.ndarray) -> np.ndarray:
        """This process's rows of a batch. A batch with fewer rows than processes gives some of them none."""
        return positions[self.rank :: self.size]

    def sum(self, value: Tensor) -> Tensor:
        if self.size > 1:
            value = value.cuda() if torch.distributed.get_backend() == "nccl" else value
            torch.distributed.all_reduce(value)
        return value

    def sum_gradients(self, parameters: Sequence[Tensor]) -> None:
        """Sum the gradients of all processes, in messages of `BUCKET` numbers."""
        if self.size == 1:
            return
        bucket: list[Tensor] = []
        for parameter in parameters:
            if parameter.grad is not None:
                bucket.append(parameter.grad)
                if sum(gradient.numel() for gradient in bucket) >= BUCKET:
                    self._sum_flat(bucket)
                    bucket = []
        if bucket:
            self._sum_flat(bucket)

    def first(self, value: Value) -> Value:
        """The first process's value."""
        if self.size == 1:
            return value
        box = [value]
        torch.distributed.broadcast_object_list(box, src=0)
        return box[0]

    def gather(self, parts: Sequence[Any]) -> list[Any]:
        """Part i of process r was number r + i · size of a list: the list."""
        if self.size == 1:
            return list(parts)
        found: list[Any] = [None] * self.size
        torch.distributed.all_gather_object(found, list(parts))
        longest = max(len(theirs) for theirs in found)
        return [theirs[index] for index in range(longest) for theirs in found if index < len(theirs)]

    def check(self, model: nn.Module) -> None:
        """Refuse what would not be the same model in several processes."""
        if self.size > 1 and any(isinstance(module, nn.modules.batchnorm._BatchNorm) for module in model.modules()):
            raise SettingsError(
                "--processes: this model has batch normalisation, whose statistics would be those of a part of each batch; "
                "train it in one process"
            )

    @staticmethod
    def _sum_flat(gradients: Sequence[Tensor]) -> None:
        flat = torch.cat([gradient.reshape(-1) for gradient in gradients])
        torch.distributed.all_reduce(flat)
        for gradient, summed in zip(gradients, flat.split([g.numel() for g in gradients]), strict=True):
            gradient.copy_(summed.view_as(gradient))


def parts_of(
    group: Group, inputs: Inputs, positions: np.ndarray, micro_batch: int | None, objective: Objective
) -> list[tuple[Batch, float]]:
    """This process's part of a batch, in pieces of `micro_batch` rows, each with its share of the batch's mean loss.

    A process without a row takes the first one with a share of nothing, so that all have the same gradients to sum.
    """
    mine = group.part(positions)
    size = micro_batch or len(positions)
    pieces = [mine[start : start + size] for start in range(0, len(mine), size)] or [positions[:1]]
    batches = [inputs.collate(piece) for piece in pieces]
    if objective == Objective.TAGGING:  # a mean over labelled words
        counts = [int((batch["labels"] != IGNORE).sum()) for batch in batches]
    else:
        counts = [len(piece) for piece in pieces]
    if not len(mine):
        counts = [0]
    whole = float(len(positions))
    if objective == Objective.TAGGING:
        whole = group.sum(torch.tensor(float(sum(counts)))).item()
    return [(batch, count / whole) for batch, count in zip(batches, counts, strict=True)]


@functools.cache
def group() -> Group:
    """The processes that torchrun has started, joined at the first call."""
    if ranks.size() == 1:
        return Group()
    if not torch.distributed.is_initialized():
        backend = "nccl" if torch.cuda.is_available() else "gloo"
        if backend == "nccl":
            torch.cuda.set_device(ranks.local_rank())
        torch.distributed.init_process_group(backend)
    return Group(torch.distributed.get_rank(), torch.distributed.get_world_size())
