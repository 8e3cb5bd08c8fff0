"""csv and tsv.

With quoting, rows go through Python's `csv`, because every row must know its line: `pyarrow.csv` reads faster but reports no
lines, and an unclosed quote swallows what follows it. Without quoting (GLUE's habit) a row is a line and a field is what stands
between two tabs, so splitting is the whole parser. Either reads SST-2's 67,000 rows in about a tenth of a second.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sidequest.errors import DataError
from sidequest.tasks.readers.lines import field_columns, split_fields, text_lines
from sidequest.tasks.readers.table import Table
from sidequest.tasks.readers.text import read_text


def read_delimited(
    path: Path,
    *,
    delimiter: str = ",",
    quoting: bool = True,
    header: bool | Sequence[str] = True,
    encoding: str = "utf-8",
    skip_bad_rows: bool = False,
) -> Table:
    """A table of strings; empty lines are skipped.

    header: True: the first row names the columns; False: columns are called "0", "1", …; or the names themselves.
    skip_bad_rows: leave out rows with a wrong number of fields, and count them, instead of refusing the file.
    """
    if quoting:
        fields, lines = _quoted_rows(read_text(path, encoding), delimiter, path)
    else:
        every = text_lines(path, encoding)
        lines = np.flatnonzero(np.asarray(pc.not_equal(every, ""))) + 1
        fields, _ = split_fields(every.take(lines - 1), delimiter)
    if not len(fields):
        raise DataError("the file is empty", file=path)
    first: list[str] = fields[0].as_py()
    if header is True:
        names = first
        _check_names(names, path, int(lines[0]))
        fields, lines = fields[1:], lines[1:]
    else:
        names = [str(i) for i in range(len(first))] if header is False else list(header)
    if not len(fields):
        raise DataError("the file has no rows", file=path)
    widths = np.asarray(pc.list_value_length(fields), dtype=np.int64)
    bad = np.flatnonzero(widths != len(names))
    if len(bad) and not skip_bad_rows:
        raise _wrong_width(path, lines, widths, bad, len(names), delimiter, quoting)
    if len(bad):
        good = widths == len(names)
        fields, lines = fields.filter(good), lines[good]
    columns = dict(zip(names, field_columns(fields, len(names)), strict=True))
    return Table(columns, str(path), lines, skipped=len(bad))


def _quoted_rows(text: str, delimiter: str, path: Path) -> tuple[pa.ListArray, np.ndarray]:
    """list<string> of fields per row, and the line on which each row begins."""
    fields: list[str] = []
    ends: list[int] = [0]
    lines: list[int] = []
    # strict: an unclosed quote is an error; without it, the rest of the file would silently become one field.
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    limit = csv.field_size_limit(max(len(text), 1))  # a text may be longer than the csv module's limit of 128 KB
    start = 1
    try:
        for row in reader:
            if row:
                fields.extend(row)
                ends.append(len(fields))
                lines.append(start)
            start = reader.line_num + 1
    except csv.Error as error:
        raise DataError(
            f"the row that begins here is not valid csv: {error}. "
            "If quotes are plain characters in this file, say `quoting: none`",
            file=path,
            line=start,
        ) from None
    finally:
        csv.field_size_limit(limit)
    rows = pa.ListArray.from_arrays(pa.array(ends, type=pa.int32()), pa.array(fields, type=pa.string()))
    return rows, np.asarray(lines, dtype=np.int64)


def _check_names(names: list[str], path: Path, line: int) -> None:
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise DataError(
            f"the header names {repeated[0]!r} twice. If the first row is data, say `header: false`",
            file=path,
            line=line,
        )


def _wrong_width(
    path: Path, lines: np.ndarray, widths: np.ndarray, bad: np.ndarray, width: int, delimiter: str, quoting: bool
) -> DataError:
    first = int(bad[0])
    message = f"{widths[first]} fields where {width} are expected"
    if len(bad) > 1:
        message += f" (and {len(bad) - 1} more such rows)"
    if widths[first] > width:
        mark = "tab" if delimiter == "\t" else repr(delimiter)
        message += f". A {mark} inside a text must be " + (
            "quoted" if quoting else "replaced: without quoting it ends the field"
        )
    return DataError(message + ". To leave such rows out, say `bad_rows: skip`", file=path, line=int(lines[first]))
