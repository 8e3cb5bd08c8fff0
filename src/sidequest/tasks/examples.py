"""The rows of one split as columns: Arrow for text, numpy for images.

Columns have canonical names whatever the user's file called them:

==========  =========================================================================
`text`      string, the first (or only) text
`text_b`    string, the second text of a pair
`choices`   list<string>, the alternatives of a multiple-choice row
`tokens`    list<string>, the words of a sentence to tag
`image`     numpy, float32 or uint8, shape [rows, channels, height, width]
==========  =========================================================================
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

SLICE = 65_536  # rows at a time whose texts are Python strings
INPUT_COLUMNS = ("text", "text_b", "choices", "tokens", "image")

Column = Any  # pa.Array for text, np.ndarray for images: Arrow has no type stubs to say so


@dataclass(frozen=True, repr=False)
class Examples:
    """Rows of a task: input columns, a target per row, and a stable id per row.

    Attributes:
        columns: The inputs by canonical name: Arrow for text, numpy for images.
        target: int64 [n] (class or choice index), uint8 [n, labels] (multi-label: 1 where a row has the label), float64 [n]
            (regression), Arrow list<int64> [n] (tag indices per token), or None for rows to predict.
        ids: int64 [n], the row's number in its source (0-based); an id names the same row in every split and subset.
    """

    columns: Mapping[str, Column]
    target: np.ndarray | pa.Array | None
    ids: np.ndarray

    def __post_init__(self) -> None:
        lengths = {name: len(column) for name, column in self.columns.items()} | {"ids": len(self.ids)}
        if self.target is not None:
            lengths["target"] = len(self.target)
        if len(set(lengths.values())) != 1:
            raise ValueError(f"columns of one split must have one length, found {lengths}")

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return f"Examples: {len(self)} rows of {', '.join(self.columns)}" + (", no target" * (self.target is None))

    def take(self, positions: np.ndarray) -> Examples:
        """The rows at the given positions, in that order."""
        index = np.asarray(positions, dtype=np.int64)
        target = None if self.target is None else _take(self.target, index)
        return Examples({k: _take(v, index) for k, v in self.columns.items()}, target, self.ids[index])

    def with_ids(self, ids: np.ndarray) -> Examples:
        """The rows whose ids are given, in that order; every id must be present."""
        return self.take(self.positions(ids))

    def positions(self, ids: np.ndarray) -> np.ndarray:
        """Where the rows with these ids are; every id must be present."""
        order = np.argsort(self.ids, kind="stable")
        nearest = np.searchsorted(self.ids, ids, sorter=order)
        positions = order[np.minimum(nearest, len(order) - 1)]
        if not np.array_equal(self.ids[positions], ids):
            missing = np.asarray(ids)[self.ids[positions] != ids]
            raise KeyError(f"{len(missing)} row ids are not in this split, the first is {int(missing[0])}")
        return positions

    def fingerprint(self) -> str:
        """A digest of the content: equal for equal rows, whatever file they came from."""
        digest = hashlib.sha256()
        for name in sorted(self.columns):
            digest.update(name.encode())
            _feed(digest, self.columns[name])
        if self.target is not None:
            digest.update(b"target")
            _feed(digest, self.target)
        digest.update(np.ascontiguousarray(self.ids, dtype=np.int64).tobytes())
        return digest.hexdigest()

    def word_counts(self) -> np.ndarray:
        """Words per row over all texts (zero for images): the length that `heu-len` and `check` speak of."""
        total = np.zeros(len(self), dtype=np.int64)
        for name, column in self.columns.items():
            if name in ("text", "text_b"):
                total += np.asarray(pc.list_value_length(pc.utf8_split_whitespace(column)), dtype=np.int64)
            elif name == "tokens":
                total += np.asarray(pc.list_value_length(column), dtype=np.int64)
            elif name == "choices":
                rows = column.to_pylist()
                total += np.array([sum(len(text.split()) for text in row) for row in rows], dtype=np.int64)
        return total


def concatenate(parts: list[Examples]) -> Examples:
    """The rows of several splits one after another; ids stay as they are."""
    first = parts[0]
    columns = {name: _concat([part.columns[name] for part in parts]) for name in first.columns}
    target = None if first.target is None else _concat([part.target for part in parts])
    return Examples(columns, target, np.concatenate([part.ids for part in parts]))


def _take(column: Column, index: np.ndarray) -> Column:
    return column[index] if isinstance(column, np.ndarray) else column.take(pa.array(index))


def _concat(columns: list[Column]) -> Column:
    if isinstance(columns[0], np.ndarray):
        return np.concatenate(columns)
    return pa.concat_arrays(columns)


def _feed(digest: hashlib._Hash, column: Column) -> None:
    if isinstance(column, np.ndarray):
        digest.update(f"{column.dtype}{column.shape}".encode())
        digest.update(np.ascontiguousarray(column).tobytes())
        return
    # Hash values, not buffers: a slice or a chunked copy of equal rows must have an equal digest.
    digest.update(str(column.type).encode())
    values = column
    while pa.types.is_list(values.type) or pa.types.is_large_list(values.type):
        digest.update(np.asarray(pc.list_value_length(values), dtype=np.int64).tobytes())
        values = values.flatten()
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        digest.update(np.asarray(pc.binary_length(values), dtype=np.int64).tobytes())
        for start in range(0, len(values), SLICE):  # a Python string takes several times the room of its text
            digest.update("".join(values.slice(start, SLICE).to_pylist()).encode())
    else:
        digest.update(np.ascontiguousarray(values.to_numpy(zero_copy_only=False)).tobytes())
