"""`bilstm`: a bidirectional LSTM over the frozen, cached states of *all* of an encoder's layers.

The states of all layers stand side by side, standardised feature by feature, and are projected to one vector per token; then an
LSTM in both directions. Tagging reads each word's state; other tasks pool over the tokens and combine pairs as in AutoSeM's
Eq. 1. Everything but the heads is shared.

Standardising matters: a few features of a transformer are tens of times as large as the others and drown them. The statistics are
those of the primary's train rows, for all tasks alike, so that tasks share what they learn; they are part of the exported model.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pad_packed_sequence

from sidequest.model_settings import BiLstmSettings
from sidequest.models.autosem import SentenceInputs, WordInputs, packing
from sidequest.models.base import Batch, Inputs, MultiTaskModel, Targets, head_key, seeded, spread_choices
from sidequest.models.frozen import FrozenFamily, combine, combined_width
from sidequest.models.ragged import Ragged
from sidequest.models.tokenising import flat_tags
from sidequest.tasks.examples import Examples
from sidequest.tasks.suite import Suite
from sidequest.tasks.task import Form, Objective, Task

PROJECTED = 256
STATISTICS_ROWS = 2_000  # texts of the primary that means and deviations are taken over


class Standardised(nn.Module):
    """States [tokens, layers, width] → [tokens, layers · width], each feature with mean 0 and deviation 1."""

    mean: Tensor
    scale: Tensor

    def __init__(self, width: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("scale", torch.ones(width))

    def fit(self, states: np.ndarray) -> None:
        """states: float16 [tokens, layers, width]."""
        flat = torch.from_numpy(states.reshape(len(states), -1)).double()
        self.mean.copy_(flat.mean(0))
        self.scale.copy_(1 / flat.std(0, correction=0).clamp(min=1e-6))

    def forward(self, states: Tensor) -> Tensor:
        return (states.flatten(1).float() - self.mean) * self.scale


class BiLstmModel(MultiTaskModel):
    """Sequences are packed: no step is computed on padding, so a text's result does not depend on its neighbours' lengths."""

    def __init__(self, suite: Suite, settings: BiLstmSettings, layers: int, width: int, seed: int) -> None:
        super().__init__()
        hidden, depth = settings.hidden, settings.depth
        rate = settings.dropout
        self.standardised = Standardised(layers * width)
        self.dropout = nn.Dropout(rate)
        with seeded(seed, "bilstm"):
            self.project = nn.Linear(layers * width, PROJECTED)
            between = rate if depth > 1 else 0.0  # torch warns about a rate that has no place to act
            self.lstm = nn.LSTM(PROJECTED, hidden, depth, bidirectional=True, dropout=between)
        self.heads = nn.ModuleDict()
        for task in suite.tasks.values():
            with seeded(seed, "head", task.name):
                self.heads[head_key(task.name)] = nn.Linear(combined_width(task, 2 * hidden), task.outputs)
        self.objectives = {task.name: task.objective for task in suite.tasks.values()}

    def encode(self, batch: Batch) -> PackedSequence:
        """The LSTM's output at every token, in packed order."""
        entering = self.dropout(nn.functional.gelu(self.project(self.standardised(batch["states"]))))
        order, batch_sizes, ranks = packing(batch["lengths"])
        out, _ = self.lstm(PackedSequence(entering[order], batch_sizes))
        return PackedSequence(out.data, batch_sizes, unsorted_indices=ranks)

    def forward(self, task: str, batch: Batch) -> Tensor:
        head, objective = self.heads[head_key(task)], self.objectives[task]
        packed = self.encode(batch)
        if objective == Objective.TAGGING:
            states, _ = pad_packed_sequence(packed, batch_first=True)
            return head(self.dropout(states))
        lowest = torch.finfo(packed.data.dtype).min
        states, _ = pad_packed_sequence(packed, batch_first=True, padding_value=lowest)
        pooled = states.max(dim=1).values
        u = pooled[batch["first"]]
        v = pooled[batch["second"]] if "second" in batch else None
        logits = head(self.dropout(combine(u, v)))
        if objective == Objective.CHOICE:
            return spread_choices(logits[:, 0], batch["choices"])
        return logits[:, 0] if objective == Objective.REGRESSION else logits


class BiLstmFamily(FrozenFamily):
    """A BiLSTM over the standardised states of all layers."""

    kind: ClassVar[str] = "bilstm"
    Settings = BiLstmSettings
    settings: BiLstmSettings
    forms: ClassVar[tuple[Form, ...]] = (Form.TEXT, Form.PAIR, Form.CHOICES, Form.TOKENS)
    default_learning_rate = 2e-3

    def inputs(self, task: Task, examples: Examples) -> Inputs:
        if task.form != Form.TOKENS:
            located = self.locate(task, examples, "tokens")
            return SentenceInputs(located, Targets(task, examples, self.scales[task.name]))
        rows, words = self.words(examples)
        tags = None if examples.target is None else Ragged.of_lengths(flat_tags(examples), words)
        return WordInputs(rows, words, tags)

    def build(self, seed: int) -> BiLstmModel:
        model = BiLstmModel(self.suite, self.settings, self.frozen.depth, self.frozen.width, seed)
        if (states := self._statistics()) is not None:
            model.standardised.fit(states)
        return model

    def _statistics(self) -> np.ndarray | None:
        """States of the primary's train rows; None for an exported model, which brings its own statistics."""
        task = self.suite.tasks[self.suite.primary]
        if "train" not in task.splits or not len(task.train):
            return None
        if self._sample is None:
            some = task.train.take(
                np.linspace(0, len(task.train) - 1, min(len(task.train), STATISTICS_ROWS)).astype(int)
            )
            if task.form == Form.TOKENS:
                rows, words = self.words(some)
                self._sample = rows.gather(np.flatnonzero(words))
            else:
                located = self.locate(task, some, "tokens")
                self._sample = located.rows.gather(np.unique(located.first))
        return self._sample

    _sample: np.ndarray | None = None
