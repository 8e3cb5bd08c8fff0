"""How a file is written: encoding, format, separator, quoting, lines before the header, and whether there is a header.

The file is read once: its bytes are decoded, a sample of its rows decides, and the table is made of the same text.
"""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from sidequest.errors import DataError
from sidequest.tasks.guessing.names import COMMON_NAMES
from sidequest.tasks.readers import ReadSettings, Table, guess_format, read_file
from sidequest.tasks.readers.dispatch import DELIMITERS, parse_text
from sidequest.tasks.readers.fasttext import MARK
from sidequest.tasks.readers.text import decode, likely_encoding, read_bytes

SAMPLE = 200_000  # characters that decide how a table is written
REGULAR = 0.9  # the share of a table's rows that have one width
FEW_BAD_ROWS = 0.02  # malformed rows are left out if there are no more than this share
LONG_NAME = 6  # words; a longer first cell is a text, not the name of a column


@dataclass
class FileGuess:
    """Reading settings that differ from the defaults, as fields of a suite file; a remark on some; and the table."""

    fields: dict[str, Any]
    table: Table
    remarks: dict[str, str] = field(default_factory=dict)


def guess_file(path: Path) -> FileGuess:
    """How to read a file whose settings nobody has given, and its table."""
    format = guess_format(path)
    if format in ("parquet", "saved"):
        return FileGuess({}, read_file(path))
    data = read_bytes(path)
    fields: dict[str, Any] = {}
    remarks: dict[str, str] = {}
    if (encoding := likely_encoding(data)) != "utf-8":
        fields["encoding"] = encoding
        remarks["encoding"] = "the bytes are not UTF-8"
    text = decode(data, encoding, path)
    if not text.strip():
        raise DataError("the file is empty", file=path)
    if format is None:
        format = fields["format"] = _format_of(text, path)
        remarks["format"] = "by its content; the name does not tell"
    if format in DELIMITERS:
        _guess_table(text, format, fields, remarks)
    return FileGuess(fields, parse_text(text, path, format, ReadSettings(**fields)), remarks)


def _format_of(text: str, path: Path) -> str:
    """The format of a file whose name does not tell it."""
    lines = text[:SAMPLE].split("\n")
    filled = [line.rstrip("\r") for line in lines if line.strip()]
    if filled[0].lstrip()[0] in "{[":
        return "jsonl"
    if sum(line.startswith(MARK) for line in filled) >= REGULAR * len(filled):
        return "fasttext"
    if all(len(line.split("\t")) == 10 for line in filled if not line.startswith("#")):
        return "conllu"
    words = [len(line.split()) for line in filled if not line.startswith("-DOCSTART-")]
    if len(lines) - len(filled) > len(lines) / 100 and len(set(words)) == 1 and words[0] > 1:
        return "conll"
    for mark in "\t,;|":
        rows = _sample_rows(text, mark, quoting=True)
        if _usual_width(rows)[0] > 1:
            return "tsv" if mark == "\t" else "csv"
    raise DataError("can't guess the format; name it with `format:`", file=path)


def _guess_table(text: str, format: str, fields: dict[str, Any], remarks: dict[str, str]) -> None:
    """Separator, quoting, lines before the header, header and malformed rows of a csv or tsv file."""
    default = DELIMITERS[format]
    marks = [default, *(mark for mark in ",;\t|" if mark != default)]
    samples = {mark: _sample_rows(text, mark, quoting=True) for mark in marks}
    regular = {mark: _usual_width(rows) for mark, rows in samples.items()}

    def likeliness(mark: str) -> tuple[bool, bool, bool]:
        """The format's own separator, unless rows that it splits have no common width and those of another have; decimal commas
        give rows a common width too, but not the header."""
        width, share = regular[mark]
        is_regular = width > 1 and share >= REGULAR
        return is_regular, is_regular and len(samples[mark][0][1]) == width, mark == default

    delimiter = max(marks, key=likeliness)
    if delimiter != default:
        fields["delimiter"] = delimiter
        remarks["delimiter"] = f"splits the rows into {regular[delimiter][0]} columns"
    rows = samples[delimiter]
    if _quotes_are_characters(text, delimiter):
        plain = _sample_rows(text, delimiter, quoting=False)
        if _usual_width(plain)[1] * len(plain) >= _usual_width(rows)[1] * len(rows):
            rows = plain
            fields["quoting"] = "none"
            remarks["quoting"] = "quotes stand inside texts as plain characters"
    width, _ = _usual_width(rows)
    widths = [len(row) for _, row in rows]
    start = widths.index(width)
    before = rows[start - 1][1] if start else []
    if start == 1 and len(before) == width - 1 and not any(map(_is_number, before)) and len(set(before)) == len(before):
        # R writes no name for the column of row numbers.
        fields |= {"skip_rows": rows[1][0] - 1, "header": ["row", *before]}
        remarks["header"] = "the header has one name less than the rows have fields: the first column got the name row"
    elif start:
        fields["skip_rows"] = rows[start][0] - 1
        remarks["skip_rows"] = f"these lines stand before the table of {width} columns"
    if "header" not in fields and _is_data([row for _, row in rows[start:] if len(row) == width]):
        fields["header"] = False
        remarks["header"] = "the first row looks like data; columns are numbered from 0"
    bad = sum(found != width for found in widths[start:])
    if 0 < bad <= max(1, FEW_BAD_ROWS * len(rows)):
        fields["bad_rows"] = "skip"
        remarks["bad_rows"] = f"at least {bad} rows have another number of fields than {width}"


def _sample_rows(text: str, delimiter: str, *, quoting: bool) -> list[tuple[int, list[str]]]:
    """(line, fields) of the rows at the beginning of a text; a row that the sample's end cuts off is left out."""
    sample = text[:SAMPLE]
    lines = io.StringIO(sample, newline="")
    reader = csv.reader(lines, delimiter=delimiter, quoting=csv.QUOTE_MINIMAL if quoting else csv.QUOTE_NONE)
    limit = csv.field_size_limit(SAMPLE + 1)
    rows: list[tuple[int, list[str]]] = []
    line = 1
    try:
        for row in reader:
            if row:
                rows.append((line, row))
            line = reader.line_num + 1
    except csv.Error:
        pass  # what came before is a sample too; the reader names the fault
    finally:
        csv.field_size_limit(limit)
    return rows[:-1] if len(text) > SAMPLE and len(rows) > 1 else rows


def _usual_width(rows: list[tuple[int, list[str]]]) -> tuple[int, float]:
    """The number of fields that most rows have, and the share of rows that have it."""
    counts = np.bincount([len(row) for _, row in rows] or [0])
    return int(counts.argmax()), float(counts.max() / max(1, counts.sum()))


def _quotes_are_characters(text: str, delimiter: str) -> bool:
    """Whether quotes stand where a quoting file would not have them: not around a whole field, and not doubled inside one."""
    if '"' not in text:
        return False
    mark = re.escape(delimiter)
    outside = re.sub(rf'(?:^|(?<={mark}))"(?:[^"]|"")*"(?=\r?$|{mark})', "", text, flags=re.MULTILINE)
    return '"' in outside


def _is_data(rows: list[list[str]]) -> bool:
    """Whether the first row is one like the others: it has a number, a long text, or values that their columns have again."""
    cells, others = [cell.strip() for cell in rows[0]], rows[1:]
    if len(cells) == 1 or not any(cells) or any(_is_number(cell) or len(cell.split()) >= LONG_NAME for cell in cells):
        return True
    if any(cell.lower() in COMMON_NAMES for cell in cells):
        return False
    return any(cell and sum(row[i].strip() == cell for row in others) > 1 for i, cell in enumerate(cells))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
