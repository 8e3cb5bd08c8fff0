"""Tables in, a `Task` out: targets encoded, splits carved, limits applied, every decision noted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from sidequest.errors import SettingsError
from sidequest.tasks.columns import WORD_COLUMNS, form_of, input_columns, relisted
from sidequest.tasks.examples import Column, Examples
from sidequest.tasks.metrics import check_metric, default_metrics
from sidequest.tasks.problems import Problems
from sidequest.tasks.readers import Table
from sidequest.tasks.spec import TaskSpec
from sidequest.tasks.splits import carve, generator, limit, report_rows, select_rows
from sidequest.tasks.targets import (
    Labels,
    as_iob2,
    class_indices,
    label_texts,
    numbers,
    tag_indices,
    tag_texts,
    uses_iob,
)
from sidequest.tasks.task import SPLITS, Objective, Task
from sidequest.tasks.unlabelled import drop_unlabelled

Target: TypeAlias = "np.ndarray | pa.Array"


@dataclass(frozen=True)
class LoadedTask:
    """A task, and the table that the rows of each split came from: an id is a row of that table."""

    task: Task
    tables: Mapping[str, Table]


def build_task(
    name: str,
    spec: TaskSpec,
    tables: Mapping[str, Table],
    *,
    seed: int,
    primary: bool,
    problems: Problems,
    reading: Mapping[str, Any] | None = None,
) -> LoadedTask | None:
    """A task from the tables of its splits, or None if something is wrong, which `problems` then says.

    Order of decisions: targets are encoded; the primary's *report* is carved from train if it has none; targets are shuffled if
    asked; train is limited; *select* is carved. So a limit counts the labelled rows that a user would have for both train and
    select, and never costs the report a row.
    """
    before = len(problems.errors)
    objective = spec.objective
    assert objective is not None, "a spec without faults has an objective"
    originals = tables
    kept = {split: np.arange(len(table)) for split, table in tables.items()}
    if spec.unlabelled == "drop":
        tables = dict(tables)
        for split, table in originals.items():
            with problems.catch(name, split):
                kept[split], tables[split] = drop_unlabelled(table, spec)
    columns = _column_names(spec, tables["train"])
    inputs = {key: value for key, value in columns.items() if key not in ("label", "tags")}
    shown: dict[str, dict[str, Column]] = {}
    for split, table in tables.items():
        with problems.catch(name, split):
            shown[split] = input_columns(table, inputs)
    labels, targets, notes = _targets(name, spec, objective, tables, shown, columns, problems)
    metrics: tuple[str, ...] = ()
    with problems.catch(name):
        metrics = spec.metric or default_metrics(objective, labels)
        for metric in metrics if len(problems.errors) == before else ():
            check_metric(metric, objective, labels)
    if len(problems.errors) > before:
        return None
    rows = {s: Examples(shown[s], targets[s], kept[s]) for s in SPLITS if s in tables}
    rows, more_notes = _split(name, rows, spec, objective, seed, primary)
    empty = [split for split, part in rows.items() if not len(part)]
    if empty:
        with problems.catch(name, "train"):
            message = f"{len(tables['train'])} rows are too few to carve {' and '.join(empty)}"
            raise SettingsError(f"{tables['train'].source}: {message}; add rows, or name a file for each split")
        return None
    sources = {s: tables[s if s in tables else "train"].source for s in rows}
    notes += [f"{s}: {note}" for s, table in tables.items() for note in table.notes]
    left_out = {s: len(table) - len(kept[s]) for s, table in originals.items()}
    notes += [f"{s}: {count} rows without a label left out" for s, count in left_out.items() if count]
    task = Task(
        name,
        objective,
        form_of(inputs),
        rows,
        labels,
        metrics,
        spec.kind,
        tuple(notes + more_notes),
        sources,
        {"columns": inputs, "reading": dict(reading or {})},
    )
    return LoadedTask(task, {s: originals[s if s in originals else "train"] for s in rows})


def _column_names(spec: TaskSpec, train: Table) -> dict[str, Any]:
    """Which columns are the inputs and the target, with the defaults of formats that need no names."""
    names = {key: getattr(spec, key) for key in ("text", "text_b", "choices", "tokens", "tags", "label")}
    chosen = {
        key: list(value) if isinstance(value, tuple) else value for key, value in names.items() if value is not None
    }
    if spec.objective is Objective.TAGGING:
        for mark, (tokens, tags) in WORD_COLUMNS.items():
            if mark in train.columns:
                chosen = {"tokens": tokens, "tags": tags} | chosen
    elif "image" in train.columns and "text" not in chosen:
        chosen = {"image": "image", "label": "label"} | chosen
    return chosen


def _targets(
    name: str,
    spec: TaskSpec,
    objective: Objective,
    tables: Mapping[str, Table],
    shown: Mapping[str, Mapping[str, Column]],
    columns: Mapping[str, Any],
    problems: Problems,
) -> tuple[tuple[str, ...], dict[str, Target], list[str]]:
    """Label names, the target of each split, and notes. A split with a fault is left out."""
    texts: dict[str, pa.Array] = {}
    targets: dict[str, Target] = {}
    notes: list[str] = []
    for split, table in tables.items():
        with problems.catch(name, split):
            if objective is Objective.REGRESSION:
                targets[split] = numbers(table, columns["label"])
            elif objective is not Objective.TAGGING:
                texts[split] = label_texts(table, columns["label"])
            elif split in shown:
                texts[split] = tag_texts(table, columns["tags"], shown[split]["tokens"])
    if objective is Objective.REGRESSION or "train" not in texts:
        return (), targets, notes
    if objective is Objective.TAGGING and (
        spec.tag_scheme == "iob" or (spec.tag_scheme == "auto" and uses_iob(texts["train"]))
    ):
        for split, tags in texts.items():
            texts[split], changed = as_iob2(tags)
            if changed:
                notes.append(f"{split}: {changed} tags turned from IOB1 into IOB2")
    labels: Labels | None = None
    with problems.catch(name, "train"):
        labels = _label_list(spec, objective, tables["train"], texts["train"], shown.get("train", {}), columns)
    if labels is None:
        return (), targets, notes
    encode = tag_indices if objective is Objective.TAGGING else class_indices
    for split, values in texts.items():
        with problems.catch(name, split):
            targets[split] = encode(values, labels, tables[split])
            if objective is Objective.CHOICE and split in shown:
                _check_choices(targets[split], shown[split]["choices"], tables[split])
    if "train" in targets and objective is not Objective.CHOICE:
        flat = targets["train"].flatten() if objective is Objective.TAGGING else targets["train"]
        present = np.unique(np.asarray(flat))
        if len(present) < 2:
            with problems.catch(name, "train"):
                only = labels.names[int(present[0])]
                raise SettingsError(
                    f"{tables['train'].source}: every row has the label {only!r}; there is nothing to learn"
                )
    return labels.names, targets, notes


def _label_list(
    spec: TaskSpec,
    objective: Objective,
    train: Table,
    texts: pa.Array,
    shown: Mapping[str, Column],
    columns: Mapping[str, Any],
) -> Labels:
    if spec.labels is not None:
        return Labels.fixed(spec.labels)
    if objective is Objective.CHOICE:
        widest = max((len(row) for row in shown["choices"]), default=0) if "choices" in shown else 0
        return Labels.fixed(tuple(str(i) for i in range(widest)))
    column = train.name_of(columns["tags" if objective is Objective.TAGGING else "label"])
    if column in train.label_names:
        return Labels.fixed(train.label_names[column])
    flat = texts.flatten() if objective is Objective.TAGGING else texts
    return Labels.found(flat.unique().to_pylist())


def _check_choices(target: Target, choices: Column, table: Table) -> None:
    widths = np.asarray(choices.value_lengths(), dtype=np.int64)
    for row in np.flatnonzero(np.asarray(target) >= widths):
        raise table.fault(int(row), f"the label names choice {target[row]} (counted from 0) of {widths[row]}")


def _split(
    name: str, rows: dict[str, Examples], spec: TaskSpec, objective: Objective, seed: int, primary: bool
) -> tuple[dict[str, Examples], list[str]]:
    notes: list[str] = []
    train = rows["train"]
    if primary and "report" not in rows:
        train, rows["report"] = carve(train, report_rows(len(train)), objective, generator(seed, name, "report"))
        notes.append(f"report: {len(rows['report'])} rows carved from train, because no report split was given")
    if spec.shuffle_labels:
        train = _shuffled(train, generator(seed, name, "shuffle"))
        if "select" in rows:
            rows["select"] = _shuffled(rows["select"], generator(seed, name, "shuffle", "select"))
        notes.append("train and select: labels shuffled, as `shuffle_labels` asks")
    if spec.limit is not None and len(train) > spec.limit:
        notes.append(
            f"train: limited to {spec.limit} of {len(train)} rows" + ("" if "select" in rows else ", select included")
        )
        train = limit(train, spec.limit, objective, generator(seed, name, "limit"))
    if "select" not in rows:
        train, rows["select"] = carve(train, select_rows(len(train)), objective, generator(seed, name, "select"))
        notes.append(f"select: {len(rows['select'])} rows carved from train")
    rows["train"] = train
    for split, most in (("select", spec.select_limit), ("report", spec.report_limit)):
        if most is not None and split in rows and len(rows[split]) > most:
            notes.append(f"{split}: limited to {most} of {len(rows[split])} rows")
            rows[split] = limit(rows[split], most, objective, generator(seed, name, "limit", split))
    return {split: rows[split] for split in SPLITS if split in rows}, notes


def _shuffled(examples: Examples, rng: np.random.Generator) -> Examples:
    """The same rows with permuted targets; tags are permuted over all words."""
    target = examples.target
    if isinstance(target, np.ndarray):
        return Examples(examples.columns, target[rng.permutation(len(target))], examples.ids)
    assert target is not None, "rows to train on have targets"
    flat = np.asarray(target.flatten(), dtype=np.int64)
    lengths = np.asarray(target.value_lengths(), dtype=np.int64)
    return Examples(examples.columns, relisted(lengths, pa.array(flat[rng.permutation(len(flat))])), examples.ids)
