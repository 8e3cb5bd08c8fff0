"""Data in memory: rows of a mapping, a DataFrame, an Arrow table or a Hugging Face dataset as a task."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from sidequest.errors import SettingsError
from sidequest.settings import parse
from sidequest.tasks.building import build_task
from sidequest.tasks.columns import input_columns
from sidequest.tasks.examples import Examples
from sidequest.tasks.problems import Problems
from sidequest.tasks.readers import Table
from sidequest.tasks.readers.jsonl import json_column
from sidequest.tasks.readers.table import plain_column
from sidequest.tasks.spec import TaskSpec
from sidequest.tasks.task import Task


def make_task(
    name: str,
    objective: str,
    train: Any,
    select: Any = None,
    report: Any = None,
    *,
    primary: bool = False,
    seed: int = 0,
    **spec: Any,
) -> Task:
    """A task from data in memory, read at once.

    Args:
        name: What the task is called.
        objective: `classification`, `multi-label`, `regression`, `tagging` or `multiple-choice`.
        train: Rows: a mapping of lists or arrays, a DataFrame, an Arrow table or a Hugging Face dataset.
        select: Rows to choose by; by default they are carved from train.
        report: Rows that only the final score sees.
        primary: Whether the task needs a *report* split, which is carved from train if there is none.
        seed: Decides what is carved.
        **spec: Columns as in a suite file (`text="body"`), and `labels`, `metric`, `kind`, `limit` and the rest of `TaskSpec`.
            Columns with canonical names (`text`, `text_b`, `choices`, `tokens`, `tags`, `image`, `label`) need no naming.

    >>> task = make_task("mood", "classification", {"text": ["good", "bad", "fine", "awful"], "label": [1, 0, 1, 0]})
    >>> task.labels, len(task.train), len(task.splits["select"])
    (('0', '1'), 3, 1)
    """
    given = {"train": train, "select": select, "report": report}
    tables = {split: as_table(data, f"{name}[{split}]") for split, data in given.items() if data is not None}
    known = ("text", "text_b", "choices", "tokens", "tags", "label")
    named = {column: column for column in known if column in tables["train"].columns} | spec
    if "image" in tables["train"].columns:
        named.pop("label", None)
        named["format"] = "idx"
    full = parse(TaskSpec, {"objective": objective, "train": f"{name}[train]"} | named, name)
    if faults := full.faults():
        raise SettingsError("\n".join(f"{name}: {fault}" for fault in faults))
    problems = Problems()
    loaded = build_task(name, full, tables, seed=seed, primary=primary, problems=problems)
    problems.raise_errors()
    assert loaded is not None, "a task without errors is a task"
    return loaded.task


def as_table(data: Any, source: str) -> Table:
    """Rows in memory as a table."""
    if isinstance(data, Table):
        return data
    if hasattr(data, "with_format") and hasattr(data, "features"):
        from sidequest.tasks.readers.huggingface import dataset_table

        return dataset_table(data, source)
    if isinstance(data, pa.Table):
        columns: dict[str, Any] = {name: plain_column(data.column(name)) for name in data.column_names}
    elif isinstance(data, Mapping) or (hasattr(data, "columns") and hasattr(data, "__getitem__")):
        names = list(data if isinstance(data, Mapping) else data.columns)
        columns = {str(name): _memory_column(data[name]) for name in names}
    else:
        raise SettingsError(
            f"{source}: rows are a mapping of columns, a DataFrame or a table, found {type(data).__name__}"
        )
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise SettingsError(f"{source}: columns must have one length, found {lengths}")
    if not lengths or not next(iter(lengths.values())):
        raise SettingsError(f"{source}: there are no rows")
    return Table(columns, source)


def rows_to_examples(table: Table, columns: Mapping[str, Any]) -> Examples:
    """Rows without targets, to predict. columns: as in `Task.inputs["columns"]`."""
    return Examples(input_columns(table, columns), None, np.arange(len(table)))


def _memory_column(values: Any) -> pa.Array | np.ndarray:
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        return plain_column(values)
    array = values if isinstance(values, np.ndarray) else np.asarray(values) if hasattr(values, "__array__") else None
    if array is not None and array.dtype != object:
        return array if array.ndim > 1 else plain_column(pa.array(array))
    return json_column([None if _is_nan(value) else value for value in values])


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and value != value  # a DataFrame's "missing"
