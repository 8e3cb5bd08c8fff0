"""Rows without a label: many real files have some, and a user may ask to leave them out."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sidequest.errors import DataError
from sidequest.tasks.readers import Table
from sidequest.tasks.spec import ColumnName, TaskSpec
from sidequest.tasks.task import Objective


def labelled_rows(table: Table, columns: Sequence[ColumnName], no_label: Collection[str] = ()) -> np.ndarray:
    """bool [n]: whether all these columns hold something other than nothing, blanks, or a text that stands for no label."""
    labelled = np.ones(len(table), dtype=bool)
    for column in columns:
        values = table.column(column)
        if not isinstance(values, np.ndarray):
            labelled &= _holds_label(values, no_label)
    return labelled


def drop_unlabelled(table: Table, spec: TaskSpec) -> tuple[np.ndarray, Table]:
    """The positions of the rows that stay, and a table of them alone."""
    columns = label_columns(spec)
    labelled = labelled_rows(table, columns, spec.no_label)
    if not labelled.any():
        names = ", ".join(repr(table.name_of(column)) for column in columns)
        raise DataError(f"no row has a label in column {names}", file=table.source)
    positions = np.flatnonzero(labelled)
    return positions, table if labelled.all() else table.take(positions)


def label_columns(spec: TaskSpec) -> list[ColumnName]:
    """The columns that hold what is to be predicted, where a row holds it as a whole."""
    if spec.objective is Objective.TAGGING:
        return []
    if spec.label is not None:
        return [spec.label]
    return list(spec.labels or ())  # 0/1 columns, one per label


def _holds_label(values: pa.Array, no_label: Collection[str]) -> np.ndarray:
    holds = np.asarray(pc.is_valid(values))
    if pa.types.is_nested(values.type):
        return holds
    if pa.types.is_floating(values.type):
        holds &= ~np.asarray(pc.fill_null(pc.is_nan(values), True))
    texts = pc.utf8_trim_whitespace(pc.fill_null(values.cast(pa.string()), ""))
    return holds & ~np.asarray(pc.is_in(texts, pa.array(["", *no_label], type=pa.string())))
