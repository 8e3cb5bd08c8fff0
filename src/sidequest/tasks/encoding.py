"""From what a table says to what a model learns: labels as written, the list of labels, and targets encoded by it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from sidequest.tasks.examples import Column
from sidequest.tasks.multilabel import indicator_lists, label_lists, label_matrix, matrix_lists
from sidequest.tasks.readers import Table
from sidequest.tasks.spans import is_iob
from sidequest.tasks.spec import TaskSpec
from sidequest.tasks.targets import Labels, as_iob2, class_indices, label_texts, numbers, tag_indices, tag_texts
from sidequest.tasks.task import Objective, Task

Target: TypeAlias = "np.ndarray | pa.Array"
TARGET_FIELDS = {"label", "tags", "labels", "label_separator", "allow_empty", "tag_scheme", "no_label", "decimal"}

# (labels as written, the label list, the table for messages) → target
_ENCODERS: dict[Objective, Callable[[Target, Labels, Table], Target]] = {
    Objective.CLASSIFICATION: class_indices,
    Objective.CHOICE: class_indices,
    Objective.MULTILABEL: label_matrix,
    Objective.TAGGING: tag_indices,
}


def written_target(
    spec: TaskSpec, objective: Objective, table: Table, inputs: Mapping[str, Column], columns: Mapping[str, Any]
) -> Target:
    """The target of a table's rows as written: numbers, a label text per row, or lists of label texts.

    columns: which columns `label` or `tags` are; a multi-label task without `label` has 0/1 columns.
    """
    if objective is Objective.REGRESSION:
        return numbers(table, columns["label"], spec.decimal)
    if objective is Objective.TAGGING:
        return tag_texts(table, columns["tags"], inputs["tokens"])
    if objective is not Objective.MULTILABEL:
        return label_texts(table, columns["label"])
    if "label" not in columns:
        return indicator_lists(table, indicator_columns(spec))
    name = table.name_of(columns["label"])
    if isinstance(table.columns[name], np.ndarray) and table.columns[name].ndim == 2:
        return matrix_lists(table, name, tuple(spec.labels or ()))
    return label_lists(table, name, spec.label_separator, spec.allow_empty)


def indicator_columns(spec: TaskSpec) -> dict[str, str]:
    """From each 0/1 column to its label's name."""
    assert spec.labels is not None, "a spec without faults names a label column or 0/1 columns"
    return dict(spec.labels) if isinstance(spec.labels, Mapping) else {label: label for label in spec.labels}


def label_list(
    spec: TaskSpec,
    objective: Objective,
    train: Table,
    written: pa.Array,
    inputs: Mapping[str, Column],
    columns: Mapping[str, Any],
) -> Labels:
    """The labels in order: the user's, the number of a choice, those that the source itself names, or all that occur in train."""
    if spec.labels is not None:
        return Labels.fixed(spec.labels)
    if objective is Objective.CHOICE:
        widest = max((len(row) for row in inputs["choices"]), default=0) if "choices" in inputs else 0
        return Labels.fixed(tuple(str(i) for i in range(widest)))
    column = train.name_of(columns["tags" if objective is Objective.TAGGING else "label"])
    if column in train.label_names:
        return Labels.fixed(train.label_names[column])
    flat = written.flatten() if pa.types.is_list(written.type) else written
    return Labels.occurring(flat.unique().to_pylist())


def encoded_target(
    objective: Objective, written: Target, labels: Labels, table: Table, inputs: Mapping[str, Column]
) -> Target:
    """Labels as written → class, choice or tag indices, or a 0/1 matrix; what is not in the list is refused with its line."""
    target = _ENCODERS[objective](written, labels, table)
    if objective is Objective.CHOICE and "choices" in inputs:
        widths = np.asarray(inputs["choices"].value_lengths(), dtype=np.int64)
        wrong = np.asarray(target) >= widths
        if wrong.any():
            row = int(np.argmax(wrong))
            raise table.fault(row, f"the label names choice {target[row]} (counted from 0) of {widths[row]}")
    return target


def target_facts(spec: TaskSpec, columns: Mapping[str, Any]) -> dict[str, Any]:
    """How a task's labels are written, as plain data: with it `known_target` finds them in other files."""
    facts = spec.model_dump(mode="json", include=TARGET_FIELDS, exclude_defaults=True)
    return facts | {name: columns[name] for name in ("label", "tags") if name in columns}


def known_target(task: Task, table: Table, inputs: Mapping[str, Column]) -> Target:
    """The target of rows of another file than the task was built from, by the labels that the task has."""
    facts = task.inputs["target"]
    spec = TaskSpec(**facts)
    written = written_target(spec, task.objective, table, inputs, facts)
    if task.objective is Objective.REGRESSION:
        return written
    spans = all(map(is_iob, task.labels)) and task.labels != ("O",)
    if task.objective is Objective.TAGGING and (spec.tag_scheme == "iob" or (spec.tag_scheme == "auto" and spans)):
        written, _ = as_iob2(written)
    index = {name: i for i, name in enumerate(task.labels)}
    if isinstance(spec.labels, Mapping):
        index = {text: index[name] for text, name in spec.labels.items()} | index
    return encoded_target(
        task.objective, written, Labels(task.labels, index, "among the model's labels"), table, inputs
    )
