"""JSON: one object per line, or one list of objects; the keys of all rows together are the columns."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from sidequest.errors import DataError
from sidequest.tasks.readers.table import Table, plain_column

SPACE = re.compile(r"[ \t\n\r]*")


def parse_json(text: str, path: Path) -> Table:
    """A table with the JSON values' own types; a key that a row lacks is null there."""
    rows: list[dict[str, Any]] = []
    lines: list[int] = []
    # An array on the first line is a list over the whole file, unless the file is lines of arrays, which are refused as such.
    whole = text.lstrip().startswith("[")
    for number, row in _list_items(text, path) if whole else _line_items(text, path):
        if not isinstance(row, dict):
            what = "each item of the list" if whole else "each line"
            raise DataError(
                f'{what} must be one JSON object like {{"text": …}}, found {type(row).__name__}',
                file=path,
                line=number,
            )
        rows.append(row)
        lines.append(number)
    if not rows:
        raise DataError("the file has no rows", file=path)
    names = dict.fromkeys(key for row in rows for key in row)
    columns = {}
    for name in names:
        values = [row.get(name) for row in rows]
        try:
            columns[name] = json_column(values)
        except UnicodeEncodeError:  # JSON can write \\ud800 alone, which is no character
            row = next(number for number, value in enumerate(values) if _half_character(value))
            message = f"column {name!r} holds half of a character: a surrogate without its other half"
            raise DataError(message, file=path, line=lines[row]) from None
    return Table(columns, str(path), np.asarray(lines, dtype=np.int64))


def _half_character(value: Any) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False


def _line_items(text: str, path: Path) -> Iterator[tuple[int, Any]]:
    for number, line in enumerate(text.split("\n"), start=1):
        if line and not line.isspace():
            try:
                yield number, json.loads(line)
            except json.JSONDecodeError as error:
                message = f"not JSON: {error.msg} at character {error.pos + 1}"
                if number == 1 and line.strip() == "{":
                    message += ". An object per line, or one list of objects, is needed"
                raise DataError(message, file=path, line=number) from None
            except RecursionError:
                raise DataError("not read: nested too deeply", file=path, line=number) from None
            except ValueError as error:  # a number of thousands of digits
                raise DataError(f"not read: {error}", file=path, line=number) from None


def _list_items(text: str, path: Path) -> Iterator[tuple[int, Any]]:
    """The items of a list and the line on which each begins: `json.loads` would not tell the lines."""
    decoder = json.JSONDecoder()
    position, line = text.index("[") + 1, 1
    counted = 0  # up to where lines have been counted

    def skip_space(start: int) -> int:
        space = SPACE.match(text, start)
        assert space is not None, "no space is space too"
        return space.end()

    def line_at(place: int) -> int:
        nonlocal line, counted
        line, counted = line + text.count("\n", counted, place), place
        return line

    position = skip_space(position)
    while text[position : position + 1] != "]":
        begins = line_at(position)
        try:
            value, position = decoder.raw_decode(text, position)
        except json.JSONDecodeError as error:
            raise DataError(f"not JSON: {error.msg}", file=path, line=error.lineno) from None
        except RecursionError:
            raise DataError("not read: nested too deeply", file=path, line=begins) from None
        except ValueError as error:  # a number of thousands of digits
            raise DataError(f"not read: {error}", file=path, line=begins) from None
        yield begins, value
        position = skip_space(position)
        if text[position : position + 1] == ",":
            position = skip_space(position + 1)
        elif text[position : position + 1] != "]":
            raise DataError("not JSON: a list goes on with ',' or ends with ']'", file=path, line=line_at(position))
    if (end := skip_space(position + 1)) < len(text):
        message = "the list has ended, but the file goes on; one list of objects, or an object per line, is needed"
        raise DataError(message, file=path, line=line_at(end))


def json_column(values: list[Any]) -> pa.Array:
    """An Arrow column; values of mixed types (1 and "one"), and numbers beyond 64 bits, become their text, as in csv."""
    try:
        return plain_column(pa.array(values))
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
        texts = [v if v is None or isinstance(v, str) else json.dumps(v, ensure_ascii=False) for v in values]
        return pa.array(texts, type=pa.string())
