"""How much each attention head matters to a task and to each of its rows: the `HeadImportance` power of `TorchLearner`.

Steps 1 to 3 of Ma et al. (2021), section 3.1: fine-tune a fresh model on the task alone, then pass over its train rows once more
without updates and add up the absolute gradients at each head. One pass gives the importances of the rows and of the whole task.
Absolute values are taken per row, before adding: |Σ| would let rows cancel each other out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from sidequest.learning.meter import Meter
from sidequest.learning.protocol import Warmup
from sidequest.learning.torch.batching import evaluation_batches
from sidequest.learning.torch.core import Core
from sidequest.learning.torch.losses import row_losses
from sidequest.models.base import Batch
from sidequest.models.head_gates import find_heads, open_gates

RowImportances = Iterator[tuple[np.ndarray, np.ndarray]]  # ids int64 [n], values float32 [n, layers, heads]
Computation = Callable[[Meter], RowImportances]  # the work itself; it counts on the meter that it is given


class HeadRecord(Protocol):
    """The result of one warm-up and one pass. meter: what they cost, also when they were found instead of run."""

    @property
    def meter(self) -> Meter: ...

    def total(self) -> np.ndarray: ...
    def rows(self) -> RowImportances: ...


class HeadCache(Protocol):
    """Where results are kept between runs; see `sidequest.search.head_cache`."""

    def of(self, task: str, warmup: Warmup, compute: Computation) -> HeadRecord: ...


class HeadScoring:
    """Keeps the `HeadImportance` protocol for a torch learner; see there for what each call promises.

    cache: where results are kept between runs. None: nothing is kept, and `instance_importance` warms up again.
    """

    def __init__(self, core: Core, cache: HeadCache | None = None) -> None:
        find_heads(core.model)  # an error that says what is missing, before any training
        self._core = core
        self._cache = cache

    def head_importance(self, task: str, warmup: Warmup) -> np.ndarray:
        compute = self._computation(task, warmup)
        if self._cache is None:
            return add_up(compute(self._core.meter))
        record = self._cache.of(task, warmup, compute)
        self._core.meter.add(record.meter)
        return record.total()

    def instance_importance(self, task: str, warmup: Warmup) -> RowImportances:
        compute = self._computation(task, warmup)
        if self._cache is None:
            return compute(Meter())
        return self._cache.of(task, warmup, compute).rows()

    def _computation(self, task: str, warmup: Warmup) -> Computation:
        core = self._core
        core.task(task)  # refuse an unknown one now

        def compute(meter: Meter) -> RowImportances:
            probe = core.fresh(warmup.seed, meter=meter)
            batches = round(warmup.epochs * probe.epoch_batches(task))
            if warmup.most_batches is not None:
                batches = min(batches, warmup.most_batches)
            probe.begin(max(1, batches))
            probe.train(task, batches)
            return score_rows(probe, task)

        return compute


def score_rows(core: Core, task: str) -> RowImportances:
    """|∂L/∂ξ| of every train row for the model as it is. Rows of similar length share a batch; memory holds one batch.

    A row costs about two thirds of a training step (no weight gradients) and is counted as a whole one.
    """
    spec = core.task(task)
    lengths, ids = core.inputs(task, "train").lengths, spec.train.ids
    with open_gates(core.model) as gates:
        # The batches of training, not of evaluation: a backward pass keeps activations.
        for positions in evaluation_batches(lengths, core.settings.batch_size):
            with core.meter.timed(task) as count:
                batch = core.batch(task, positions, count)
                gates.begin(len(positions), _owners(batch))
                losses = row_losses(spec, core.model(task, batch), batch["labels"])
                values = gates.gradients(losses.sum()).abs().float().cpu().numpy()
            yield ids[positions], values


def _owners(batch: Batch) -> Tensor | None:
    """Which row each text belongs to, where rows have several."""
    if "text_rows" in batch:
        return batch["text_rows"]
    if "choices" not in batch:
        return None
    counts = batch["choices"]
    return torch.repeat_interleave(torch.arange(len(counts), device=counts.device), counts)


def add_up(rows: RowImportances) -> np.ndarray:
    """Σ over rows, float64 [layers, heads]."""
    total: Any = 0.0
    for _, values in rows:
        total = total + values.sum(axis=0, dtype=np.float64)
    return np.asarray(total)
