"""CoNLL columns: a word per line, fields separated by spaces or tabs, a blank line between sentences."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.compute as pc

from sidequest.errors import DataError
from sidequest.tasks.readers.lines import field_columns, sentence_columns, split_fields, text_lines
from sidequest.tasks.readers.table import Table

DOCUMENT_START = "-DOCSTART-"


def parse_conll(text: str, path: Path) -> Table:
    """Columns "0", "1", … of type list<string>, a row per sentence; its line is the line of its first word.

    `-DOCSTART-` lines are skipped: they mark documents and are not sentences. If the first word's line has a tab, tabs
    separate the columns and a word may contain spaces.
    """
    lines = text_lines(text)
    blank = np.asarray(pc.equal(pc.utf8_trim_whitespace(lines), ""))
    breaks = blank | np.asarray(pc.starts_with(lines, DOCUMENT_START))
    word_lines = np.flatnonzero(~breaks)
    if not len(word_lines):
        raise DataError("the file has no words", file=path)
    tabbed = "\t" in lines[int(word_lines[0])].as_py()
    fields, widths = split_fields(lines.take(word_lines), "\t" if tabbed else None)
    width = int(widths[0])
    if (wrong := widths != width).any():
        first = int(wrong.argmax())
        message = f"{widths[first]} columns where the first word has {width}"
        raise DataError(message, file=path, line=int(word_lines[first]) + 1)
    columns, starts = sentence_columns(field_columns(fields, width), word_lines + 1, np.flatnonzero(breaks) + 1)
    return Table({str(i): column for i, column in enumerate(columns)}, str(path), starts)
