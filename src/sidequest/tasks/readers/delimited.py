"""csv and tsv.

With quoting, rows go through Python's `csv`, because every row must know its line: `pyarrow.csv` reads faster but reports no
lines, and an unclosed quote swallows what follows it. Without quoting (GLUE's habit) a row is a line and a field is what stands
between two tabs, so splitting is the whole parser. Either reads SST-2's 67,000 rows in about a tenth of a second.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sidequest.errors import DataError
from sidequest.tasks.readers.lines import field_columns, split_fields, text_lines
from sidequest.tasks.readers.table import Table


@dataclass(frozen=True)
class DelimitedRows:
    """What stands between separators, before anybody has said which row is a header.

    fields: list<string> [n]. lines: int64 [n], the line on which each row begins; empty lines are no rows.
    """

    fields: pa.ListArray
    lines: np.ndarray

    @property
    def widths(self) -> np.ndarray:
        return np.asarray(pc.list_value_length(self.fields), dtype=np.int64)

    def __getitem__(self, chosen: slice | np.ndarray) -> DelimitedRows:
        fields = self.fields[chosen] if isinstance(chosen, slice) else self.fields.filter(chosen)
        return DelimitedRows(fields, self.lines[chosen])


def split_rows(
    text: str, path: Path, *, delimiter: str = ",", quoting: bool = True, skip_rows: int = 0
) -> DelimitedRows:
    """The rows of a text. skip_rows: how many lines at the top are not part of the table."""
    start = 0
    for number in range(skip_rows):
        start = text.find("\n", start) + 1
        if not start:
            raise DataError(f"`skip_rows: {skip_rows}` leaves nothing of {number + 1} lines", file=path)
    text = text[start:]
    if quoting:
        return _quoted_rows(text, delimiter, path, skip_rows)
    every = text_lines(text)
    filled = np.flatnonzero(np.asarray(pc.not_equal(every, "")))
    fields, _ = split_fields(every.take(filled), delimiter)
    return DelimitedRows(fields, filled + 1 + skip_rows)


def rows_to_table(
    rows: DelimitedRows,
    path: Path,
    *,
    header: bool | Sequence[str] = True,
    delimiter: str = ",",
    quoting: bool = True,
    skip_bad_rows: bool = False,
) -> Table:
    """A table of strings.

    header: True: the first row names the columns; False: columns are called "0", "1", …; or the names themselves.
    skip_bad_rows: leave out rows with a wrong number of fields, and count them, instead of refusing the file.
    delimiter, quoting: how the rows were split, for messages.
    """
    if not len(rows.fields):
        raise DataError("the file is empty", file=path)
    first: list[str] = rows.fields[0].as_py()
    notes: list[str] = []
    if header is True:
        names = unique_names(first)
        notes += [f"the header names {old!r} twice: here the second is {new!r}" for old, new in _repeats(first, names)]
        rows = rows[1:]
    else:
        names = [str(i) for i in range(len(first))] if header is False else list(header)
    if not len(rows.fields):
        raise DataError("the file has no rows", file=path)
    good = rows.widths == len(names)
    if not good.all():
        if not skip_bad_rows:
            raise _wrong_width(path, rows, len(names), delimiter, quoting)
        notes.append(f"{int((~good).sum())} malformed rows left out")
        rows = rows[good]
        if not len(rows.fields):
            raise DataError(f"no row has {len(names)} fields: `bad_rows: skip` leaves nothing", file=path)
    columns = dict(zip(names, field_columns(rows.fields, len(names)), strict=True))
    return Table(columns, str(path), rows.lines, notes=tuple(notes))


def unique_names(names: Sequence[str]) -> list[str]:
    """Names of columns as pandas makes them unique: an empty third name is `Unnamed: 2`, a second `text` is `text.1`."""
    filled = [name if name.strip() else f"Unnamed: {i}" for i, name in enumerate(names)]
    unique: dict[str, None] = {}
    for name in filled:
        candidate, number = name, 0
        while candidate in unique or (number and candidate in filled):
            number += 1
            candidate = f"{name}.{number}"
        unique[candidate] = None
    return list(unique)


def _repeats(written: Sequence[str], names: Sequence[str]) -> list[tuple[str, str]]:
    return [(old, new) for old, new in zip(written, names, strict=True) if old != new and old.strip()]


def _quoted_rows(text: str, delimiter: str, path: Path, lines_before: int) -> DelimitedRows:
    fields: list[str] = []
    ends: list[int] = [0]
    lines: list[int] = []
    # strict: an unclosed quote is an error; without it, the rest of the file would silently become one field.
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    limit = csv.field_size_limit(max(len(text), 1))  # a text may be longer than the csv module's limit of 128 KB
    start = lines_before + 1
    try:
        for row in reader:
            if row:
                fields.extend(row)
                ends.append(len(fields))
                lines.append(start)
            start = lines_before + reader.line_num + 1
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
    return DelimitedRows(rows, np.asarray(lines, dtype=np.int64))


def _wrong_width(path: Path, rows: DelimitedRows, width: int, delimiter: str, quoting: bool) -> DataError:
    widths = rows.widths
    bad = np.flatnonzero(widths != width)
    first = int(bad[0])
    message = f"{widths[first]} fields where {width} are expected"
    if len(bad) > 1:
        message += f" (and {len(bad) - 1} more such rows)"
    usual = int(np.bincount(widths).argmax())
    if usual != width:
        before = int(rows.lines[np.argmax(widths == usual)]) - 1
        message += f". Most rows have {usual}: if lines stand before the header, say `skip_rows: {before}`"
    elif widths[first] > width:
        mark = "tab" if delimiter == "\t" else repr(delimiter)
        message += f". A {mark} inside a text must be " + (
            "quoted" if quoting else "replaced: without quoting it ends the field"
        )
    return DataError(message + ". To leave such rows out, say `bad_rows: skip`", file=path, line=int(rows.lines[first]))
