"""A table's columns as the inputs of a task, under their canonical names (`examples` lists them)."""

from __future__ import annotations

import re
import string
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sidequest.errors import DataError
from sidequest.tasks.examples import Column
from sidequest.tasks.readers import Table
from sidequest.tasks.spec import ColumnName
from sidequest.tasks.task import Form

# Where the words are if the user does not say: by position in CoNLL columns, by name in CoNLL-U.
WORD_COLUMNS = {"FORM": ("FORM", "UPOS"), "0": (0, -1)}


def input_columns(table: Table, inputs: Mapping[str, Any]) -> dict[str, Column]:
    """The input columns of a task.

    inputs: `text`, `text_b`, `choices`, `tokens`, `image`: which columns of the table they are; absent ones are not inputs.
    """
    columns: dict[str, Column] = {}
    if "image" in inputs:
        return {"image": image_column(table, inputs["image"])}
    if "tokens" in inputs:
        return {"tokens": tokens_column(table, inputs["tokens"])}
    for name in ("text", "text_b"):
        if name in inputs:
            columns[name] = text_column(table, inputs[name])
    if "choices" in inputs:
        columns["choices"] = choices_column(table, inputs["choices"])
    return columns


def form_of(inputs: Mapping[str, Any]) -> Form:
    """What the model is shown."""
    for name, form in (
        ("image", Form.IMAGE),
        ("tokens", Form.TOKENS),
        ("choices", Form.CHOICES),
        ("text_b", Form.PAIR),
    ):
        if name in inputs:
            return form
    return Form.TEXT


def text_column(table: Table, column: ColumnName) -> pa.StringArray:
    """string [n]: a column, or a template such as "{title}. {body}" filled from several."""
    if isinstance(column, str) and "{" in column and column not in table.columns:
        return _filled_template(table, column)
    name = table.name_of(column)
    values = table.columns[name]
    if isinstance(values, np.ndarray) or pa.types.is_nested(values.type):
        raise DataError(f"column {name!r} should hold texts, found {_type_of(values)}", file=table.source)
    if values.null_count:
        row = int(np.argmax(np.asarray(pc.is_null(values))))
        raise table.fault(row, f"column {name!r} has no value here ({values.null_count} such rows)")
    return as_strings(table, name, values)


def as_strings(table: Table, name: str, values: pa.Array) -> pa.StringArray:
    """Plain values (numbers, dates) as their text."""
    try:
        return values if pa.types.is_string(values.type) else values.cast(pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise DataError(f"column {name!r} should hold texts, found {_type_of(values)}", file=table.source) from None


def tokens_column(table: Table, column: ColumnName) -> pa.ListArray:
    """list<string> [n]: a column of lists, or of texts whose words stand between spaces."""
    name = table.name_of(column)
    values = table.columns[name]
    if not isinstance(values, np.ndarray) and pa.types.is_string(values.type):
        values = pc.utf8_split_whitespace(pc.utf8_trim_whitespace(text_column(table, name)))
        values = pa.array([[word for word in row if word] for row in values.to_pylist()], type=pa.list_(pa.string()))
    return _list_of_strings(table, name, values, least=1, what="a sentence needs at least one word")


def choices_column(table: Table, columns: ColumnName | list[ColumnName] | tuple[ColumnName, ...]) -> pa.ListArray:
    """list<string> [n]: the alternatives, from one column of lists or from a column each."""
    if isinstance(columns, (str, int)):
        name = table.name_of(columns)
        return _list_of_strings(table, name, table.columns[name], least=2, what="a row needs at least two choices")
    texts = [text_column(table, column) for column in columns]
    rows, width = len(table), len(texts)
    row_by_row = (np.arange(width) * rows)[None, :] + np.arange(rows)[:, None]
    values = pa.concat_arrays(texts).take(pa.array(row_by_row.ravel()))
    return pa.ListArray.from_arrays(pa.array(np.arange(0, rows * width + 1, width), type=pa.int32()), values)


def image_column(table: Table, column: ColumnName) -> np.ndarray:
    """uint8 or float32 [n, channels, height, width]; a single channel may be left out."""
    name = table.name_of(column)
    values = table.columns[name]
    if not isinstance(values, np.ndarray) or values.ndim not in (3, 4):
        raise DataError(
            f"column {name!r} should hold images [rows, channels, height, width], found {_type_of(values)}",
            file=table.source,
        )
    values = values[:, None] if values.ndim == 3 else values
    if values.dtype == np.uint8:
        return values
    with np.errstate(over="ignore"):  # what is too large for float32 is found below
        values = values.astype(np.float32)
    finite = np.isfinite(values).reshape(len(values), -1).all(1)
    if not finite.all():
        row = int(np.argmin(finite))
        raise table.fault(row, f"column {name!r}: the numbers of an image are finite ({int((~finite).sum())} are not)")
    return values


def relisted(lengths: np.ndarray, values: pa.Array) -> pa.ListArray:
    """A list column from the number of values in each row and all values one after another."""
    return pa.ListArray.from_arrays(pa.array(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)), values)


def _filled_template(table: Table, template: str) -> pa.StringArray:
    try:
        pieces = [(literal, field) for literal, field, _, _ in string.Formatter().parse(template)]
    except ValueError as error:
        raise DataError(f"the template {template!r} can't be read: {error}", file=table.source) from None
    parts: list[Any] = []
    for literal, field in pieces:
        parts.append(literal)
        if field is not None:
            parts.append(text_column(table, int(field) if re.fullmatch(r"-?\d{1,6}", field) else field))
    return pc.binary_join_element_wise(*parts, "")


def _list_of_strings(table: Table, name: str, values: Column, *, least: int, what: str) -> pa.ListArray:
    if isinstance(values, np.ndarray) or not pa.types.is_list(values.type):
        raise DataError(f"column {name!r} should hold lists of texts, found {_type_of(values)}", file=table.source)
    lengths = np.asarray(pc.fill_null(pc.list_value_length(values), 0), dtype=np.int64)
    if (short := lengths < least).any():
        row = int(np.argmax(short))
        raise table.fault(row, f"column {name!r}: {what}, found {lengths[row]}")
    flat = values.flatten()
    if flat.null_count:
        raise DataError(f"column {name!r} has lists with missing values", file=table.source)
    return relisted(lengths, as_strings(table, name, flat))


def _type_of(values: Column) -> str:
    return f"an array of shape {values.shape}" if isinstance(values, np.ndarray) else f"the type {values.type}"
