"""A table's label column as targets: class indices, numbers, or tag indices; and the order of the labels."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sidequest.errors import DataError, SettingsError, nearest
from sidequest.tasks.columns import as_strings, relisted, tokens_column
from sidequest.tasks.examples import Column
from sidequest.tasks.readers import Table
from sidequest.tasks.spans import iob1_to_iob2, is_iob
from sidequest.tasks.spec import ColumnName

LARGEST_TARGET = 1e100  # of a regression: the square of more is no number
DECIMAL_COMMA = re.compile(r"\s*[+-]?\d+,\d+\s*")
PERCENT = r"^\s*([+-]?\d+(?:[.,]\d+)?)\s*%\s*$"


@dataclass(frozen=True)
class Labels:
    """Label names in order, and the index that each text found in a file stands for."""

    names: tuple[str, ...]
    index: Mapping[str, int]
    origin: str  # where the list comes from, for messages

    @classmethod
    def fixed(cls, labels: tuple[str, ...] | dict[str, str]) -> Labels:
        """As the user or the catalog gives them; a mapping may be met by its keys (files) or its values (hub)."""
        if isinstance(labels, Mapping):
            names = tuple(dict.fromkeys(labels.values()))
            index = {name: i for i, name in enumerate(names)} | {k: names.index(v) for k, v in labels.items()}
        else:
            names, index = tuple(labels), {name: i for i, name in enumerate(labels)}
            if len(index) < len(names):
                twice = next(name for name in names if names.count(name) > 1)
                raise SettingsError(f"labels: {twice!r} is listed twice")
        return cls(names, index, "in `labels:`")

    @classmethod
    def occurring(cls, values: Iterable[str]) -> Labels:
        """All that occur in train: numbers in their order, otherwise alphabetically."""
        names = tuple(sorted(values, key=_number_or_text))
        return cls(names, {name: i for i, name in enumerate(names)}, "in the train split")


def label_texts(table: Table, column: ColumnName) -> pa.StringArray:
    """string [n]: the labels as written; whole numbers without a decimal point whatever their type."""
    name = table.name_of(column)
    values: Column = table.columns[name]
    array = pa.array(values) if isinstance(values, np.ndarray) and values.ndim == 1 else values
    if isinstance(array, np.ndarray) or pa.types.is_nested(array.type):
        raise DataError(f"column {name!r} should hold one label per row", file=table.source)
    texts = as_strings(table, name, whole_numbers(array))
    missing = np.asarray(pc.fill_null(pc.equal(texts, ""), True), dtype=bool)
    if missing.any():
        message = (
            f"column {name!r} has no label here ({int(missing.sum())} such rows). `unlabelled: drop` leaves them out"
        )
        raise table.fault(int(np.argmax(missing)), message)
    return texts


def class_indices(texts: pa.StringArray, labels: Labels, table: Table) -> np.ndarray:
    """int64 [n]; a label that is not in the list is refused with its line."""
    distinct, codes, index_of = class_codes(texts, labels)
    if (index_of < 0).any():
        raise unknown_labels(table, distinct, index_of, codes, labels)
    return index_of[codes] if len(distinct) else codes


def class_codes(texts: pa.StringArray, labels: Labels) -> tuple[list[str], np.ndarray, np.ndarray]:
    """The distinct texts, which of them each text is (int64 [n]), and the label that each distinct one is (-1: none)."""
    coded = texts.dictionary_encode()
    distinct: list[str] = coded.dictionary.to_pylist()
    index_of = np.array([labels.index.get(text, -1) for text in distinct], dtype=np.int64)
    return distinct, np.asarray(coded.indices, dtype=np.int64), index_of


def numbers(table: Table, column: ColumnName, decimal: Literal[".", ","] = ".") -> np.ndarray:
    """float64 [n], finite. decimal: the mark before the decimals of a number that is written as text. If all have a percent sign,
    12.5% is 12.5."""
    name = table.name_of(column)
    values: Column = table.columns[name]
    array = pa.array(values) if isinstance(values, np.ndarray) and values.ndim == 1 else values
    if isinstance(array, np.ndarray) or pa.types.is_nested(array.type):
        raise DataError(f"column {name!r} should hold one number per row", file=table.source)
    plain = array
    if pa.types.is_string(array.type):
        plain = pc.utf8_trim_whitespace(without_percent(array))
        if decimal == ",":  # a point would mark thousands or decimals: nobody can tell which
            pointed = pc.match_substring(plain, ".")
            plain = pc.if_else(pointed, pa.scalar(None, pa.string()), pc.replace_substring(plain, ",", "."))
    try:
        target = np.asarray(pc.fill_null(plain.cast(pa.float64()), np.nan), dtype=np.float64)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        target = np.array([_float_or_nan(value) for value in plain.to_pylist()])
    wrong = ~np.isfinite(target)
    if wrong.any():
        row = int(np.argmax(wrong))
        value = array[row].as_py()
        shown = repr(value) if len(repr(value)) <= 60 else f"{repr(value)[:60]}…"
        message = f"column {name!r} must be a finite number, found {shown} ({int(wrong.sum())} such rows)"
        if value is None or not str(value).strip():
            message += ". `unlabelled: drop` leaves rows without one out"
        elif decimal == "." and DECIMAL_COMMA.fullmatch(str(value)):
            message += ". `decimal: ','` reads numbers with a decimal comma"
        elif decimal == "," and "." in str(value):
            message += ". With `decimal: ','` a number has no point"
        raise table.fault(row, message)
    if (far := np.abs(target) > LARGEST_TARGET).any():
        row = int(np.argmax(far))
        raise table.fault(row, f"column {name!r}: a target is at most {LARGEST_TARGET:g}, found {target[row]:g}")
    return target


def tag_texts(table: Table, column: ColumnName, tokens: pa.ListArray) -> pa.ListArray:
    """list<string> [n]: a tag for every word."""
    tags = tokens_column(table, column)
    words, given = (np.asarray(pc.list_value_length(part), dtype=np.int64) for part in (tokens, tags))
    wrong = words != given
    if wrong.any():
        row = int(np.argmax(wrong))
        raise table.fault(row, f"{given[row]} tags for {words[row]} words")
    return tags


def as_iob2(tags: pa.ListArray) -> tuple[pa.ListArray, int]:
    """The tags with every span beginning in B, and how many tags that changed."""
    lengths = np.asarray(pc.list_value_length(tags), dtype=np.int64)
    flat = np.asarray(tags.flatten().to_pylist(), dtype=object)
    first = np.zeros(len(flat), dtype=bool)
    first[np.cumsum(lengths) - lengths] = True
    converted, changed = iob1_to_iob2(flat, first)
    return (relisted(lengths, pa.array(converted, type=pa.string())), changed) if changed else (tags, 0)


def uses_iob(tags: pa.ListArray) -> bool:
    """Whether all tags are O, B-X or I-X (or E-X, S-X), and not all are O."""
    distinct = pc.unique(tags.flatten()).to_pylist()
    return all(map(is_iob, distinct)) and distinct != ["O"]


def tag_indices(tags: pa.ListArray, labels: Labels, table: Table) -> pa.ListArray:
    """list<int64> [n]; an unknown tag is refused with the line of its sentence."""
    lengths = np.asarray(pc.list_value_length(tags), dtype=np.int64)
    distinct, codes, index_of = class_codes(tags.flatten(), labels)
    if (index_of < 0).any():
        sentence = np.repeat(np.arange(len(lengths)), lengths)
        raise unknown_labels(table, distinct, index_of, codes, labels, rows=sentence)
    return relisted(lengths, pa.array(index_of[codes]))


def unknown_labels(
    table: Table,
    distinct: list[str],
    index_of: np.ndarray,
    codes: np.ndarray,
    labels: Labels,
    rows: np.ndarray | None = None,
) -> DataError:
    """The error for labels outside the list. rows: where a row has several labels, the row of each code."""
    wrong = np.flatnonzero(index_of[codes] < 0)
    unlisted = [distinct[i] for i in np.flatnonzero(index_of < 0)]
    shown = ", ".join(map(repr, unlisted[:5])) + (", …" if len(unlisted) > 5 else "")
    row = int(wrong[0] if rows is None else rows[wrong[0]])
    what = f"the label {shown} is" if len(unlisted) == 1 else f"the labels {shown} are"
    message = f"{what} not {labels.origin} ({len(wrong)} times). {nearest(unlisted[0], labels.index)}"
    return table.fault(row, message)


def whole_numbers(array: pa.Array) -> pa.Array:
    """Floating-point labels as integers if they all are; NaN as null."""
    if not pa.types.is_floating(array.type):
        return array
    values = np.asarray(array.cast(pa.float64()), dtype=np.float64)  # null becomes NaN
    missing = np.isnan(values)
    whole = np.all(missing | (np.isfinite(values) & (values == np.floor(values))))
    return pa.array(np.where(missing, 0, values).astype(np.int64) if whole else values, mask=missing)


def without_percent(texts: pa.StringArray) -> pa.StringArray:
    """Numbers without their percent signs, if all that is written has one."""
    written = texts.filter(pc.fill_null(pc.not_equal(pc.utf8_trim_whitespace(texts), ""), False))
    if not len(written) or not pc.all(pc.match_substring_regex(written, PERCENT)).as_py():
        return texts
    return pc.replace_substring_regex(texts, PERCENT, r"\1")


def _float_or_nan(value: object) -> float:
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return float("nan")


def _number_or_text(name: str) -> tuple[int, float, str]:
    value = _float_or_nan(name)
    return (0, value, name) if np.isfinite(value) else (1, 0.0, name)
