"""`bilstm`: a bidirectional LSTM over the frozen, cached states of *all* of an encoder's layers.

The states of all layers stand side by side, standardised feature by feature, and are projected to one vector per token; then an
LSTM in both directions. Tagging reads each word's state; other tasks pool over the tokens and combine pairs as in AutoSeM's
Eq. 1. Everything but the heads is shared.

The means and deviations are those of the primary's train rows, for all tasks alike, so that tasks share what they learn; they are
part of the exported model.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pad_packed_sequence

from sidequest.model_settings import BiLstmSettings
from sidequest.models.autosem import SentenceInputs, WordInputs, packing
from sidequest.models.base import Batch, Inputs, MultiTaskModel, Targets, head_key, seeded, spread_choices
from sidequest.models.frozen import FrozenFamily, Standardised, combine, combined_width
from sidequest.models.ragged import Ragged
from sidequest.models.tokenising import flat_tags
from sidequest.tasks.examples import Examples
from sidequest.tasks.suite import Suite
from sidequest.tasks.task import Form, Objective, Task

PROJECTED = 256


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
        if (states := self.statistics("tokens")) is not None:
            model.standardised.fit(states)
        return model
