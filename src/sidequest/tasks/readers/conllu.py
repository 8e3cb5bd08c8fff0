"""CoNLL-U, the format of Universal Dependencies: ten tab-separated columns, comments, a blank line between sentences."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.compute as pc

from sidequest.errors import DataError
from sidequest.tasks.readers.lines import field_columns, sentence_columns, split_fields, text_lines
from sidequest.tasks.readers.table import Table

FIELDS = ("ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC")


def parse_conllu(text: str, path: Path) -> Table:
    """The ten columns as list<string>, a row per sentence; its line is the line of its first word.

    Multiword ranges (`1-2`) and empty nodes (`1.1`) are skipped: their words, or no words at all, stand in other lines.
    """
    lines = text_lines(text)
    blank = np.asarray(pc.equal(pc.utf8_trim_whitespace(lines), ""))
    comment = np.asarray(pc.starts_with(lines, "#"))  # a word "#" is no comment: its line begins with its ID
    numbers = np.flatnonzero(~blank & ~comment)
    fields, widths = split_fields(lines.take(numbers), "\t")
    if (wrong := widths != len(FIELDS)).any():
        first = int(wrong.argmax())
        message = f"{widths[first]} tab-separated columns where CoNLL-U has {len(FIELDS)}"
        raise DataError(message, file=path, line=int(numbers[first]) + 1)
    ids = pc.list_element(fields, 0)
    if (wrong := ~np.asarray(pc.match_substring_regex(ids, r"^\d+([-.]\d+)?$"), dtype=bool)).any():
        first = int(wrong.argmax())
        message = f"ID must be a number, a range (1-2) or an empty node (1.1), found {ids[first].as_py()!r}"
        raise DataError(message, file=path, line=int(numbers[first]) + 1)
    is_word = np.asarray(pc.utf8_is_decimal(ids), dtype=bool)
    if not is_word.any():
        raise DataError("the file has no words", file=path)
    words = field_columns(fields.filter(is_word), len(FIELDS))
    columns, starts = sentence_columns(words, numbers[is_word] + 1, np.flatnonzero(blank) + 1)
    return Table(dict(zip(FIELDS, columns, strict=True)), str(path), starts)
