"""Several labels per row: from a column of lists, a text with separators, or 0/1 columns to one 0/1 matrix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sidequest.errors import DataError
from sidequest.tasks.columns import as_strings, relisted
from sidequest.tasks.examples import Column
from sidequest.tasks.readers import Table
from sidequest.tasks.spec import ColumnName
from sidequest.tasks.targets import Labels, class_codes, unknown_labels, whole_numbers
from sidequest.tasks.written_lists import written_list

ZERO_ONE = {"0": False, "1": True, "false": False, "true": True}


def label_lists(table: Table, column: ColumnName, separator: str | None, allow_empty: bool) -> pa.ListArray:
    """list<string> [n]: the labels of each row as written. separator: what stands between the labels where they are one text;
    texts such as "['a', 'b']" need none."""
    name = table.name_of(column)
    values: Column = table.columns[name]
    if isinstance(values, np.ndarray) or not (pa.types.is_list(values.type) or pa.types.is_string(values.type)):
        kind = f"an array of shape {values.shape}" if isinstance(values, np.ndarray) else f"the type {values.type}"
        raise DataError(f"column {name!r} should hold lists of labels, found {kind}", file=table.source)
    _refuse(table, name, np.asarray(pc.is_null(values)), "has no labels here; `unlabelled: drop` leaves such rows out")
    if pa.types.is_string(values.type):
        values = _split_texts(table, name, values, separator)
    elif separator is not None:
        raise DataError(
            f"column {name!r} already holds lists; `label_separator:` is for texts such as 'a;b'", file=table.source
        )
    lengths = np.asarray(pc.list_value_length(values), dtype=np.int64)
    flat, owners = values.flatten(), np.repeat(np.arange(len(lengths)), lengths)
    _refuse(table, name, np.asarray(pc.is_null(flat)), "has a list with a missing label", owners)
    if not allow_empty:
        what = "has an empty list; say `allow_empty: true` if a row may have no label"
        _refuse(table, name, lengths == 0, what)
    texts = as_strings(table, name, whole_numbers(flat))
    _refuse(table, name, np.asarray(pc.equal(texts, "")), "has a list with an empty label", owners)
    return relisted(lengths, texts)


def indicator_lists(table: Table, columns: Mapping[str, str]) -> pa.ListArray:
    """list<string> [n]: the labels whose columns hold a 1. columns: from each column of zeros and ones to its label's name.

    A row of zeros has no label; as every zero was written, that is no mistake.
    """
    marks = np.stack([_zeros_and_ones(table, column) for column in columns], axis=1)
    return _lists(marks, list(columns.values()))


def matrix_lists(table: Table, column: str, labels: Sequence[str]) -> pa.ListArray:
    """list<string> [n]: the labels of a 0/1 matrix [n, labels] in memory."""
    matrix = np.asarray(table.columns[column])
    if matrix.shape[1] != len(labels):
        raise DataError(
            f"column {column!r} has {matrix.shape[1]} marks per row and `labels:` names {len(labels)}",
            file=table.source,
        )
    wrong = ~np.isin(matrix, (0, 1))
    if wrong.any():
        row, label = (int(index[0]) for index in np.nonzero(wrong))
        raise table.fault(
            row, f"column {column!r}, label {labels[label]!r}: must be 0 or 1, found {matrix[row, label]}"
        )
    return _lists(matrix.astype(bool), labels)


def label_matrix(lists: pa.ListArray, labels: Labels, table: Table) -> np.ndarray:
    """uint8 [n, labels]; a label that is not in the list is refused with its line."""
    lengths = np.asarray(pc.list_value_length(lists), dtype=np.int64)
    row_of = np.repeat(np.arange(len(lengths)), lengths)
    distinct, codes, index_of = class_codes(lists.flatten(), labels)
    if (index_of < 0).any():
        raise unknown_labels(table, distinct, index_of, codes, labels, rows=row_of)
    matrix = np.zeros((len(lengths), len(labels.names)), dtype=np.uint8)
    if len(codes):
        matrix[row_of, index_of[codes]] = 1
    return matrix


def _split_texts(table: Table, name: str, texts: pa.StringArray, separator: str | None) -> pa.ListArray:
    if separator is None:
        lists = [written_list(text) for text in texts.to_pylist()]
        if all(values is not None for values in lists):
            return pa.array(lists, type=pa.list_(pa.string()))
        example = next((text for text in texts.to_pylist() if text), "")
        raise DataError(
            f"column {name!r} holds texts, for example {example!r}; say what stands between two labels with "
            "`label_separator:`, or write lists: ['a', 'b'], or real ones to jsonl or parquet",
            file=table.source,
        )
    parts = pc.split_pattern(texts, separator)
    pieces = pc.utf8_trim_whitespace(parts.flatten())
    kept = np.asarray(pc.not_equal(pieces, ""))  # "a; b;" and "" have no empty label
    owners = np.repeat(np.arange(len(texts)), np.asarray(pc.list_value_length(parts), dtype=np.int64))
    return relisted(np.bincount(owners[kept], minlength=len(texts)), pieces.filter(pa.array(kept)))


def _zeros_and_ones(table: Table, column: ColumnName) -> np.ndarray:
    """bool [n]: a column of 0 and 1 (or false and true), in any type that says so."""
    name = table.name_of(column)
    values: Column = table.columns[name]
    array = pa.array(values) if isinstance(values, np.ndarray) and values.ndim == 1 else values
    if isinstance(array, np.ndarray) or pa.types.is_nested(array.type):
        raise DataError(f"column {name!r} should hold 0 or 1, one per row", file=table.source)
    texts = pc.utf8_lower(pc.utf8_trim_whitespace(as_strings(table, name, whole_numbers(array))))
    coded = pc.fill_null(texts, "").dictionary_encode()
    meanings = [ZERO_ONE.get(text) for text in coded.dictionary.to_pylist()]
    codes = np.asarray(coded.indices, dtype=np.int64)
    wrong = np.array([meaning is None for meaning in meanings], dtype=bool)[codes]
    if wrong.any():
        row = int(np.argmax(wrong))
        value = array[row].as_py()
        raise table.fault(row, f"column {name!r} must be 0 or 1, found {value!r} ({int(wrong.sum())} such rows)")
    return np.array([bool(meaning) for meaning in meanings], dtype=bool)[codes]


def _lists(marks: np.ndarray, labels: Sequence[str]) -> pa.ListArray:
    names = pa.array(list(labels), type=pa.string())
    return relisted(marks.sum(axis=1), names.take(pa.array(np.nonzero(marks)[1])))


def _refuse(table: Table, name: str, wrong: np.ndarray, what: str, rows: np.ndarray | None = None) -> None:
    if wrong.any():
        place = int(np.argmax(wrong))
        message = f"column {name!r} {what} ({int(wrong.sum())} such rows)"
        raise table.fault(place if rows is None else int(rows[place]), message)
