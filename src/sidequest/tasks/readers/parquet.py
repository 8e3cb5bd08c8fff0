"""Parquet: one file, or a directory of shards."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from sidequest.errors import DataError, first_line
from sidequest.paths import input_file
from sidequest.tasks.readers.table import Table, plain_column
from sidequest.tasks.readers.text import LARGEST_RATIO

MOST_BYTES = 2**34
MOST_TEXT = 2**31  # bytes: a column holds no more


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
    """Refuse a file whose few bytes promise more than the memory holds: equal values are written once."""
    facts = pq.read_metadata(path)
    if facts.num_rows * max(1, facts.num_columns) * 8 > MOST_BYTES:
        rows = f"{facts.num_rows} rows of {facts.num_columns} columns"
        raise DataError(f"the file promises {rows}, more than {MOST_BYTES} bytes", file=path)
    groups = [facts.row_group(number) for number in range(facts.num_row_groups)]
    most = max(MOST_TEXT, LARGEST_RATIO * path.stat().st_size)
    unpacked = sum(group.total_byte_size for group in groups)
    if unpacked > most or (_longest_text(path, facts) > most and _text(path, facts) > most):
        raise DataError(f"{path.stat().st_size} bytes unpack to more than {most} bytes of text", file=path)


def _text_columns(group: Any) -> list[Any]:
    """The columns of texts of a row group that write equal ones once."""
    columns = [group.column(number) for number in range(group.num_columns)]
    return [column for column in columns if column.physical_type == "BYTE_ARRAY" and column.has_dictionary_page]


def _longest_text(path: Path, facts: Any) -> int:
    """A bound of what all texts come to, from the longest value that each column writes once."""
    total = 0
    for number in range(facts.num_row_groups):
        for column in _text_columns(facts.row_group(number)):
            if column.num_values * column.total_uncompressed_size <= MOST_TEXT:
                total += column.num_values * column.total_uncompressed_size
                continue
            values = next(_coded(path, number, column.path_in_schema, 1), None)
            longest = 0 if values is None else pc.max(pc.binary_length(values.dictionary)).as_py() or 0
            total += column.num_values * longest + column.total_uncompressed_size
    return total


def _text(path: Path, facts: Any) -> int:
    """What all texts come to; the texts that are written once are not written out."""
    total = 0
    for number in range(facts.num_row_groups):
        for column in _text_columns(facts.row_group(number)):
            for values in _coded(path, number, column.path_in_schema, 2**16):
                lengths = pc.binary_length(values.dictionary).cast(pa.int64())
                total += pc.sum(lengths.take(values.indices)).as_py() or 0
    return total


def _coded(path: Path, group: int, column: str, rows: int) -> Iterator[Any]:
    """A column of texts as numbers of the texts, some rows at a time."""
    with pq.ParquetFile(path, read_dictionary=[column]) as file:
        for batch in file.iter_batches(rows, row_groups=[group], columns=[column]):
            values = batch.column(0)
            while pa.types.is_nested(values.type) and not pa.types.is_struct(values.type):
                values = values.flatten()
            if not pa.types.is_dictionary(values.type):  # inside something that no task can read
                return
            yield values
