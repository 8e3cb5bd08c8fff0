"""Tables in, a `Task` out: targets encoded, splits carved, limits applied, every decision noted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sidequest.tasks.class_weights import class_weights
from sidequest.tasks.columns import WORD_COLUMNS, form_of, input_columns
from sidequest.tasks.encoding import Target, encoded_target, label_list, target_facts, written_target
from sidequest.tasks.examples import Column, Examples
from sidequest.tasks.metrics import check_metric, default_metrics
from sidequest.tasks.permuted import shuffled
from sidequest.tasks.problems import Problems
from sidequest.tasks.readers import Table
from sidequest.tasks.spec import TaskSpec
from sidequest.tasks.splits import carve, generator, limit, report_rows, select_rows
from sidequest.tasks.targets import Labels, as_iob2, uses_iob
from sidequest.tasks.task import SPLITS, ClassWeights, Objective, Task
from sidequest.tasks.unlabelled import drop_unlabelled


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
    read: dict[str, dict[str, Column]] = {}
    for split, table in tables.items():
        with problems.catch(name, split):
            read[split] = input_columns(table, inputs)
    labels, targets, notes = _targets(name, spec, objective, tables, read, columns, problems)
    if len(problems.errors) > before:
        return None
    metrics = spec.metric or default_metrics(objective, labels)
    with problems.catch(name):
        for metric in metrics:
            check_metric(metric, objective, labels)
    if len(problems.errors) > before:
        return None
    rows = {s: Examples(read[s], targets[s], kept[s]) for s in SPLITS if s in tables}
    rows, more_notes = _split(name, rows, spec, objective, seed, primary)
    if empty := [split for split, part in rows.items() if not len(part)]:
        message = f"{len(tables['train'])} rows are too few to carve {' and '.join(empty)}"
        more = "add rows, or name a file for each split"
        problems.error(f"{tables['train'].source}: {message}; {more}", task=name, split="train")
        return None
    weights: ClassWeights | None = None
    if spec.class_weights is not None:
        with problems.catch(name):
            weights = class_weights(spec.class_weights, objective, labels, rows["train"].target)
        if weights is None:
            return None
    left_out = {s: len(table) - len(kept[s]) for s, table in originals.items()}
    reading_notes = [
        *(f"{s}: {note}" for s, table in tables.items() for note in table.notes),
        *(f"{s}: {count} rows without a label left out" for s, count in left_out.items() if count),
    ]
    origin = {s: originals[s if s in originals else "train"] for s in rows}
    task = Task(
        name=name,
        objective=objective,
        form=form_of(inputs),
        splits=rows,
        labels=labels,
        metrics=metrics,
        kind=spec.kind,
        notes=(*notes, *reading_notes, *more_notes),
        sources={s: table.source for s, table in origin.items()},
        inputs={
            "columns": inputs,
            "reading": dict(reading or {}),
            "target": target_facts(spec, columns),
        },
        class_weights=weights,
    )
    return LoadedTask(task, origin)


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
        target = {"label": "label"} if "label" in train.columns or spec.labels is None else {}
        chosen = {"image": "image"} | target | chosen
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
    written: dict[str, Target] = {}
    notes: list[str] = []
    for split, table in tables.items():
        with problems.catch(name, split):
            if objective is not Objective.TAGGING or split in shown:
                written[split] = written_target(spec, objective, table, shown.get(split, {}), columns)
    if objective is Objective.REGRESSION and "train" in written and (written["train"] == written["train"][0]).all():
        message = f"every row has the target {written['train'][0]:g}; there is nothing to learn"
        problems.error(f"{tables['train'].source}: {message}", task=name, split="train")
    if objective is Objective.REGRESSION or "train" not in written:
        return (), written, notes
    if objective is Objective.TAGGING and (
        spec.tag_scheme == "iob" or (spec.tag_scheme == "auto" and uses_iob(written["train"]))
    ):
        for split, tags in written.items():
            written[split], changed = as_iob2(tags)
            if changed:
                notes.append(f"{split}: {changed} tags turned from IOB1 into IOB2")
    targets: dict[str, Target] = {}
    labels: Labels | None = None
    with problems.catch(name, "train"):
        labels = label_list(spec, objective, tables["train"], written["train"], shown.get("train", {}), columns)
    if labels is None:
        return (), targets, notes
    for split, values in written.items():
        with problems.catch(name, split):
            targets[split] = encoded_target(objective, values, labels, tables[split], shown.get(split, {}))
    if "train" in targets and (fault := _nothing_to_learn(objective, targets["train"], labels)):
        problems.error(f"{tables['train'].source}: {fault}", task=name, split="train")
    return labels.names, targets, notes


def _nothing_to_learn(objective: Objective, target: Target, labels: Labels) -> str:
    """Why a train split teaches nothing, or an empty text."""
    if objective is Objective.MULTILABEL:
        if not labels.names:
            return "no row has a label"
        if len(labels.names) < 2:
            return f"the only label is {labels.names[0]!r}; for a single label say `objective: classification`"
        only = [labels.names[i] for i in np.flatnonzero(target[0])]
        return f"every row has the labels {only}; there is nothing to learn" if (target == target[0]).all() else ""
    if objective is Objective.CHOICE:
        return ""
    present = np.unique(np.asarray(target.flatten() if objective is Objective.TAGGING else target))
    if len(present) > 1:
        return ""
    return f"every row has the label {labels.names[int(present[0])]!r}; there is nothing to learn"


def _split(
    name: str, rows: dict[str, Examples], spec: TaskSpec, objective: Objective, seed: int, primary: bool
) -> tuple[dict[str, Examples], list[str]]:
    notes: list[str] = []
    train = rows["train"]
    if primary and "report" not in rows:
        train, rows["report"] = carve(train, report_rows(len(train)), objective, generator(seed, name, "report"))
        notes.append(f"report: {len(rows['report'])} rows carved from train, because no report split was given")
    if spec.shuffle_labels:
        train = shuffled(train, objective, generator(seed, name, "shuffle"))
        if "select" in rows:
            rows["select"] = shuffled(rows["select"], objective, generator(seed, name, "shuffle", "select"))
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
