"""Formats in which a row or a word is a line: split into fields by Arrow, without a Python object per field."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def text_lines(text: str) -> pa.StringArray:
    """The lines of a text without their ends, `\\n` or `\\r\\n`.

    Not `str.splitlines`, which would also break at characters such as U+2028 inside a text.
    """
    lines = pa.array(text.split("\n"), type=pa.string())
    return pc.if_else(pc.ends_with(lines, "\r"), pc.utf8_slice_codeunits(lines, 0, -1), lines)


def split_fields(lines: pa.StringArray, delimiter: str | None) -> tuple[pa.ListArray, np.ndarray]:
    """list<string> of fields per line, and how many there are; a delimiter of None means runs of white space."""
    if delimiter is None:
        fields = pc.ascii_split_whitespace(pc.ascii_trim_whitespace(lines))
    else:
        fields = pc.split_pattern(lines, delimiter)
    return fields, np.asarray(pc.list_value_length(fields), dtype=np.int64)


def field_columns(fields: pa.ListArray, width: int) -> list[pa.StringArray]:
    """Columns from rows that all have `width` fields."""
    values = fields.flatten()
    return [values.take(pa.array(np.arange(i, len(values), width))) for i in range(width)]


def sentence_columns(
    words: list[pa.StringArray], lines: np.ndarray, breaks: np.ndarray
) -> tuple[list[pa.ListArray], np.ndarray]:
    """Group words into sentences.

    words: columns over the words; lines: int64 [words], the line of each; breaks: int64, sorted, the lines between sentences.
    Returns list<string> columns with a row per sentence, and the line of each sentence's first word.
    """
    sentence = np.searchsorted(breaks, lines)  # two words are in one sentence if no break lies between them
    starts = np.flatnonzero(np.diff(sentence, prepend=-1))
    offsets = pa.array(np.append(starts, len(lines)).astype(np.int32))
    return [pa.ListArray.from_arrays(offsets, column) for column in words], lines[starts]
