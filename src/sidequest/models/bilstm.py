"""`bilstm`: a bidirectional LSTM over the frozen, cached states of *all* of an encoder's layers.

The states of all layers stand side by side, standardised feature by feature, and are projected to one vector per token; then an
LSTM in both directions. Tagging reads each word's state; other tasks pool over the tokens and combine pairs as in AutoSeM's
Eq. 1, and add the result to a linear read-out of the text's mean states, which starts at its solution (see `direct_path`).
Everything but heads and read-outs is shared. A word's predicted tag also depends on those beside it (see `tag_chain`).

The means and deviations are those of the primary's train rows, for all tasks alike, so that tasks share what they learn; they are
part of the exported model.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pad_packed_sequence

from sidequest.model_settings import BiLstmSettings
from sidequest.models.autosem import TokenStatesFamily, highest_states, packing
from sidequest.models.base import Batch, MultiTaskModel, head_key, seeded
from sidequest.models.direct_path import (
    DirectPath,
    direct_rates,
    feature_widths,
    start_direct_paths,
    text_features,
    zero_head,
)
from sidequest.models.frozen import Standardised, combine, combined_width
from sidequest.models.heads import answers
from sidequest.models.tag_chain import TagChains
from sidequest.models.tokenising import has_pairs
from sidequest.tasks.suite import Suite
from sidequest.tasks.task import Form, Objective

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
        self.heads, self.direct, self.chains = nn.ModuleDict(), nn.ModuleDict(), TagChains(suite.tasks.values())
        for task in suite.tasks.values():
            key, entering = head_key(task.name), combined_width(task, 2 * hidden)
            if task.form == Form.TOKENS:
                with seeded(seed, "head", task.name):
                    self.heads[key] = nn.Linear(entering, task.outputs)
            else:
                self.heads[key] = zero_head(entering, task.outputs)
                features = sum(feature_widths(layers, width, pair=has_pairs(task)))
                self.direct[key] = DirectPath(features, task.outputs)
        self.objectives = {task.name: task.objective for task in suite.tasks.values()}

    def rate_factors(self) -> dict[str, float]:
        return direct_rates(self)

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
        pooled = highest_states(packed)
        u = pooled[batch["first"]]
        v = pooled[batch["second"]] if "second" in batch else None
        vectors = _means(batch["states"], batch["lengths"])
        features = text_features(vectors[batch["first"]], vectors[batch["second"]] if "second" in batch else None)
        logits = self.direct[head_key(task)](features) + head(self.dropout(combine(u, v)))
        return answers(logits, objective, batch)

    def refined(self, task: str, logits: Tensor, batch: Batch) -> Tensor:
        return self.chains.refined(task, logits, batch)


def _means(states: Tensor, lengths: Tensor) -> Tensor:
    """The mean of each text's states: [tokens, layers, width] → float32 [texts, layers, width]."""
    texts = torch.repeat_interleave(torch.arange(len(lengths), device=lengths.device), lengths)
    sums = torch.zeros((len(lengths), *states.shape[1:]), device=states.device).index_add_(0, texts, states.float())
    return sums / lengths[:, None, None]


class BiLstmFamily(TokenStatesFamily):
    """A BiLSTM over the standardised states of all layers."""

    kind: ClassVar[str] = "bilstm"
    Settings = BiLstmSettings
    settings: BiLstmSettings
    default_learning_rate = 2e-3

    def build(self, seed: int) -> BiLstmModel:
        model = BiLstmModel(self.suite, self.settings, self.frozen.depth, self.frozen.width, seed)
        if (states := self.statistics()) is not None:
            model.standardised.fit(states)
            start_direct_paths(model.direct, self)
        return model
