"""fastText's lines: one or more `__label__name` in front of a text."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from sidequest.errors import DataError
from sidequest.tasks.readers.table import Table

MARK = "__label__"


def parse_fasttext(text: str, path: Path) -> Table:
    """Columns `label` and `text`; where a row has several labels, or none, `label` holds lists."""
    labels: list[list[str]] = []
    texts: list[str] = []
    lines: list[int] = []
    for number, line in enumerate(text.split("\n"), start=1):
        words = line.split()
        if not words:
            continue
        count = next((i for i, word in enumerate(words) if not word.startswith(MARK)), len(words))
        if MARK in words[:count]:
            raise DataError(f"{MARK} without a name behind it", file=path, line=number)
        labels.append([word.removeprefix(MARK) for word in words[:count]])
        texts.append(line.split(None, count)[count].rstrip() if count < len(words) else "")
        lines.append(number)
    if not any(labels):
        raise DataError(f"no line begins with {MARK}" if labels else "the file has no rows", file=path)
    single = all(len(row) == 1 for row in labels)
    column = pa.array([row[0] for row in labels]) if single else pa.array(labels, type=pa.list_(pa.string()))
    return Table({"label": column, "text": pa.array(texts)}, str(path), np.asarray(lines, dtype=np.int64))
