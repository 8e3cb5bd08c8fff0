"""One training step with the loss on the same batch before and after it: the `PredictionGain` power of `TorchLearner`.

It costs one forward pass more than a step (two when the gain is measured on a target), which the meter counts, and it leaves
the learner exactly as `train(task, 1)` would: measuring changes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import torch
from torch import Tensor

from sidequest.learning.meter import Meter
from sidequest.learning.torch.batching import Stream
from sidequest.learning.torch.losses import task_loss
from sidequest.learning.torch.randomness import Randomness, read_generators, write_generators
from sidequest.models.base import Batch, MultiTaskModel, seed_of
from sidequest.settings import TrainSettings
from sidequest.tasks.task import Task

if TYPE_CHECKING:
    from sidequest.learning.torch.learner import EncodedTasks
    from sidequest.recipe import Subset

PROBE = (
    "probe"  # in the place of a subset's digest: the order in which a target's rows are measured, apart from training's
)


class Host(Protocol):
    """What `GainTraining` uses of the learner that it is mixed into."""

    seed: int
    model: MultiTaskModel
    meter: Meter
    settings: TrainSettings
    randomness: Randomness
    _data: EncodedTasks
    _streams: dict[tuple[str, str], Stream]
    _stream_positions: dict[str, tuple[int, int]]

    def train(self, task: str, n_batches: int) -> list[float]: ...
    def batch(self, task: str, positions: np.ndarray, count: Any) -> Batch: ...
    def step(self, loss: Tensor) -> None: ...
    def _stream(self, task: str, subset: Subset | None) -> Stream: ...
    def _task(self, name: str) -> Task: ...
    def to_device(self, batch: Batch) -> Batch: ...


class GainTraining:
    """Gives a learner the `PredictionGain` power; see the protocol for what it promises."""

    def train_with_gain(self: Host, task: str, *, target: str | None = None) -> tuple[float, float]:
        if target is not None:
            return _gain_on_target(self, task, target)
        spec = self._task(task)
        with self.meter.timed(task) as count, self.randomness.lent():
            self.model.train()
            batch = self.batch(task, self._stream(task, None).next(), count)
            masks = read_generators(self.randomness.device)
            loss = task_loss(spec, self.model(task, batch), batch["labels"])
            self.step(loss)
            after_step = read_generators(self.randomness.device)
            # The same dropout masks before and after: the difference is what the step did, not which units were dropped.
            write_generators(self.randomness.device, masks)
            after = _loss_without_trace(self.model, spec, batch)
            write_generators(self.randomness.device, after_step)
            count.evaluated_examples += len(batch["labels"])
        return loss.item(), after


def _gain_on_target(learner: Host, task: str, target: str) -> tuple[float, float]:
    """Train on a task, measure on the target's next probe batch, without dropout.

    So also when both are one task: the batch just trained on would flatter it against the others.
    """
    spec = learner._task(target)
    positions = _probe_stream(learner, target).next()
    batch = learner.to_device(learner._data.of(spec, "train").collate(positions))

    def measure() -> float:
        learner.model.eval()
        with learner.meter.timed(target) as count:
            count.evaluated_examples += len(positions)
            return _loss_without_trace(learner.model, spec, batch)

    before = measure()
    learner.train(task, 1)
    return before, measure()


def _probe_stream(learner: Host, task: str) -> Stream:
    key = (task, PROBE)
    if key not in learner._streams:
        lengths = learner._data.of(learner._task(task), "train").lengths
        stream = Stream(lengths, None, learner.settings.batch_size, seed_of(learner.seed, "order", *key))
        stream.seek(*learner._stream_positions.get("\t".join(key), (0, 0)))
        learner._streams[key] = stream
    return learner._streams[key]


@torch.no_grad()
def _loss_without_trace(model: MultiTaskModel, task: Task, batch: Batch) -> float:
    """The loss of a batch; what a forward pass in training mode leaves in buffers (batch-norm statistics) is undone."""
    before = {name: buffer.clone() for name, buffer in model.named_buffers()} if model.training else {}
    loss = task_loss(task, model(task.name, batch), batch["labels"]).item()
    for name, buffer in model.named_buffers():
        if name in before:
            buffer.copy_(before[name])
    return loss
