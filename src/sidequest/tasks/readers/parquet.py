"""Parquet: one file, or a directory of shards."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from sidequest.errors import DataError, first_line
from sidequest.paths import input_file
from sidequest.tasks.readers.table import Table, plain_column

MOST_BYTES = 2**34


def read_parquet(path: Path) -> Table:
    """A table with the file's own types. Parquet has no lines: messages name rows."""
    if not path.exists():
        raise DataError("no such file", file=path)
    try:
        for part in [path] if path.is_file() else sorted(path.rglob("*.parquet")):
            _check_size(input_file(part, "a parquet file"))
        table = pq.read_table(path)
    except (pa.ArrowException, OSError, ValueError, MemoryError) as error:
        raise DataError(f"not a parquet file: {first_line(error)}", file=path) from None
    if len({*table.column_names}) < len(table.column_names):
        twice = next(name for name in table.column_names if table.column_names.count(name) > 1)
        raise DataError(f"two columns are called {twice!r}", file=path)
    if not table.num_rows:
        raise DataError("the file has no rows", file=path)
    return Table({name: plain_column(table.column(name)) for name in table.column_names}, str(path))


def _check_size(path: Path) -> None:
    """Refuse a file whose few bytes promise more numbers than the memory holds: equal values are written once."""
    facts = pq.read_metadata(path)
    if facts.num_rows * max(1, facts.num_columns) * 8 > MOST_BYTES:
        rows = f"{facts.num_rows} rows of {facts.num_columns} columns"
        raise DataError(f"the file promises {rows}, more than {MOST_BYTES} bytes", file=path)
