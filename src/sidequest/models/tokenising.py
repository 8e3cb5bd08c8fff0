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
from sidequest.models.texts import Texts as Texts
from sidequest.models.texts import has_pairs as has_pairs
from sidequest.tasks.examples import Examples

CHUNK = 2_000  # texts per call of the tokeniser: large enough to be fast, small enough that Python lists stay small


@dataclass(frozen=True)
class Tokens:
    """Token ids of texts. ids: Ragged int32 [n, …]; types: uint8, aligned with `ids.values`, or None where not needed;
    words: int32, aligned likewise, the number of the word that a token belongs to (−1: a special token), or None for texts."""

    ids: Ragged
    types: np.ndarray | None = None
    words: np.ndarray | None = None

    def heads(self) -> np.ndarray:
        """bool, aligned with `ids.values`: the first sub-token of each word."""
        assert self.words is not None
        new = np.diff(self.words, prepend=-1) != 0
        new[self.ids.offsets[:-1][self.ids.lengths > 0]] = True  # two rows may touch without a special token between
        return new & (self.words >= 0)


def tokenise_texts(
    tokeniser: Any, first: Sequence[str], second: Sequence[str] | None, max_length: int | None, *, types: bool
) -> Tokens:
    """Texts or pairs with the encoder's special tokens, at most `max_length` tokens (the longer text of a pair gives way)."""
    parts, kinds = [], []
    filler = next(i for i in (tokeniser.unk_token_id, tokeniser.pad_token_id, 0) if i is not None)
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
        # A tokeniser without special tokens makes nothing of an empty text; every text keeps at least one token.
        parts.append(Ragged.of_rows([row or [filler] for row in encoded["input_ids"]], np.int32))
        if types:
            kinds.append(Ragged.of_rows([row or [0] for row in encoded["token_type_ids"]], np.uint8).values)
    if not parts:
        return Tokens(Ragged.of_rows([], np.int32), np.zeros(0, np.uint8) if types else None)
    return Tokens(concatenate(parts), np.concatenate(kinds) if types else None)


def tokenise_words(tokeniser: Any, rows: Sequence[Sequence[str]], limit: int | None) -> Tokens:
    """Sentences given as words. Every word keeps at least one token, and nothing is cut off: a sentence that the encoder
    cannot take whole is an error, because words without a prediction would be scored by nobody."""
    parts, members = [], []
    for start in range(0, len(rows), CHUNK):
        chunk = [list(row) for row in rows[start : start + CHUNK]]
        encoded, words = _encode_words(tokeniser, chunk)
        lost = [(row, set(range(len(row))) - set(found.tolist())) for row, found in zip(chunk, words, strict=True)]
        if any(missing for _, missing in lost):
            # A word of control or format characters alone vanishes in the tokeniser: it becomes the unknown word.
            for row, missing in lost:
                for index in missing:
                    row[index] = tokeniser.unk_token
            encoded, words = _encode_words(tokeniser, chunk)
        ids = Ragged.of_rows(encoded["input_ids"], np.int32)
        if limit is not None and ids.lengths.max() > limit:
            longest = int(ids.lengths.argmax())
            words_in = chunk[longest]
            raise DataError(
                f"a sentence to tag has {len(words_in)} words, {int(ids.lengths[longest])} tokens of the encoder, which takes "
                f"{limit}; split it: {' '.join(words_in[:8])!r} …"
            )
        parts.append(ids)
        members.extend(words)
    if not parts:
        return Tokens(Ragged.of_rows([], np.int32), words=np.zeros(0, np.int32))
    return Tokens(concatenate(parts), words=np.concatenate(members))


def _encode_words(tokeniser: Any, chunk: list[list[str]]) -> tuple[Any, list[np.ndarray]]:
    encoded = tokeniser(
        chunk,
        is_split_into_words=True,
        truncation=False,
        return_attention_mask=False,
        return_token_type_ids=False,
        verbose=False,
    )
    words = [[-1 if word is None else word for word in encoded.word_ids(row)] for row in range(len(chunk))]
    return encoded, [np.array(row, dtype=np.int32) for row in words]


def flat_tags(examples: Examples) -> np.ndarray:
    """The tags of all words, sentence after sentence, int64 [words]."""
    target: Any = examples.target
    return target.flatten().to_numpy(zero_copy_only=False)


def word_labels(tokens: Tokens, tags: np.ndarray) -> Ragged:
    """Tags (one per word) → a label per token: on the first sub-token of each word, IGNORE elsewhere."""
    values = np.full(len(tokens.ids.values), IGNORE, dtype=np.int64)
    values[tokens.heads()] = tags
    return Ragged(values, tokens.ids.offsets)


class TextInputs(Inputs):
    """Tokenised rows: texts, pairs, choices, or sentences of words to tag.

    Batches: `input_ids`, `attention_mask` and, where the model takes them, `token_type_ids`, all int64 [n, longest].
    """

    def __init__(
        self, tokens: Tokens, targets: Targets | None, counts: np.ndarray | None, tags: np.ndarray | None, pad: int
    ) -> None:
        self.tokens, self.targets, self.pad = tokens, targets, pad
        self.counts = counts
        self.first = None if counts is None else np.cumsum(counts) - counts  # a row's first text
        self.heads = None if tokens.words is None else Ragged(tokens.heads(), tokens.ids.offsets)
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
        if self.heads is not None:
            batch["words"] = torch.from_numpy(self.heads.pad(texts, 0).astype(bool))
        if self.labels is not None:
            batch["labels"] = torch.from_numpy(self.labels.pad(texts, IGNORE))
        return batch if self.targets is None else self.targets.into(batch, positions)


class SeparateTexts(Inputs):
    """Pairs whose two texts are encoded each by itself: of a pair, or of a premise with each of its choices.

    Batches: `input_ids` and `attention_mask`, int64 [texts, longest]: the rows' first texts, then their second ones; `first` and
    `second`, int64 [units]: the texts that make a unit (a pair, or a premise and a choice); `text_rows`, int64 [texts]: the row
    of each text.
    """

    def __init__(self, first: Tokens, second: Tokens, targets: Targets, counts: np.ndarray | None, pad: int) -> None:
        """first: of each row. second: of each unit. counts: int64 [rows], the units of each row; None: one each."""
        self.texts, self.targets, self.pad = concatenate([first.ids, second.ids]), targets, pad
        self.counts, self.choices = np.ones(len(first.ids), np.int64) if counts is None else counts, counts is not None
        self.start = np.cumsum(self.counts) - self.counts  # a row's first unit
        self.lengths = first.ids.lengths + _sums(second.ids.lengths, self.start)

    def collate(self, positions: np.ndarray) -> Batch:
        counts, rows = self.counts[positions], np.arange(len(positions))
        second = len(self.counts) + ranges(self.start[positions], counts)
        texts, owner = np.concatenate([positions, second]), np.repeat(rows, counts)
        lengths = self.texts.offsets[texts + 1] - self.texts.offsets[texts]
        batch: Batch = {
            "input_ids": torch.from_numpy(self.texts.pad(texts, self.pad)),
            "attention_mask": torch.from_numpy(mask(lengths, int(lengths.max(initial=0))).astype(np.int64)),
            "first": torch.from_numpy(owner),
            "second": torch.from_numpy(len(positions) + np.arange(len(second))),
            "text_rows": torch.from_numpy(np.concatenate([rows, owner])),
        }
        if self.choices:
            batch["choices"] = torch.from_numpy(counts)
        return self.targets.into(batch, positions)


def _sums(values: np.ndarray, starts: np.ndarray) -> np.ndarray:
    return np.add.reduceat(values, starts) if len(starts) else np.zeros(0, dtype=np.int64)
