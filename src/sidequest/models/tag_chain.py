"""Which tag follows which: what a tagger that judges each word by itself leaves unused.

A tagger whose loss is a sum over words gives p(tag | sentence) for each of them, and its best tags need not fit together: `I-PER`
after `O`, a name of two kinds. Few sentences do not teach it better: with 160 of NER what follows is worth six points of span F1
(docs/log/2026-11-18-tag-chain.md). Here a sentence's tags have the probability

    p(y) ∝ ∏_t p(y_t | sentence) · ∏_t ( T(y_t | y_{t−1}) / p(y_t) )^½

with the train tags' own transitions T and frequencies p, and a word's answer is its marginal, computed forward and backward.
With the exponent 1 and a tagger that sees one word, this is the hybrid of a network and a hidden Markov model (Bourlard and
Morgan, 1994); the exponent ½ is because an LSTM has seen the neighbours already.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from sidequest.models.base import Batch, head_key
from sidequest.tasks.task import Objective, Task

TRUST = 0.5  # the exponent; chosen on train rows that were not learned from, see the log
PSEUDO_COUNT = 1.0  # as many transitions as this, spread as the tags are, are seen from each tag


class TagChain(nn.Module):
    """Logits of words, each by itself, become logits of words as parts of a sentence. Nothing here is learned by gradients."""

    first: Tensor
    follows: Tensor

    def __init__(self, tags: int) -> None:
        super().__init__()
        self.register_buffer("first", torch.ones(tags))
        self.register_buffer("follows", torch.ones(tags, tags))

    def fit(self, task: Task) -> None:
        """Count the train tags. Without any, the chain changes nothing."""
        target: Any = task.train.target if "train" in task.splits else None
        rows = [] if target is None else target.to_pylist()
        first, follows = tag_factors([np.asarray(row, dtype=np.int64) for row in rows if row], len(task.labels))
        self.first.copy_(torch.from_numpy(first))
        self.follows.copy_(torch.from_numpy(follows))

    def forward(self, logits: Tensor, words: Tensor) -> Tensor:
        """logits [n, longest, tags]; words bool [n, longest], the positions that stand for words → the marginals' logarithms, of
        the same shape; at other positions the logits stay as they are."""
        order = torch.argsort((~words).byte(), dim=1, stable=True)  # a row's words first
        places = order[..., None].expand_as(logits)
        marginals = self._marginals(logits.gather(1, places), words.gather(1, order))
        return torch.where(words[..., None], torch.zeros_like(logits).scatter(1, places, marginals), logits)

    def _marginals(self, logits: Tensor, words: Tensor) -> Tensor:
        """As `forward`, of rows whose words come first. Every step is scaled, so that nothing becomes too small."""
        alone = logits.softmax(-1).clamp(min=torch.finfo(logits.dtype).eps ** 2)
        longest = logits.shape[1]
        before = [self.first.expand(len(logits), -1)]  # what the words before a word say of it
        for place in range(1, longest):
            before.append(_scaled((before[-1] * alone[:, place - 1]) @ self.follows))
        after = [torch.ones_like(alone[:, 0])]  # what the words after it say
        for place in range(longest - 2, -1, -1):
            message = _scaled((alone[:, place + 1] * after[-1]) @ self.follows.T)
            after.append(torch.where(words[:, place + 1, None], message, 1.0))
        marginal = alone * torch.stack(before, dim=1) * torch.stack(after[::-1], dim=1)
        marginal = marginal.clamp(min=torch.finfo(logits.dtype).tiny)
        return (marginal / marginal.sum(-1, keepdim=True)).log()


class TagChains(nn.ModuleDict):
    """One for each task with tags."""

    def __init__(self, tasks: Iterable[Task]) -> None:
        super().__init__()
        for task in tasks:
            if task.objective == Objective.TAGGING:
                chain = self[head_key(task.name)] = TagChain(task.outputs)
                chain.fit(task)

    def refined(self, task: str, logits: Tensor, batch: Batch) -> Tensor:
        key = head_key(task)
        return self[key](logits, batch["words"]) if key in self else logits


def tag_factors(rows: list[np.ndarray], tags: int) -> tuple[np.ndarray, np.ndarray]:
    """How much likelier a tag is at the beginning of a sentence, [tags], and after each tag, [tags, tags], than anywhere; to the
    power TRUST."""
    anywhere = np.bincount(np.concatenate([*rows, np.arange(tags)]), minlength=tags).astype(np.float64)
    anywhere /= anywhere.sum()
    begins, pairs = np.zeros(tags), np.zeros((tags, tags))
    for row in rows:
        begins[row[0]] += 1
        np.add.at(pairs, (row[:-1], row[1:]), 1)
    first, follows = (
        (counts + PSEUDO_COUNT * anywhere) / (counts.sum(-1, keepdims=True) + PSEUDO_COUNT)
        for counts in (begins, pairs)
    )
    return (first / anywhere) ** TRUST, (follows / anywhere) ** TRUST


def _scaled(message: Tensor) -> Tensor:
    return message / message.amax(-1, keepdim=True)
