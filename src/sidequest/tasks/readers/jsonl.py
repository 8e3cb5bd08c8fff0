"""JSON lines: one object per line; the keys of all rows together are the columns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from sidequest.errors import DataError
from sidequest.tasks.readers.table import Table, plain_column
from sidequest.tasks.readers.text import read_text


def read_jsonl(path: Path, *, encoding: str = "utf-8") -> Table:
    """A table with the JSON values' own types; a key that a row lacks is null there."""
    rows: list[dict[str, Any]] = []
    lines: list[int] = []
    for number, line in enumerate(read_text(path, encoding).split("\n"), start=1):
        if not line or line.isspace():
            continue
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise DataError(f"not JSON: {error.msg} at character {error.pos + 1}", file=path, line=number) from None
        if not isinstance(row, dict):
            raise DataError(
                f'each line must be one JSON object like {{"text": …}}, found {type(row).__name__}',
                file=path,
                line=number,
            )
        rows.append(row)
        lines.append(number)
    if not rows:
        raise DataError("the file has no rows", file=path)
    names = dict.fromkeys(key for row in rows for key in row)
    columns = {name: json_column([row.get(name) for row in rows]) for name in names}
    return Table(columns, str(path), np.asarray(lines, dtype=np.int64))


def json_column(values: list[Any]) -> pa.Array:
    """An Arrow column; values of mixed types (1 and "one") become their text, as they would in csv."""
    try:
        return plain_column(pa.array(values))
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        texts = [v if v is None or isinstance(v, str) else json.dumps(v, ensure_ascii=False) for v in values]
        return pa.array(texts, type=pa.string())
