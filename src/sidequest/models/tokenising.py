"""From rows of a task to token ids: once, in batches, into flat arrays; and from those to padded tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from sidequest.errors import DataError
from sidequest.models.base import IGNORE, Batch, Inputs, Targets
from sidequest.models.ragged import Ragged, concatenate, mask, ranges
from sidequest.tasks.examples import Examples
from sidequest.tasks.task import Form, Task

CHUNK = 2_000  # texts per call of the tokeniser: large enough to be fast, small enough that Python lists stay small


@dataclass(frozen=True)
class Texts:
    """The texts of a task's rows, flat. `second` is None for single texts.

    counts: int64 [rows], how many of the texts belong to each row (its choices); None: one each.
    """

    first: list[str]
    second: list[str] | None
    counts: np.ndarray | None

    @classmethod
    def of(cls, task: Task, examples: Examples) -> Texts:
        columns = examples.columns
        if task.form != Form.CHOICES:
            second = columns["text_b"].to_pylist() if task.form == Form.PAIR else None
            return cls(columns["text"].to_pylist(), second, None)
        rows = columns["choices"].to_pylist()
        counts = np.array([len(row) for row in rows], dtype=np.int64)
        if len(counts) and counts.min() < 1:
            raise DataError(f"task {task.name!r}: row {int(examples.ids[counts.argmin()])} has no choices")
        choices = [text for row in rows for text in row]
        premises = [columns[name].to_pylist() for name in ("text", "text_b") if name in columns]
        if not premises:
            return cls(choices, None, counts)
        joined = [" ".join(parts) for parts in zip(*premises, strict=True)]
        return cls([text for text, count in zip(joined, counts, strict=True) for _ in range(count)], choices, counts)


@dataclass(frozen=True)
class Tokens:
    """Token ids of texts. ids: Ragged int32 [n, …]; types: uint8, aligned with `ids.values`, or None where not needed;
    heads: bool, aligned likewise, true at the first sub-token of each word, or None for whole texts."""

    ids: Ragged
    types: np.ndarray | None = None
    heads: np.ndarray | None = None


def tokenise_texts(
    tokeniser: Any, first: Sequence[str], second: Sequence[str] | None, max_length: int | None, *, types: bool
) -> Tokens:
    """Texts or pairs with the encoder's special tokens, at most `max_length` tokens (the longer text of a pair gives way)."""
    parts, kinds = [], []
    for start in range(0, len(first), CHUNK):
        end = start + CHUNK
        encoded = tokeniser(
            list(first[start:end]),
            None if second is None else list(second[start:end]),
            truncation="longest_first" if max_length is not None else False,
            max_length=max_length,
            return_attention_mask=False,
            return_token_type_ids=types,
            verbose=False,
        )
        parts.append(Ragged.of_rows(encoded["input_ids"], np.int32))
        if types:
            kinds.append(Ragged.of_rows(encoded["token_type_ids"], np.uint8).values)
    if not parts:
        return Tokens(Ragged.of_rows([], np.int32), np.zeros(0, np.uint8) if types else None)
    return Tokens(concatenate(parts), np.concatenate(kinds) if types else None)


def tokenise_words(
    tokeniser: Any, rows: Sequence[Sequence[str]], limit: int | None, *, task: str, row_ids: np.ndarray
) -> Tokens:
    """Sentences given as words. Every word keeps at least one token, and nothing is cut off: a sentence that the encoder
    cannot take whole is an error, because words without a prediction would be scored by nobody."""
    parts, heads = [], []
    for start in range(0, len(rows), CHUNK):
        chunk = [list(words) for words in rows[start : start + CHUNK]]
        encoded, firsts = _encode_words(tokeniser, chunk)
        for position, (words, first) in enumerate(zip(chunk, firsts, strict=True)):
            if first.sum() == len(words):
                continue
            # A word of control or format characters alone vanishes in the tokeniser: it becomes the unknown word.
            kept = set(_word_ids(encoded, position).tolist())
            words[:] = [word if index in kept else tokeniser.unk_token for index, word in enumerate(words)]
        if any(first.sum() != len(words) for words, first in zip(chunk, firsts, strict=True)):
            encoded, firsts = _encode_words(tokeniser, chunk)
        ids = Ragged.of_rows(encoded["input_ids"], np.int32)
        if limit is not None and len(ids) and ids.lengths.max() > limit:
            row = int(ids.lengths.argmax())
            raise DataError(
                f"task {task!r}: row {int(row_ids[start + row])} has {len(chunk[row])} words, {int(ids.lengths[row])} tokens "
                f"of the encoder, which takes {limit}; split the sentence"
            )
        parts.append(ids)
        heads.append(np.concatenate(firsts) if firsts else np.zeros(0, bool))
    if not parts:
        return Tokens(Ragged.of_rows([], np.int32), heads=np.zeros(0, bool))
    return Tokens(concatenate(parts), heads=np.concatenate(heads))


def _encode_words(tokeniser: Any, chunk: list[list[str]]) -> tuple[Any, list[np.ndarray]]:
    encoded = tokeniser(
        chunk,
        is_split_into_words=True,
        truncation=False,
        return_attention_mask=False,
        return_token_type_ids=False,
        verbose=False,
    )
    firsts = []
    for position in range(len(chunk)):
        words = _word_ids(encoded, position)
        firsts.append((words >= 0) & (words != np.concatenate([[-1], words[:-1]])))
    return encoded, firsts


def _word_ids(encoded: Any, position: int) -> np.ndarray:
    """int64 [tokens]: which word each token belongs to, −1 for special tokens."""
    return np.array([-1 if word is None else word for word in encoded.word_ids(position)], dtype=np.int64)


def word_labels(tokens: Tokens, tags: Any) -> Ragged:
    """Tags (Arrow list<int64>, one per word) → a label per token: on the first sub-token of each word, IGNORE elsewhere."""
    assert tokens.heads is not None
    values = np.full(len(tokens.ids.values), IGNORE, dtype=np.int64)
    values[tokens.heads] = tags.flatten().to_numpy(zero_copy_only=False)
    return Ragged(values, tokens.ids.offsets)


class TextInputs(Inputs):
    """Tokenised rows: texts, pairs, choices, or sentences of words to tag."""

    def __init__(self, tokens: Tokens, targets: Targets | None, counts: np.ndarray | None, tags: Any, pad: int) -> None:
        self.tokens, self.targets, self.pad = tokens, targets, pad
        self.counts = counts
        self.first = None if counts is None else np.cumsum(counts) - counts  # a row's first text
        self.labels = None if tags is None else word_labels(tokens, tags)
        self.lengths = tokens.ids.lengths if self.first is None else _sums(tokens.ids.lengths, self.first)

    def collate(self, positions: np.ndarray) -> Batch:
        texts = positions
        batch: Batch = {}
        if self.counts is not None and self.first is not None:
            texts = ranges(self.first[positions], self.counts[positions])
            batch["choices"] = torch.from_numpy(self.counts[positions])
        ids = self.tokens.ids
        lengths = ids.offsets[texts + 1] - ids.offsets[texts]
        longest = int(lengths.max(initial=0))
        batch["input_ids"] = torch.from_numpy(ids.pad(texts, self.pad))
        batch["attention_mask"] = torch.from_numpy(mask(lengths, longest).astype(np.int64))
        if self.tokens.types is not None:
            types = Ragged(self.tokens.types, ids.offsets)
            batch["token_type_ids"] = torch.from_numpy(types.pad(texts, 0))
        if self.tokens.heads is not None:
            heads = Ragged(self.tokens.heads, ids.offsets)
            batch["words"] = torch.from_numpy(heads.pad(texts, 0).astype(bool))
        if self.labels is not None:
            batch["labels"] = torch.from_numpy(self.labels.pad(texts, IGNORE))
        return batch if self.targets is None else self.targets.into(batch, positions)


def _sums(values: np.ndarray, starts: np.ndarray) -> np.ndarray:
    return np.add.reduceat(values, starts) if len(starts) else np.zeros(0, dtype=np.int64)
