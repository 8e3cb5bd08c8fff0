"""JSON: one object per line, one list of objects, or one object that holds such a list; the keys of all rows together are the
columns."""

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

# What a list of rows is called in a file of one line, which could also be the only row of a file of rows.
ROWS_NAMES = ("data", "rows", "examples", "items", "records", "results", "instances", "entries", "documents")
SPACE = re.compile(r"[ \t\n\r]*")


def parse_json(text: str, path: Path) -> Table:
    """A table with the JSON values' own types; a key that a row lacks is null there."""
    rows: list[dict[str, Any]] = []
    lines: list[int] = []
    # An array on the first line is a list over the whole file, unless the file is lines of arrays, which are refused as such.
    begins = text.find("[") if text.lstrip().startswith("[") else _list_inside(text, path)
    whole = begins is not None
    for number, row in _line_items(text, path) if begins is None else _list_items(text, path, begins):
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


def _list_inside(text: str, path: Path) -> int | None:
    """Where the only list of objects begins inside the one object that the file is, as in `{"version": 1, "data": [{…}, {…}]}`.
    None if every line is an object."""
    first, *rest = text.strip().split("\n", 1)
    if rest and _is_json(first):
        return None
    try:
        members = dict(_members(text))
    except (ValueError, RecursionError):  # the reader of lines says where
        return None
    lists = [name for name, (value, _) in members.items() if _is_list_of_objects(value)]
    if not rest and not {*lists} & {*ROWS_NAMES}:
        return None
    if len(lists) == 1:
        return members[lists[0]][1]
    if len(lists) > 1:
        named = ", ".join(map(repr, lists))
        raise DataError(
            f"one object with several lists of objects: {named}; put each into a file of its own", file=path
        )
    named = ", ".join(map(repr, members))
    raise DataError(f"one object over the whole file, and none of {named} is a list of objects", file=path)


def _members(text: str) -> Iterator[tuple[str, tuple[Any, int]]]:
    """The keys of the object that a text is, each with its value and where that begins. ValueError if it is none."""
    decoder = json.JSONDecoder()

    def after(mark: str, start: int) -> int:
        space = SPACE.match(text, start)
        assert space is not None, "no space is space too"
        if text[space.end() : space.end() + 1] != mark:
            raise ValueError(mark)
        found = SPACE.match(text, space.end() + 1)
        assert found is not None, "no space is space too"
        return found.end()

    position, mark = 0, "{"
    while True:
        key, position = decoder.raw_decode(text, after(mark, position))
        start = after(":", position)
        value, position = decoder.raw_decode(text, start)
        yield key, (value, start)
        mark = ","
        try:
            after(mark, position)
        except ValueError:
            after("}", position)
            return


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _is_list_of_objects(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, dict) for item in value)


def _list_items(text: str, path: Path, begins: int) -> Iterator[tuple[int, Any]]:
    """The items of a list and the line of each: `json.loads` would not tell the lines. begins: where its bracket is."""
    decoder = json.JSONDecoder()
    inside = text.lstrip().startswith("{")  # what follows the list has been read already
    position, line = begins + 1, 1
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
    if not inside and (end := skip_space(position + 1)) < len(text):
        message = "the list has ended, but the file goes on; one list of objects, or an object per line, is needed"
        raise DataError(message, file=path, line=line_at(end))


def json_column(values: list[Any]) -> pa.Array:
    """An Arrow column; values of mixed types (1 and "one"), and numbers beyond 64 bits, become their text, as in csv."""
    try:
        return plain_column(pa.array(values))
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
        texts = [v if v is None or isinstance(v, str) else json.dumps(v, ensure_ascii=False) for v in values]
        return pa.array(texts, type=pa.string())
