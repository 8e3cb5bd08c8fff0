"""TorchLearner: the only training loop in sidequest."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sidequest.errors import DataError, unknown
from sidequest.learning.meter import Meter
from sidequest.learning.protocol import PowerT
from sidequest.learning.torch.batching import Stream, evaluation_batches
from sidequest.learning.torch.core import Course, EncodedTasks
from sidequest.learning.torch.losses import predictions, task_loss
from sidequest.learning.torch.optimising import (
    new_optimizer,
    optimizer_tensors,
    parameters_of,
    prepare_network,
    restore_optimizer,
    schedule,
)
from sidequest.learning.torch.powers import PowerStores, make_power
from sidequest.learning.torch.processes import group, parts_of
from sidequest.learning.torch.randomness import Randomness
from sidequest.learning.torch.state import LearnerState, read_state, write_state
from sidequest.learning.torch.truth import RowByRow
from sidequest.models.base import Batch, Family, Inputs, MultiTaskModel, seed_of, seeded
from sidequest.models.devices import chosen_device
from sidequest.recipe import Subset
from sidequest.settings import TrainSettings
from sidequest.tasks.metrics import compute
from sidequest.tasks.permuted import permuted
from sidequest.tasks.suite import Suite
from sidequest.tasks.task import Objective, Task


class TorchLearner(RowByRow):
    """A multi-task model in training: keeps `sidequest.learning.protocol.Learner`, and `Core` for the powers over it.

    One optimiser for the shared encoder and all heads. A head that a batch does not use has no gradient and is not touched, so
    a task that is never trained on changes nothing. Dropout draws from the learner's own random state, not the process's.
    """

    def __init__(
        self,
        suite: Suite,
        family: Family,
        train: TrainSettings,
        *,
        seed: int = 0,
        meter: Meter | None = None,
        device: str | torch.device | None = None,
        data: EncodedTasks | None = None,
        stores: PowerStores | None = None,
    ) -> None:
        self.suite = suite
        self.family = family
        self.settings = train
        self.seed = seed
        self.meter = meter if meter is not None else Meter()
        self.device = chosen_device(device)
        self._data = data or EncodedTasks(family)
        self._stores = stores or PowerStores()
        self._powers: dict[type, Any] = {}
        self.processes = group()
        with seeded(seed, "build"):  # modules draw initial values from torch's global generator
            self.model: MultiTaskModel = family.build(seed).to(self.device)
        self.processes.check(self.model)
        prepare_network(self.model, train, self.device)
        self._streams: dict[tuple[str, str], Stream] = {}
        self._stream_positions: dict[str, tuple[int, int]] = {}
        self.randomness = Randomness(seed, self.device)
        self._learning_rate = train.learning_rate or family.default_learning_rate
        self._total: int | None = None
        self._step = 0
        self._rate = 1.0  # a factor on the learning rate, of the schedule that runs
        self.optimizer = self._new_optimizer()
        self.courses: dict[str, Course] = {}  # tasks with an optimiser and a schedule of their own (`begin_deltas`)

    # What there is

    @property
    def tasks(self) -> tuple[str, ...]:
        return tuple(self.suite.tasks)

    @property
    def primary(self) -> str:
        return self.suite.primary

    @property
    def sizes(self) -> Mapping[str, int]:
        return {name: len(task.train) for name, task in self.suite.tasks.items()}

    def epoch_batches(self, task: str, subset: Subset | None = None) -> int:
        rows = len(subset.ids) if subset is not None else len(self.task(task).train)
        return -(-rows // self.settings.batch_size)

    # Training

    def begin(self, total_batches: int | None, *, rate: float = 1.0, keep_optimizer: bool = False) -> None:
        self._total, self._step, self._rate = total_batches, 0, rate
        if not keep_optimizer:
            self.optimizer = self._new_optimizer()

    def train(self, task: str, n_batches: int, *, weight: float = 1.0, subset: Subset | None = None) -> list[float]:
        spec, stream = self.task(task), self.stream(task, subset)
        losses, micro = [], self.settings.micro_batch
        with self.meter.timed(task) as count, self.randomness.lent(self.processes):
            self.model.train()
            for _ in range(n_batches):
                positions = stream.next()
                self._count(task, positions, count)
                self.optimizer.zero_grad(set_to_none=True)
                parts = []
                for batch, share in parts_of(
                    self.processes, self.inputs(task, "train"), positions, micro, spec.objective
                ):
                    batch = self.to_device(batch)
                    loss = task_loss(spec, self.model(task, batch), batch["labels"]) * share
                    (loss * weight).backward()
                    parts.append(loss.detach())
                self.processes.sum_gradients(parameters_of(self.optimizer))
                self._update()
                losses.append(parts[0] if len(parts) == 1 else torch.stack(parts).sum())
        return self.processes.first(self.processes.sum(torch.stack(losses)).tolist()) if losses else []

    def batch(self, task: str, positions: np.ndarray, count: Any) -> Batch:
        """The tensors of a whole training batch, counted."""
        self._count(task, positions, count)
        return self.to_device(self.inputs(task, "train").collate(positions))

    def _count(self, task: str, positions: np.ndarray, count: Any) -> None:
        count.batches += 1
        count.examples += len(positions)
        count.tokens += int(self.inputs(task, "train").lengths[positions].sum())

    def step(self, loss: Tensor) -> None:
        """One optimiser step on a loss that every process has in full."""
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self._update()

    def _update(self) -> None:
        """The only place where parameters learn: by the gradients that they have now."""
        if self.settings.clip is not None:
            used = [p for p in parameters_of(self.optimizer) if p.grad is not None]
            torch.nn.utils.clip_grad_norm_(used, self.settings.clip)
        rate = self._learning_rate * self._rate * schedule(self._step, self._total, self.settings)
        for params in self.optimizer.param_groups:
            params["lr"] = rate * params["factor"]
        self.optimizer.step()
        self._step += 1

    @contextmanager
    def on_course(self, course: Course, rate: float) -> Iterator[None]:
        """Train with another optimiser and schedule, and a factor on the learning rate, for a while."""
        own = self.optimizer, self._step, self._total, self._learning_rate
        self.optimizer = course.optimizer or self._new_optimizer()
        self._step, self._total, self._learning_rate = course.step, course.total, self._learning_rate * rate
        try:
            yield
        finally:
            course.optimizer, course.step = self.optimizer, self._step
            self.optimizer, self._step, self._total, self._learning_rate = own

    def _new_optimizer(self) -> torch.optim.Optimizer:
        return new_optimizer(self.model, self.settings, self._learning_rate)

    # Evaluation

    def evaluate(self, task: str, split: str = "select") -> float:
        return next(iter(self._evaluate(task, split, first=True).values()))

    def evaluate_all(self, task: str, split: str = "select") -> dict[str, float]:
        return self._evaluate(task, split, first=False)

    def _evaluate(self, task: str, split: str, *, first: bool) -> dict[str, float]:
        spec = self.task(task)
        found, target = self.predict(task, split), spec.splits[split].target
        names = spec.metrics[:1] if first else spec.metrics
        return self.processes.first({name: compute(name, found, target, spec.labels) for name in names})

    def predict(self, task: str, split: str) -> Any:
        """Predictions in row order: class indices [n], values [n] in the task's units, or a list of tag arrays."""
        spec = self.task(task)
        found, order = self.read(task, split, lambda logits, batch: predictions(spec, logits, batch.get("labels")))
        if spec.objective == Objective.TAGGING:
            rows = [row.cpu().numpy() for batch_rows in found for row in batch_rows]
            return [rows[i] for i in order]
        values = torch.cat(found).cpu().numpy()[order]
        return self.family.scales[task].restore(values) if spec.objective == Objective.REGRESSION else values

    def read(
        self, task: str, split: str, read: Callable[[Tensor, Batch], Any], rows: np.ndarray | None = None
    ) -> tuple[list[Any], np.ndarray]:
        """What `read` makes of the logits, batch by batch, of all processes; and the order that puts rows in their place. rows:
        positions to look at, all where None."""
        inputs = self.inputs(task, split)
        chosen = np.arange(len(inputs)) if rows is None else rows
        batches = evaluation_batches(inputs.lengths[chosen], self.settings.eval_batch_size)
        self.model.eval()
        with self.meter.timed(task) as count, torch.inference_mode():
            found = []
            for positions in batches[self.processes.rank :: self.processes.size]:
                batch = self.to_device(inputs.collate(chosen[positions]))
                found.append(read(self.model.refined(task, self.model(task, batch), batch), batch))
            found = self.processes.gather(found)
            count.evaluations += 1
            count.evaluated_examples += len(chosen)
        return found, np.argsort(np.concatenate(batches), kind="stable")

    # State

    def snapshot(self, *, weights_only: bool = False) -> LearnerState:
        if weights_only:
            return LearnerState({name: tensor.detach().clone() for name, tensor in self._weights().items()}, {})
        tensors = {name: tensor.detach().clone() for name, tensor in self._tensors().items()}
        plain = {
            "seed": self.seed,
            "step": self._step,
            "total": self._total,
            "rate": self._rate,
            "streams": self._stream_positions | {_key(*k): (s.epoch, s.taken) for k, s in self._streams.items()},
            "courses": [(task, course.total, course.step) for task, course in self.courses.items()],
        }
        return LearnerState(tensors, plain)

    def restore(self, snapshot: LearnerState) -> None:
        with torch.no_grad():  # heads of tasks that this suite lacks are left out
            for name, live in self._weights().items():
                live.copy_(snapshot.tensors[name])
        plain = snapshot.plain
        if not plain:  # of the weights only
            return
        self._step, self._total, self._rate = plain["step"], plain["total"], plain.get("rate", 1.0)
        self._stream_positions = {key: (epoch, taken) for key, (epoch, taken) in plain["streams"].items()}
        for (task, subset), stream in self._streams.items():
            stream.seek(*self._stream_positions.get(_key(task, subset), (0, 0)))
        self.randomness.restore(snapshot.tensors)
        self.optimizer = self._restored_optimizer(snapshot.tensors, "optimizer")
        self.courses = {
            task: Course(total, step, self._restored_optimizer(snapshot.tensors, f"course-{number}"))
            for number, (task, total, step) in enumerate(plain["courses"])
        }

    def _restored_optimizer(self, tensors: Mapping[str, Tensor], prefix: str) -> torch.optim.Optimizer:
        optimizer = self._new_optimizer()
        restore_optimizer(optimizer, tensors, prefix)
        return optimizer

    def fresh(self, seed: int, *, suite: Suite | None = None, meter: Meter | None = None) -> TorchLearner:
        data = self._data if suite is None else None
        return self._like(self.suite if suite is None else suite, self.family, seed, meter, data)

    def with_permuted(self, tasks: Mapping[str, int]) -> TorchLearner:
        shuffled = {name: permuted(self.task(name), seed) for name, seed in tasks.items()}
        suite = dataclasses.replace(self.suite, tasks={**self.suite.tasks, **shuffled})
        # A family knows its suite: heads that start from a solution must start from that of the shuffled targets.
        family = type(self.family)(suite, self.family.settings)
        data = EncodedTasks(family)
        data.encoded = {key: inputs for key, inputs in self._data.encoded.items() if key[0] not in shuffled}
        return self._like(suite, family, self.seed, None, data)

    def _like(
        self, suite: Suite, family: Family, seed: int, meter: Meter | None, data: EncodedTasks | None
    ) -> TorchLearner:
        return TorchLearner(
            suite,
            family,
            self.settings,
            seed=seed,
            meter=self.meter if meter is None else meter,
            device=self.device,
            data=data,
            stores=self._stores,
        )

    def save(self, directory: Path, snapshot: LearnerState | None = None) -> None:
        write_state(snapshot or self.snapshot(), directory)

    def load(self, directory: Path) -> None:
        self.restore(read_state(directory, self.device))

    def _weights(self) -> dict[str, Tensor]:
        """Trained parameters and buffers."""
        named: dict[str, Tensor] = {f"model.{name}": p for name, p in self.model.named_parameters() if p.requires_grad}
        return named | {f"model.{name}": buffer for name, buffer in self.model.named_buffers()}

    def _tensors(self) -> dict[str, Tensor]:
        """Everything that changes in training: weights, optimiser states, random state."""
        named = self._weights()
        optimizers = {"optimizer": self.optimizer}
        for number, course in enumerate(self.courses.values()):
            if course.optimizer is not None:
                optimizers[f"course-{number}"] = course.optimizer
        for prefix, optimizer in optimizers.items():
            named |= optimizer_tensors(optimizer, prefix)
        return named | self.randomness.states

    # Powers, and small things

    def __getitem__(self, power: type[PowerT]) -> PowerT:
        if power not in self._powers:
            self._powers[power] = make_power(self, power, self._stores)
        return self._powers[power]

    def task(self, name: str) -> Task:
        if name not in self.suite.tasks:
            raise unknown("task", name, self.suite.tasks)
        return self.suite.tasks[name]

    def inputs(self, task: str, split: str) -> Inputs:
        return self._data.of(self.task(task), split)

    def stream(self, task: str, subset: Subset | None = None, *, order: str = "") -> Stream:
        key = (task, order if subset is None else subset.key)
        if key not in self._streams:
            positions = None if subset is None else self.positions(task, subset)
            lengths = self.inputs(task, "train").lengths
            stream = Stream(lengths, positions, self.settings.batch_size, seed_of(self.seed, "order", *key))
            stream.seek(*self._stream_positions.get(_key(*key), (0, 0)))
            self._streams[key] = stream
        return self._streams[key]

    def positions(self, task: str, subset: Subset) -> np.ndarray:
        try:
            return self.task(task).train.positions(subset.ids)
        except KeyError as error:
            raise DataError(f"the subset of {task!r} names rows that its train split lacks: {error.args[0]}") from None

    def to_device(self, batch: Batch) -> Batch:
        if self.device.type == "cpu":
            return batch
        if self.device.type == "cuda":  # only from pinned memory does a copy go on beside the computation
            batch = {name: tensor.pin_memory() for name, tensor in batch.items()}
        return {name: tensor.to(self.device, non_blocking=True) for name, tensor in batch.items()}


def _key(task: str, subset: str) -> str:
    return f"{task}\t{subset}"
