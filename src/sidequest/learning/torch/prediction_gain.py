"""One training step with the loss on the same batch before and after it: the `PredictionGain` power of `TorchLearner`.

It costs one forward pass more than a step (two when the gain is measured on a target), which the meter counts, and it leaves
the learner exactly as `train(task, 1)` would: measuring changes nothing.
"""

from __future__ import annotations

import torch

from sidequest.learning.torch.core import Core
from sidequest.learning.torch.losses import task_loss
from sidequest.learning.torch.randomness import read_generators, write_generators
from sidequest.models.base import Batch, MultiTaskModel
from sidequest.tasks.task import Task

PROBE = "probe"  # the order in which a target's rows are measured, apart from training's


class GainTraining:
    """Keeps the `PredictionGain` protocol for a torch learner; see there for what it promises."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def train_with_gain(self, task: str, *, target: str | None = None) -> tuple[float, float]:
        if target is not None:
            return self._gain_on_target(task, target)
        core, spec = self._core, self._core.task(task)
        with core.meter.timed(task) as count, core.randomness.lent():
            core.model.train()
            batch = core.batch(task, core.stream(task).next(), count)
            masks = read_generators(core.device)
            loss = task_loss(spec, core.model(task, batch), batch["labels"])
            core.step(loss)
            after_step = read_generators(core.device)
            # The same dropout masks before and after: the difference is what the step did, not which units were dropped.
            write_generators(core.device, masks)
            after = _loss_without_trace(core.model, spec, batch)
            write_generators(core.device, after_step)
            count.evaluated_examples += len(batch["labels"])
        return loss.item(), after

    def _gain_on_target(self, task: str, target: str) -> tuple[float, float]:
        """Train on a task, measure on the target's next probe batch, without dropout.

        So also when both are one task: the batch just trained on would flatter it against the others.
        """
        core, spec = self._core, self._core.task(target)
        positions = core.stream(target, order=PROBE).next()
        batch = core.to_device(core.inputs(target, "train").collate(positions))

        def measure() -> float:
            core.model.eval()
            with core.meter.timed(target) as count:
                count.evaluated_examples += len(positions)
                return _loss_without_trace(core.model, spec, batch)

        before = measure()
        core.train(task, 1)
        return before, measure()


@torch.no_grad()
def _loss_without_trace(model: MultiTaskModel, task: Task, batch: Batch) -> float:
    """The loss of a batch; what a forward pass in training mode leaves in buffers (batch-norm statistics) is undone."""
    before = {name: buffer.clone() for name, buffer in model.named_buffers()} if model.training else {}
    loss = task_loss(task, model(task.name, batch), batch["labels"]).item()
    for name, buffer in model.named_buffers():
        if name in before:
            buffer.copy_(before[name])
    return loss
