"""Parquet: one file, or a directory of shards."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from sidequest.errors import DataError
from sidequest.tasks.readers.table import Table, plain_column


def read_parquet(path: Path) -> Table:
    """A table with the file's own types. Parquet has no lines: messages name rows."""
    if not path.exists():
        raise DataError("no such file", file=path)
    try:
        table = pq.read_table(path)
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"not a parquet file: {error}", file=path) from None
    if not table.num_rows:
        raise DataError("the file has no rows", file=path)
    return Table({name: plain_column(table.column(name)) for name in table.column_names}, str(path))
