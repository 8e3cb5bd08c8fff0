"""A file as columns, before anybody has said what the columns mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from sidequest.errors import DataError, nearest
from sidequest.tasks.examples import Column


@dataclass(frozen=True)
class Table:
    """Columns of one length, and where each row came from.

    source: the file, or the name of the dataset, for messages.
    lines: int64 [n], the 1-based line on which each row begins; None where a format has no lines.
    label_names: for columns whose classes the source itself names (Hugging Face `ClassLabel`), the names in its order.
    notes: what a user should know about the reading: rows left out because the user said so, columns renamed.
    """

    columns: Mapping[str, Column]
    source: str
    lines: np.ndarray | None = field(default=None, repr=False)
    label_names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()))) if self.columns else 0

    def name_of(self, column: str | int) -> str:
        """The name of a column given by name or by 0-based position (negative positions count from the end)."""
        names = list(self.columns)
        if isinstance(column, int):
            if not -len(names) <= column < len(names):
                raise DataError(
                    f"there is no column {column}; columns are numbered 0 to {len(names) - 1}", file=self.source
                )
            return names[column]
        if column not in self.columns:
            raise DataError(f"there is no column {column!r}. {nearest(column, names)}", file=self.source)
        return column

    def column(self, column: str | int) -> Column:
        return self.columns[self.name_of(column)]

    def take(self, positions: np.ndarray) -> Table:
        """The rows at the given positions, in that order."""
        index = pa.array(positions)
        columns = {k: v[positions] if isinstance(v, np.ndarray) else v.take(index) for k, v in self.columns.items()}
        return replace(self, columns=columns, lines=None if self.lines is None else self.lines[positions])

    def line(self, row: int) -> int | None:
        return None if self.lines is None else int(self.lines[row])

    def fault(self, row: int, message: str) -> DataError:
        """An error about one row: names its line, or its number where there are no lines."""
        if self.lines is None:
            return DataError(f"row {row}: {message}", file=self.source)
        return DataError(message, file=self.source, line=self.line(row))


def plain_column(values: pa.ChunkedArray | pa.Array) -> pa.Array:
    """One contiguous array with the plain string type, whatever chunks, views or dictionaries a file used."""
    array = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    if isinstance(array, pa.ChunkedArray):  # combine_chunks leaves several chunks only beyond 2 GB of text
        raise DataError("a column holds more than 2 GB of text; use a smaller file or a `limit`ed copy")
    kind = array.type
    if pa.types.is_dictionary(kind):
        array = array.dictionary_decode()
        kind = array.type
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return array.cast(pa.string())
    if pa.types.is_large_list(kind) or pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind):
        inner = kind.value_type
        if pa.types.is_dictionary(inner) or pa.types.is_large_string(inner) or pa.types.is_string_view(inner):
            inner = pa.string()
        return array.cast(pa.list_(inner))
    return array
