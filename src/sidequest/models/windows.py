"""Texts that are longer than an encoder reads, in overlapping windows: every token is read, with context on both sides.

A window is a stretch of the text between the marks that the tokeniser puts at the ends of every text. Neighbours share a quarter
of their tokens, and the last window is moved back so that it is as long as the others. What a model says about the windows of a
text is averaged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sidequest.models.ragged import Ragged, ranges

SHARED = 4  # one token in so many of a window is also in the next


@dataclass(frozen=True)
class Marks:
    """How many special tokens a tokeniser puts before and after a text."""

    before: int
    after: int

    @classmethod
    def of(cls, tokeniser: Any) -> Marks:
        alone, word = tokeniser(["", "a"])["input_ids"]
        before = next((i for i, (one, other) in enumerate(zip(alone, word, strict=False)) if one != other), len(alone))
        return cls(before, len(alone) - before)


@dataclass(frozen=True)
class Windows:
    """ids: the windows of all texts, one after another. counts: int64 [texts], how many each text has.

    source: int64, aligned with `ids.values`: which token of all texts' tokens each is.
    """

    ids: Ragged
    counts: np.ndarray
    source: np.ndarray


def windows_of(texts: Ragged, most: int, marks: Marks) -> Windows:
    """Windows of at most `most` tokens; a text that is not longer is one window. texts: token ids with their marks."""
    before, after = marks.before, marks.after
    room = most - before - after
    if room < 1:
        raise ValueError(f"a window of {most} tokens has no room beside {before + after} marks")
    step = room - room // SHARED
    inner = np.maximum(texts.lengths - before - after, 0)
    counts = np.where(texts.lengths <= most, 1, -(-(inner - room) // step) + 1)
    text_of = np.repeat(np.arange(len(texts)), counts)
    number = np.arange(len(text_of)) - np.repeat(np.cumsum(counts) - counts, counts)
    whole = texts.lengths[text_of] <= most
    size = np.where(whole, inner[text_of], room)
    start = np.minimum(number * step, inner[text_of] - size)
    # Three stretches of the text make a window: the marks before, some of its tokens, the marks after. Short texts are taken as
    # they are, whatever marks they have.
    begin = np.stack([np.zeros_like(start), before + start, texts.lengths[text_of] - after], axis=1)
    length = np.stack([np.full_like(start, before), size, np.full_like(start, after)], axis=1)
    begin[whole], length[whole] = 0, 0
    length[whole, 0] = texts.lengths[text_of][whole]
    source = ranges((begin + texts.offsets[text_of][:, None]).ravel(), length.ravel())
    return Windows(Ragged.of_lengths(texts.values[source], length.sum(axis=1)), counts, source)


def merged(states: Tensor, windows: Windows, tokens: int) -> Tensor:
    """States of the windows' tokens [sum of window lengths, ...] → of the texts' tokens [tokens, ...]: a token that several
    windows have gets the mean of its states."""
    source = torch.from_numpy(windows.source).to(states.device)
    sums = states.new_zeros((tokens, *states.shape[1:])).index_add_(0, source, states)
    counts = torch.bincount(source, minlength=tokens).clamp(min=1)
    return sums / counts.view(-1, *[1] * (states.ndim - 1))


def segment_means(values: Tensor, counts: Tensor) -> Tensor:
    """values [sum of counts, ...] → [n, ...]: the mean over the entries of each row."""
    owner = torch.repeat_interleave(torch.arange(len(counts), device=counts.device), counts)
    sums = values.new_zeros((len(counts), *values.shape[1:])).index_add_(0, owner, values)
    return sums / counts.view(-1, *[1] * (values.ndim - 1))
