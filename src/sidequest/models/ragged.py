"""Rows of different lengths in one flat array: no Python lists of lists, and padding without a loop over rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Ragged:
    """Row i is `values[offsets[i]:offsets[i + 1]]`. values [total, ...], offsets int64 [n + 1]."""

    values: np.ndarray
    offsets: np.ndarray

    @classmethod
    def of_lengths(cls, values: np.ndarray, lengths: Iterable[int] | np.ndarray) -> Ragged:
        counts = np.asarray(lengths if isinstance(lengths, np.ndarray) else list(lengths), dtype=np.int64)
        return cls(values, np.concatenate([[0], np.cumsum(counts)]).astype(np.int64))

    @classmethod
    def of_rows(cls, rows: Sequence[Sequence[int]], dtype: type[np.generic]) -> Ragged:
        values = np.fromiter((value for row in rows for value in row), dtype=dtype)
        return cls.of_lengths(values, [len(row) for row in rows])

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> np.ndarray:
        return np.diff(self.offsets)

    def index(self, positions: np.ndarray) -> np.ndarray:
        """Where the values of these rows are, row after row: int64 [total length of the rows]."""
        return ranges(self.offsets[positions], self.offsets[positions + 1] - self.offsets[positions])

    def pad(self, positions: np.ndarray, fill: int, longest: int | None = None) -> np.ndarray:
        """The rows side by side, int64 [len(positions), longest], `fill` after each row's end."""
        lengths = self.offsets[positions + 1] - self.offsets[positions]
        width = int(lengths.max(initial=0)) if longest is None else longest
        out = np.full((len(positions), width), fill, dtype=np.int64)
        out[mask(lengths, width)] = self.values[self.index(positions)]
        return out


def ranges(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """`concatenate([arange(s, s + l) for s, l in zip(starts, lengths)])` without the loop."""
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    return np.repeat(starts - (ends - lengths), lengths) + np.arange(total, dtype=np.int64)


def mask(lengths: np.ndarray, longest: int) -> np.ndarray:
    """bool [n, longest]: true inside each row."""
    return np.arange(longest) < lengths[:, None]


def concatenate(parts: Sequence[Ragged]) -> Ragged:
    """The rows of several arrays one after another."""
    values = np.concatenate([part.values for part in parts])
    return Ragged.of_lengths(values, np.concatenate([part.lengths for part in parts]))


def token_batches(lengths: np.ndarray, tokens: int) -> list[np.ndarray]:
    """All rows once, shortest first, as many in a batch as fit into `tokens` when padded to the longest of them."""
    order = np.argsort(lengths, kind="stable")
    batches, start = [], 0
    while start < len(order):
        # Rows come in order of length: the batch grows while (rows so far) · (this row's length) fits.
        ahead = lengths[order[start : start + tokens]]
        fits = np.arange(1, len(ahead) + 1) * np.maximum(ahead, 1) <= tokens
        size = max(1, int(fits.sum()))
        batches.append(order[start : start + size])
        start += size
    return batches
