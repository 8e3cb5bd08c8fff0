"""What one task's training changes, and the model at θ + Σᵢ αᵢδᵢ: the `Deltas` power of `TorchLearner`.

The gradient with respect to α needs no graph through the deltas. With m(α) = θ + Σⱼ αⱼδⱼ the chain rule gives
∂L/∂αᵢ = ⟨∇L(m), δᵢ⟩: one ordinary backward pass at the merged point, and one dot product per task.

Memory: beyond an ordinary training step this holds θ once more (to put it back) and each task's delta once. Optimiser states that
are kept per task come on top: one parameter-sized tensor per task for SGD with momentum, two for AdamW.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from sidequest.learning.torch.batching import evaluation_batches
from sidequest.learning.torch.core import Core, Course
from sidequest.learning.torch.losses import task_loss

# Merging and dot products go through the parameters in blocks of this many numbers, so that what was just computed is still in
# the processor's cache when it is used: the cost is about one pass over each delta, not four.
BLOCK = 1 << 16


@dataclass(frozen=True)
class TorchDelta:
    """Where training on one task led.

    end: values *after* training of the parameters that changed. The difference itself is not stored: in floating point
        θ + (θᵢ − θ) need not be θᵢ, while interpolating towards the end is exact at α = 1. A parameter that the task does not
        touch (another task's head, a frozen layer) takes no memory.
    buffers: values after training of the buffers that changed (batch-norm statistics).
    weight: the factor on the task's loss and learning rate that was trained with.
    """

    end: dict[str, Tensor]
    buffers: dict[str, Tensor]
    weight: float

    @property
    def bytes(self) -> int:
        return sum(tensor.nbytes for tensor in (*self.end.values(), *self.buffers.values()))


class DeltaTraining:
    """Keeps the `Deltas` protocol for a torch learner; see there for what each call promises."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def begin_deltas(self, totals: Mapping[str, int]) -> None:
        self._core.courses = {task: Course(total) for task, total in totals.items()}

    def collect_delta(
        self, task: str, n_batches: int, *, weight: float = 1.0, rate: float = 1.0, keep_optimizer: bool = True
    ) -> TorchDelta:
        core, course = self._core, self._core.courses[task]
        start, statistics = _copy(trained(core.model)), _copy(dict(core.model.named_buffers()))
        with core.on_course(course, rate):
            core.train(task, n_batches, weight=weight)
        if not keep_optimizer:
            course.optimizer = None
        core.model.zero_grad(set_to_none=True)
        parameters, buffers = trained(core.model), dict(core.model.named_buffers())
        return TorchDelta(_put_back(parameters, start), _put_back(buffers, statistics), weight * rate)

    def merged_loss(
        self, task: str, deltas: Sequence[TorchDelta], alphas: np.ndarray, rows: np.ndarray | None = None
    ) -> tuple[float, np.ndarray]:
        core, model = self._core, self._core.model
        spec, inputs = core.task(task), core.inputs(task, "select")
        chosen = np.arange(len(inputs)) if rows is None else np.asarray(rows, dtype=np.int64)
        total = 0.0
        with core.meter.timed(task) as count, merged(model, deltas, alphas) as start, backward_in_eval(model):
            for positions in evaluation_batches(inputs.lengths[chosen], core.settings.eval_batch_size):
                batch = core.to_device(inputs.collate(chosen[positions]))
                loss = task_loss(spec, model(task, batch), batch["labels"]) * (len(positions) / len(chosen))
                loss.backward()
                total += loss.item()
                count.batches += 1
                count.examples += len(positions)
                count.tokens += int(inputs.lengths[chosen[positions]].sum())
            gradient = gradient_along(model, start, deltas)
            model.zero_grad(set_to_none=True)
        return total, gradient

    def apply_deltas(self, deltas: Sequence[TorchDelta], alphas: np.ndarray) -> None:
        merge(self._core.model, deltas, alphas)


def trained(model: nn.Module) -> dict[str, Tensor]:
    """The parameters that learn, by name."""
    return {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}


@torch.no_grad()
def merge(model: nn.Module, deltas: Sequence[TorchDelta], alphas: np.ndarray) -> None:
    """Parameters ← θ + Σᵢ αᵢδᵢ. Buffers ← the mean of the tasks' buffers by their weights.

    Buffers are statistics of data, not directions: the mean keeps variances positive and does not depend on α, so that the
    gradient with respect to α is complete. With one task it is that task's buffer, to the bit. Counters (integers) are those of
    the first delta that has them.
    """
    if len(deltas) != len(alphas):
        raise ValueError(f"{len(deltas)} deltas need as many alphas, found {len(alphas)}")
    parameters = trained(model)
    for name, moved in _movers(deltas).items():
        _interpolate(parameters[name], [deltas[index].end[name] for index in moved], alphas[moved])
    whole = sum(delta.weight for delta in deltas)
    for name, buffer in model.named_buffers():
        changed = [delta for delta in deltas if name in delta.buffers]
        if changed and not buffer.is_floating_point():
            buffer.copy_(changed[0].buffers[name])
        elif changed:
            # A task that left the buffer as it was counts with the value it left.
            values = [(delta.buffers.get(name, buffer), delta.weight / whole) for delta in deltas]
            buffer.copy_(torch.stack([value * share for value, share in values]).sum(0))


@contextmanager
def merged(model: nn.Module, deltas: Sequence[TorchDelta], alphas: np.ndarray) -> Iterator[dict[str, Tensor]]:
    """The model at the merged point for a while; gives θ, to which it returns, for the parameters that some delta moves."""
    start = _copy({name: p for name, p in trained(model).items() if any(name in delta.end for delta in deltas)})
    statistics = _copy({n: b for n, b in model.named_buffers() if any(n in delta.buffers for delta in deltas)})
    try:
        merge(model, deltas, alphas)
        yield start
    finally:
        _write(trained(model), start)
        _write(dict(model.named_buffers()), statistics)


@torch.no_grad()
def gradient_along(model: nn.Module, start: Mapping[str, Tensor], deltas: Sequence[TorchDelta]) -> np.ndarray:
    """⟨∇L, δᵢ⟩ for each delta, δᵢ = endᵢ − start: float64 [len(deltas)]. Blocks are summed in double precision."""
    parameters = trained(model)
    total = np.zeros(len(deltas))
    for name, moved in _movers(deltas).items():
        gradient = parameters[name].grad
        if gradient is None:
            continue
        columns = zip(*(_blocks(deltas[index].end[name]) for index in moved), strict=True)
        for g, s, ends in zip(_blocks(gradient), _blocks(start[name]), columns, strict=True):
            total[moved] += torch.mv(_moves(ends, s), g).tolist()
    return total


def _movers(deltas: Sequence[TorchDelta]) -> dict[str, list[int]]:
    """Which deltas move a parameter, by its name."""
    found: dict[str, list[int]] = {}
    for index, delta in enumerate(deltas):
        for name in delta.end:
            found.setdefault(name, []).append(index)
    return found


def _moves(ends: Sequence[Tensor], start: Tensor) -> Tensor:
    """δᵢ = endᵢ − start, [len(ends), numbers]: one operation for all tasks, because small networks have many small tensors."""
    return torch.stack(tuple(ends)).sub_(start)


@contextmanager
def backward_in_eval(model: nn.Module) -> Iterator[None]:
    """A backward pass without dropout and with fixed batch-norm statistics."""
    model.eval()
    # cuDNN's recurrent kernels refuse a backward pass in evaluation mode; the plain kernels do not.
    recurrent = any(isinstance(module, nn.RNNBase) for module in model.modules())
    with torch.backends.cudnn.flags(enabled=not recurrent and torch.backends.cudnn.enabled):
        model.zero_grad(set_to_none=True)
        yield


def _interpolate(parameter: Tensor, ends: Sequence[Tensor], alphas: np.ndarray) -> None:
    """θ ← θ + Σᵢ αᵢ(endᵢ − θ), exactly end₁ for one task with α₁ = 1."""
    values = parameter.contiguous()  # the parameter itself, unless its memory has another order
    factors = torch.as_tensor(alphas, dtype=values.dtype, device=values.device)
    for block, column in zip(_blocks(values), zip(*map(_blocks, ends), strict=True), strict=True):
        if len(column) == 1:
            block.lerp_(column[0], float(alphas[0]))
        else:
            block.addmv_(_moves(column, block).T, factors)
    if not parameter.is_contiguous():
        parameter.copy_(values)


def _blocks(tensor: Tensor) -> tuple[Tensor, ...]:
    flat = tensor.reshape(-1)
    return flat.split(BLOCK) if len(flat) > BLOCK else (flat,)


def _copy(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.detach().clone(memory_format=torch.contiguous_format) for name, tensor in tensors.items()}


@torch.no_grad()
def _put_back(live: Mapping[str, Tensor], before: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return what changed, and write the old values back. Empties `before` on the way, so that no second copy of all is held."""
    changed = {}
    for name in list(before):
        old, now = before.pop(name), live[name]
        if not torch.equal(now, old):
            changed[name] = now.detach().clone(memory_format=torch.contiguous_format)
            now.copy_(old)
    return changed


@torch.no_grad()
def _write(live: Mapping[str, Tensor], values: Mapping[str, Tensor]) -> None:
    for name, value in values.items():
        live[name].copy_(value)
