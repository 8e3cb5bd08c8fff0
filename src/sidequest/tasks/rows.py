"""Rows to predict: a user's file read as the task's own files were, and its labels, where it has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc

from sidequest.errors import SettingsError, SidequestError
from sidequest.settings import parse
from sidequest.tasks.encoding import Target, known_target
from sidequest.tasks.examples import INPUT_COLUMNS, Examples
from sidequest.tasks.memory import as_table, rows_to_examples
from sidequest.tasks.readers import ReadSettings, Table, guess_format, read_file, read_idx
from sidequest.tasks.spec import ColumnName, TaskSpec
from sidequest.tasks.task import Objective, Task
from sidequest.tasks.unlabelled import label_columns, labelled_rows

CANONICAL = {"text": ("text",), "pair": ("text", "text_b"), "choices": ("text", "choices"), "tokens": ("tokens",)}


@dataclass(frozen=True)
class NewRows:
    """examples: all rows, without a target. table: the file, for its other columns.

    labelled: positions of the rows that have a label; target: theirs, None if there are none. unscored: why a file that has
    labels cannot be scored, empty if it can or has none.
    """

    examples: Examples
    table: Table
    labelled: np.ndarray
    target: Target | None
    unscored: str = ""


def read_rows(path: Path, inputs: Mapping[str, Mapping[str, Any]]) -> Examples:
    """The rows of a file to predict, read as the task's own files were. inputs: `Task.inputs`."""
    return rows_to_examples(read_table(path, inputs), inputs["columns"])


def examples_in_memory(data: Any, task: Task) -> Examples:
    """Rows to predict from a mapping of columns, a DataFrame, a table or a dataset: inputs have their names in the task's files,
    or their canonical ones (`text`, `text_b`, `choices`, `tokens`, `image`)."""
    table = as_table(data, "rows")
    canonical = CANONICAL.get(task.form, ("image",))
    if all(name in table.columns for name in canonical):
        return rows_to_examples(table, {name: name for name in canonical})
    return rows_to_examples(table, column_names(task))


def read_new_rows(path: Path, task: Task) -> NewRows:
    """The rows of a file to predict, with what is known of their labels."""
    return new_rows(read_table(path, task.inputs), task)


def new_rows(table: Table, task: Task) -> NewRows:
    """The rows of a table to predict, with what is known of their labels. A fault in labels stops no prediction."""
    columns = column_names(task)
    examples = rows_to_examples(table, columns)
    nothing = np.zeros(0, dtype=np.int64)
    wanted = _label_columns(task, table, columns)
    if not wanted:
        return NewRows(examples, table, nothing, None)
    labelled = np.arange(len(table))
    if task.objective is not Objective.TAGGING:
        labelled = np.flatnonzero(_labelled(table, wanted, task.inputs["target"]))
    if not len(labelled):
        return NewRows(examples, table, nothing, None)
    try:
        target = known_target(task, table.take(labelled), examples.take(labelled).columns)
    except SidequestError as error:
        return NewRows(examples, table, nothing, None, str(error))
    return NewRows(examples, table, labelled, target)


def _labelled(table: Table, columns: Sequence[ColumnName], facts: Mapping[str, Any]) -> np.ndarray:
    """bool [n]. Where rows may have no label (`allow_empty`), an empty cell is an answer, as in training; a file whose cells are
    all empty waits for answers."""
    labelled = labelled_rows(table, columns, facts.get("no_label", ()))
    if not facts.get("allow_empty") or not labelled.any():
        return labelled
    return labelled | np.all([np.asarray(pc.is_valid(table.column(column))) for column in columns], axis=0)


def read_table(path: Path, inputs: Mapping[str, Mapping[str, Any]]) -> Table:
    """A file in any format, by default read like the task's own."""
    reading = parse(ReadSettings, inputs.get("reading", {}), "the model's reading settings")
    guessed = guess_format(path)
    if guessed is not None and guessed != reading.format:
        reading = ReadSettings(format=guessed)
    return read_idx(path, None) if reading.format == "idx" else read_file(path, reading)


def column_names(task: Task) -> dict[str, Any]:
    """What the inputs are called; a task made in Python has no file to imitate, its columns have their canonical names."""
    columns = dict(task.inputs.get("columns", {})) or {name: name for name in CANONICAL.get(task.form, ("image",))}
    if strange := [name for name in columns if name not in INPUT_COLUMNS]:
        raise SettingsError(f"the model's inputs: {strange[0]!r} is no input; inputs are {', '.join(INPUT_COLUMNS)}")
    return columns


def _label_columns(task: Task, table: Table, inputs: Mapping[str, Any]) -> list[ColumnName]:
    """The columns that hold what is to be predicted; none if the file lacks one of them."""
    if "target" not in task.inputs:
        return []
    facts = parse(TaskSpec, dict(task.inputs["target"]) | {"objective": task.objective}, "the model's labels")
    columns = label_columns(facts) if task.objective is not Objective.TAGGING else [facts.tags or 0]
    used = {table.name_of(name) for name in inputs.values() if isinstance(name, (str, int)) and _has(table, name)}
    # A column by position may be there and yet be another: the last column of a file without labels is a text.
    return columns if all(_has(table, name) and table.name_of(name) not in used for name in columns) else []


def _has(table: Table, column: ColumnName) -> bool:
    return column in table.columns if isinstance(column, str) else -len(table.columns) <= column < len(table.columns)
