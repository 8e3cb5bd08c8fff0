"""The task-discriminative model: the `TaskDiscriminator` power of `TorchLearner`. Kung et al. (2021), section 3.2.

A fresh model learns all tasks together, some rows of each, and one linear layer on its pooled output learns to tell the tasks
apart. A batch is of one task k, as MT-DNN's are; its loss is the task's own plus the discriminator's:

    bce: mean over rows and tasks j of the binary cross-entropy between σ(z_j) and [j = k], positives weighted by (N − n_j) / n_j
    ce:  mean over rows of −log softmax(z)_k

with n_j the rows of task j and N = Σ n_j. Where tasks have different numbers of rows (a few-shot primary), the task's loss and
`ce` are multiplied by max_j n_j / n_k, so that every task counts for as much in an epoch; `bce` has its positive weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow.compute as pc
import torch
from torch import Tensor, nn
from torch.nn import functional

from sidequest.learning.meter import Meter
from sidequest.learning.protocol import Discrimination
from sidequest.learning.torch.core import Core
from sidequest.learning.torch.losses import task_loss
from sidequest.learning.torch.ranking import RankedChunks, Ranker
from sidequest.learning.torch.state import LearnerState, read_state, write_state
from sidequest.models.base import seed_of, seeded
from sidequest.models.pooled_output import PooledOutput
from sidequest.store import ContentStore
from sidequest.tasks.examples import Examples
from sidequest.tasks.suite import Suite
from sidequest.tasks.task import Task
from sidequest.threads import one_torch_thread

MODEL = "model"  # the name of the only entry


class _Trained:
    """A discriminator with what it came to and what it has ranked."""

    def __init__(self, of: Discrimination, ranker: Ranker, record: dict[str, Any], chunks: RankedChunks) -> None:
        self.of, self.ranker, self.record, self.chunks = of, ranker, record, chunks


class Discriminating:
    """Keeps the `TaskDiscriminator` protocol for a torch learner; see there for what each call promises.

    place: the directory in which a discriminator and its ranking are kept. None: they are kept in memory.
    """

    def __init__(self, core: Core, place: Callable[[Discrimination], Path] | None = None) -> None:
        PooledOutput(core.model)  # an error that says what is missing, before any training
        self._core = core
        self._place = place
        self._trained: _Trained | None = None

    def rows_to_rank(self, task: str, discrimination: Discrimination) -> np.ndarray:
        rows = self._core.task(task).train
        return np.delete(rows.ids, sampled(task, len(rows), discrimination))

    def train_discriminator(self, discrimination: Discrimination) -> dict[str, Any]:
        core, record = self._core, self.trained(discrimination).record
        core.meter.add(Meter.from_json(record["meter"]))
        empty = {name: count for name in sorted(core.suite.tasks) if (count := empty_rows(core.task(name)))}
        return {key: value for key, value in record.items() if key != "meter"} | {"empty": empty}

    def rank_chunk(self, task: str, chunk: int, discrimination: Discrimination) -> int:
        logits, seconds = self._chunk(task, chunk, discrimination)
        count = self._core.meter.of(task)
        count.evaluated_examples += len(logits)
        count.seconds += seconds
        return len(logits)

    def similarities(self, task: str, discrimination: Discrimination) -> np.ndarray:
        suite = self._core.suite
        column = sorted(suite.tasks).index(suite.primary)
        chunks = -(-len(self.rows_to_rank(task, discrimination)) // discrimination.chunk)
        parts = [
            scores_of(self._chunk(task, each, discrimination)[0], column, discrimination) for each in range(chunks)
        ]
        return np.concatenate([np.zeros(0, dtype=np.float32), *parts])

    def pooled_features(self, task: str, ids: np.ndarray, discrimination: Discrimination) -> np.ndarray:
        rows = self._core.task(task).train
        ranker = self.trained(discrimination).ranker
        with self._core.meter.timed(task) as count:
            count.evaluated_examples += len(ids)
            return ranker.features(self._core.task(task), rows.positions(ids))

    def trained(self, discrimination: Discrimination) -> _Trained:
        """The discriminator, found in memory or in its place, or trained."""
        if self._trained is not None and self._trained.of == discrimination:
            return self._trained
        place = None if self._place is None else self._place(discrimination)
        probe, ranker = _new(self._core, discrimination)

        def make(directory: Path) -> dict[str, Any]:
            record = train(probe, ranker, discrimination)
            write_state(LearnerState(probe.snapshot(weights_only=True).tensors, {}), directory)
            return record

        if place is None:
            record = train(probe, ranker, discrimination)
        else:
            entry = ContentStore("models", place).get_or_make(MODEL, make)
            record = dict(entry.data)
            if not entry.made:
                probe.restore(LearnerState(read_state(entry.directory, self._core.device).tensors, {}))
                if hasattr(probe.model, "bf16_evaluation"):
                    probe.model.bf16_evaluation = record["precision"] == "bf16"
        self._trained = _Trained(discrimination, ranker, record, RankedChunks(place, discrimination.chunk))
        return self._trained

    def _chunk(self, task: str, chunk: int, discrimination: Discrimination) -> tuple[np.ndarray, float]:
        """Logits of a chunk's rows, [rows, tasks], and the seconds they took, now or when they were computed."""
        trained = self.trained(discrimination)
        known = trained.chunks.get(task, chunk)
        if known is not None:
            return known
        spec, start = self._core.task(task), chunk * discrimination.chunk
        unused = np.delete(np.arange(len(spec.train)), sampled(task, len(spec.train), discrimination))
        begun = perf_counter()
        with one_torch_thread():  # as in a worker
            logits = trained.ranker.logits(spec, unused[start : start + discrimination.chunk])
        seconds = perf_counter() - begun
        trained.chunks.put(task, chunk, logits, seconds)
        return logits, seconds


def sampled(task: str, rows: int, discrimination: Discrimination) -> np.ndarray:
    """Positions of the rows that the discriminator learns from, in order: a function of seed, task and how many there are."""
    rng = np.random.default_rng(seed_of(discrimination.seed, "discriminator", task))
    return np.sort(rng.permutation(rows)[: discrimination.rows])


def scores_of(logits: np.ndarray, column: int, discrimination: Discrimination) -> np.ndarray:
    """The primary's score of each row, float32 [rows]. A log-probability instead of the probability: the same order, and no ties
    where probabilities are too close to 0 or 1 for float32."""
    if discrimination.loss == "bce":
        return logits[:, column]
    exact = logits.astype(np.float64)
    top = exact.max(axis=1, keepdims=True)
    return (exact[:, column] - top[:, 0] - np.log(np.exp(exact - top).sum(axis=1))).astype(np.float32)


def empty_rows(task: Task) -> int:
    """Train rows without any text."""
    found = np.zeros(len(task.train), dtype=bool)
    for name, column in task.train.columns.items():
        if name in ("text", "text_b"):
            found |= np.asarray(pc.utf8_length(pc.utf8_trim_whitespace(column))) > 0
        elif name == "choices":
            found |= np.array([any(text.strip() for text in row) for row in column.to_pylist()], dtype=bool)
        else:  # words to tag, or images
            found |= np.array([len(row) > 0 for row in column], dtype=bool)
    return int((~found).sum())


def discriminator_loss(scores: Tensor, task: int, loss: str, positive_weights: Tensor) -> Tensor:
    """The loss of telling tasks apart, for a batch of one task: scores [n, tasks] → mean."""
    if loss == "ce":
        return functional.cross_entropy(scores, torch.full((len(scores),), task, device=scores.device))
    truth = torch.zeros_like(scores)
    truth[:, task] = 1.0
    return functional.binary_cross_entropy_with_logits(scores, truth, pos_weight=positive_weights)


def positive_weights(counts: np.ndarray) -> np.ndarray:
    """(N − n_k) / n_k: what makes a task's few positives weigh as much as the others' rows together."""
    return (counts.sum() - counts) / counts


def balance(counts: np.ndarray) -> np.ndarray:
    """max n / n_k: 1 for all where all have equally many rows."""
    return counts.max() / counts


def _new(core: Core, discrimination: Discrimination) -> tuple[Core, Ranker]:
    """A fresh learner of the sampled rows alone, so that no other row is tokenised; its model has a discriminator."""
    names = sorted(core.suite.tasks)  # not the suite's order: the model is the same for every primary
    small = [_few(core.suite.tasks[name], discrimination) for name in names]
    suite = Suite.of(small[0], small[1:], name="discriminator")
    probe = core.fresh(discrimination.seed, suite=suite, meter=Meter())
    pooled = PooledOutput(probe.model)
    if isinstance(heads := getattr(probe.model, "heads", None), nn.ModuleDict):
        # By name, like the tasks: the norm of all gradients is a sum, whose last bit depends on the order of parameters.
        ordered = dict(sorted(heads.items()))
        heads.clear()
        heads.update(ordered)
    with seeded(discrimination.seed, "discriminator"):
        linear = nn.Linear(pooled.width, len(names))
        nn.init.normal_(linear.weight, std=0.02)
        nn.init.zeros_(linear.bias)
    probe.model.add_module("discriminator", linear.to(core.device))
    return probe, Ranker(core.family, pooled, linear, names, core.device)


def _few(task: Task, discrimination: Discrimination) -> Task:
    rows: Examples = task.train.take(sampled(task.name, len(task.train), discrimination))
    return replace(task, splits={"train": rows}, notes=())


def train(probe: Core, ranker: Ranker, discrimination: Discrimination) -> dict[str, Any]:
    """Train the model and its discriminator: every epoch all batches of all tasks, in random order. Returns the record."""
    names, device = ranker.names, probe.device
    counts = np.array([probe.sizes[name] for name in names], dtype=np.float64)
    positives = torch.tensor(positive_weights(counts), dtype=torch.float32, device=device)
    weights = balance(counts)
    batches = [probe.epoch_batches(name) for name in names]
    order = np.concatenate(
        [
            np.random.default_rng([discrimination.seed, epoch]).permutation(np.repeat(np.arange(len(names)), batches))
            for epoch in range(math.ceil(discrimination.epochs))
        ]
    )[: round(discrimination.epochs * sum(batches))]
    probe.begin(max(1, len(order)))
    told, right, seen = 0.0, 0, 0
    with probe.randomness.lent():
        probe.model.train()
        for step, index in enumerate(order.tolist()):
            name = names[index]
            with probe.meter.timed(name) as count:
                batch = probe.batch(name, probe.stream(name).next(), count)
                logits, features = ranker.pooled(name, batch)
                scores = ranker.discriminator(features)
                loss = torch.zeros((), device=device)
                if discrimination.loss != "none":
                    apart = discriminator_loss(scores, index, discrimination.loss, positives)
                    loss = loss + apart * (weights[index] if discrimination.loss == "ce" else 1.0)
                if discrimination.task_losses:
                    loss = loss + weights[index] * task_loss(probe.suite.tasks[name], logits, batch["labels"])
                probe.step(loss)
            if step >= len(order) - sum(batches) and discrimination.loss != "none":
                told += float(apart.detach()) * len(scores)
                right += int((scores.argmax(1) == index).sum())
                seen += len(scores)
    return {
        "rows": {name: int(count) for name, count in zip(names, counts, strict=True)},
        "loss": told / seen if seen else None,
        "accuracy": right / seen if seen else None,
        "precision": ranker.choose_precision(probe.suite.tasks),
        "meter": probe.meter.to_json(),
    }
