"""`autosem`: AutoSeM's sentence-pair classifier (section 3.1) over frozen, cached encoder states.

A trainable weighted sum of the encoder's layers stands where the paper has ELMo's, then a bidirectional LSTM, max-pooling over
the tokens, h = [u; v; u ⋆ v; |u − v|] (Eq. 1), and one projection per task. Everything but the projections is shared.

**Departures.** The layers are a transformer's, with all its sub-tokens. A single sentence has h = u; tagging projects the
LSTM's output at each word; multiple choice scores each (premise, choice) pair with one projection. Dropout (0.2) acts on the
LSTM's inputs and on h. The paper's LSTM has two layers of 512 units (1,024 for RTE): the defaults here are `hidden` = 256 and
`depth` = 1, about a tenth of the work; `--set model.hidden=512 --set model.depth=2` is the paper's.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pad_packed_sequence

from sidequest.model_settings import AutosemSettings
from sidequest.models.base import IGNORE, Batch, Inputs, MultiTaskModel, Targets, head_key, seeded
from sidequest.models.frozen import FrozenFamily, Located, combine, combined_width
from sidequest.models.heads import answers, linear_heads
from sidequest.models.ragged import Ragged, mask, ranges
from sidequest.models.store import Rows
from sidequest.models.tokenising import flat_tags
from sidequest.tasks.examples import Examples
from sidequest.tasks.suite import Suite
from sidequest.tasks.task import Form, Objective, Task


class SentenceInputs(Inputs):
    """Batches hold each different text once: `states` float16 [tokens, layers, width] one text after another, `lengths` [texts],
    and `first`, `second` [n], the texts of each row (or choice)."""

    def __init__(self, located: Located, targets: Targets) -> None:
        self.located, self.targets = located, targets
        tokens = located.rows.lengths
        self.lengths = tokens[located.first].copy()
        if located.second is not None:
            self.lengths += tokens[located.second]
        if located.start is not None:
            self.lengths = np.add.reduceat(self.lengths, located.start) if len(located.start) else self.lengths

    def collate(self, positions: np.ndarray) -> Batch:
        found, batch, texts = self.located, {}, positions
        if found.counts is not None and found.start is not None:
            texts = ranges(found.start[positions], found.counts[positions])
            batch["choices"] = torch.from_numpy(found.counts[positions])
        wanted = (
            found.first[texts] if found.second is None else np.concatenate([found.first[texts], found.second[texts]])
        )
        unique, where = np.unique(wanted, return_inverse=True)
        batch |= states_of(found.rows, unique)
        batch["first"] = torch.from_numpy(where[: len(texts)])
        if found.second is not None:
            batch["second"] = torch.from_numpy(where[len(texts) :])
        return self.targets.into(batch, positions)


class WordInputs(Inputs):
    """Sentences to tag: `states`, `lengths` as above, `words` and `labels` [n, longest]."""

    def __init__(self, rows: Rows, words: np.ndarray, tags: Ragged | None) -> None:
        self.rows, self.counts, self.tags = rows, words, tags
        self.lengths = rows.lengths

    def collate(self, positions: np.ndarray) -> Batch:
        batch = states_of(self.rows, positions)
        longest = int(self.lengths[positions].max())
        batch["words"] = torch.from_numpy(mask(self.counts[positions], longest))
        if self.tags is not None:
            batch["labels"] = torch.from_numpy(self.tags.pad(positions, IGNORE, longest))
        return batch


def states_of(rows: Rows, positions: np.ndarray) -> Batch:
    return {
        "states": torch.from_numpy(rows.gather(positions)),
        "lengths": torch.from_numpy(rows.lengths[positions]),
    }


class LayerMix(nn.Module):
    """ELMo's scalar mix: γ · Σ_j softmax(s)_j · h_j."""

    def __init__(self, layers: int) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.zeros(layers))
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, states: Tensor) -> Tensor:
        """[tokens, layers, width] → [tokens, width]."""
        return torch.einsum("tlw,l->tw", states, self.scale * self.weights.softmax(0))


class AutoSeMModel(MultiTaskModel):
    """Sequences are packed: no step is computed on padding, so a text's result does not depend on its neighbours' lengths, and in
    batches of mixed lengths this is also the faster way."""

    def __init__(self, suite: Suite, settings: AutosemSettings, layers: int, width: int, seed: int) -> None:
        super().__init__()
        hidden, depth = settings.hidden, settings.depth
        rate = settings.dropout
        self.mix = LayerMix(layers)
        self.dropout = nn.Dropout(rate)
        with seeded(seed, "bilstm"):
            between = rate if depth > 1 else 0.0  # torch warns about a rate that has no place to act
            self.lstm = nn.LSTM(width, hidden, depth, bidirectional=True, dropout=between)
        self.heads = linear_heads(suite.tasks.values(), lambda task: combined_width(task, 2 * hidden), seed)
        self.objectives = {task.name: task.objective for task in suite.tasks.values()}

    def encode(self, batch: Batch) -> PackedSequence:
        """The LSTM's output at every token, in packed order."""
        lengths = batch["lengths"]
        mixed = self.dropout(self.mix(batch["states"].float()))
        order, batch_sizes, ranks = packing(lengths)
        out, _ = self.lstm(PackedSequence(mixed[order], batch_sizes))
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
        logits = head(self.dropout(combine(u, v)))
        return answers(logits, objective, batch)


def highest_states(packed: PackedSequence) -> Tensor:
    """Of each text the highest value of every feature over its tokens: [texts, features]."""
    lowest = torch.finfo(packed.data.dtype).min
    states, _ = pad_packed_sequence(packed, batch_first=True, padding_value=lowest)
    return states.max(dim=1).values


def packing(lengths: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """How texts that lie one after another become a PackedSequence: all first tokens, all second ones, …, longest text first.

    lengths int64 [n] → order int64 [tokens], batch_sizes int64 [longest] (on the CPU, as torch wants it), and the rank of each
    text by length, int64 [n], which puts results back in place.
    """
    by_length = torch.argsort(lengths, descending=True, stable=True)
    ranks = torch.argsort(by_length)
    ends = lengths.cumsum(0)
    token = torch.arange(int(ends[-1]), device=lengths.device)
    step = token - torch.repeat_interleave(ends - lengths, lengths)
    order = torch.argsort(step * len(lengths) + torch.repeat_interleave(ranks, lengths))
    return order, torch.bincount(step).cpu(), ranks


class TokenStatesFamily(FrozenFamily):
    """Of models that read the frozen states of every token."""

    forms: ClassVar[tuple[Form, ...]] = (Form.TEXT, Form.PAIR, Form.CHOICES, Form.TOKENS)

    def inputs(self, task: Task, examples: Examples) -> Inputs:
        if task.form != Form.TOKENS:
            located = self.locate(task, examples, "tokens")
            return SentenceInputs(located, Targets(task, examples, self.scales[task.name]))
        rows, words = self.words(examples)
        tags = None if examples.target is None else Ragged.of_lengths(flat_tags(examples), words)
        return WordInputs(rows, words, tags)


class AutoSeMFamily(TokenStatesFamily):
    """AutoSeM's own architecture over frozen states, for its reproduction; `bilstm` is the stronger model."""

    kind: ClassVar[str] = "autosem"
    Settings = AutosemSettings
    settings: AutosemSettings
    default_learning_rate = 1e-3

    def build(self, seed: int) -> AutoSeMModel:
        return AutoSeMModel(self.suite, self.settings, self.frozen.depth, self.frozen.width, seed)
