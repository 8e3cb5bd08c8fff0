"""A task as a user gives it: a table in memory, a file or a known dataset, and what its columns are called."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sidequest.errors import SettingsError, SidequestError, nearest, unknown
from sidequest.settings import parse
from sidequest.tasks import catalog
from sidequest.tasks.benchmarks import ENTRIES
from sidequest.tasks.guessing.columns import guess_columns
from sidequest.tasks.guessing.files import guess_file
from sidequest.tasks.loading import load_task
from sidequest.tasks.memory import as_table, make_task
from sidequest.tasks.readers import ReadSettings, Table, is_saved_dataset, read_file, read_saved, saved_splits
from sidequest.tasks.spec import TaskSpec
from sidequest.tasks.task import Task as LoadedTask

COLUMNS = ("text", "text_b", "choices", "tokens", "tags", "label")
# What splits are called in datasets of several, the preferred name first
SPLIT_NAMES = {"train": ("train",), "select": ("select", "validation", "dev"), "report": ("report", "test")}


class Task:
    """A dataset, and which of its columns are what.

    Args:
        name: What the task is called.
        data: The train rows: a DataFrame, a mapping of columns, an Arrow table, a `datasets.Dataset`, or the path of a file.
            A `datasets.DatasetDict` has several splits at once. The name of a known dataset (`glue/sst2`) needs no columns.
        select: Rows to choose by, in any of these forms; by default they are carved from train.
        report: Rows that only the final score sees; for a primary they are carved from train by default.
        objective: `classification`, `multi-label`, `regression`, `tagging` or `multiple-choice`; by default it is guessed from
            the columns, and the task's notes say so.
        **named: The columns (`text="body"`, `label="stars"`) and whatever else a task of a suite file may say (`metric`,
            `limit`, …).
    """

    def __init__(
        self,
        name: str,
        data: Any,
        *,
        select: Any = None,
        report: Any = None,
        objective: str | None = None,
        **named: Any,
    ) -> None:
        if not isinstance(name, str):
            raise SettingsError(f"a task's name is a text, found {type(name).__name__} {name!r}")
        for key in named:
            if key not in TaskSpec.model_fields:
                raise SettingsError(f"task {name!r}: unknown setting {key!r}. {nearest(key, TaskSpec.model_fields)}")
        self.name = name
        self.data = data
        self.select = select
        self.report = report
        self.objective = objective
        self.named = named

    def __repr__(self) -> str:
        data = repr(str(self.data)) if isinstance(self.data, str | Path) else type(self.data).__name__
        named = "".join(f", {key}={value!r}" for key, value in self.named.items())
        return f"Task({self.name!r}, {data}{named})"

    def load(self, *, primary: bool = False, seed: int = 0) -> LoadedTask:
        """Read the data.

        Args:
            primary: Whether the task needs a *report* split, which is carved from train if there is none.
            seed: Decides what is carved.
        """
        if isinstance(self.data, str | Path) and not Path(self.data).expanduser().exists():
            return self._known_dataset(str(self.data), primary, seed)
        tables = self._tables()
        named, note = self._completed(tables["train"])
        objective = str(named.pop("objective"))
        task = make_task(
            self.name,
            objective,
            tables["train"],
            tables.get("select"),
            tables.get("report"),
            primary=primary,
            seed=seed,
            **named,
        )
        return dataclasses.replace(task, notes=(*task.notes, *note))

    def _known_dataset(self, name: str, primary: bool, seed: int) -> LoadedTask:
        for candidate in (name, name.rpartition("/")[2]):
            try:
                entry = catalog.entry_name(candidate)
            except SettingsError:
                continue
            given = {} if self.objective is None else {"objective": self.objective}
            return load_task(self.name, {"catalog": entry, **given, **self.named}, seed=seed, primary=primary)
        if "." in name or "/" in name:
            raise SettingsError(f"task {self.name!r}: {name}: no such file, and no known dataset")
        raise unknown(f"dataset (task {self.name!r}: no such file, and no known dataset)", name, ENTRIES)

    def _tables(self) -> dict[str, Table]:
        splits = {"train": self.data, "select": self.select, "report": self.report}
        splits |= {
            split: rows for split, rows in _splits_of(self.data).items() if split == "train" or splits[split] is None
        }
        return {split: self._table(rows, split) for split, rows in splits.items() if rows is not None}

    def _table(self, rows: Any, split: str) -> Table:
        if not isinstance(rows, str | Path):
            return as_table(rows, f"{self.name}[{split}]")
        path = Path(rows).expanduser()
        if path.is_dir() and is_saved_dataset(path):
            return read_saved(path)
        given = {key: value for key, value in self.named.items() if key in ReadSettings.model_fields}
        if given:
            return read_file(path, parse(ReadSettings, given, f"task {self.name!r}"))
        return guess_file(path).table

    def _completed(self, table: Table) -> tuple[dict[str, Any], list[str]]:
        """The settings of the task with what was not said guessed; and a note about what was."""
        named = {key: value for key, value in self.named.items() if key not in ReadSettings.model_fields}
        if self.objective is not None:
            return {"objective": self.objective, **named}, []
        for key in ("text", "label"):  # a misspelt column is an error of its own, not a reason to guess
            if isinstance(named.get(key), str) and "{" not in named[key]:
                table.name_of(named[key])
        chosen = [name for name in table.columns if _is_named(name, named)]
        part = dataclasses.replace(table, columns={name: table.columns[name] for name in chosen or table.columns})
        try:
            guess = guess_columns(part, self.name)
        except SidequestError as error:
            raise SettingsError(
                f"task {self.name!r}: the objective cannot be guessed: {error}; say objective="
            ) from None
        keys = ("objective", "label_separator", "labels", "decimal") if chosen else guess.fields
        guessed = {key: guess.fields[key] for key in keys if key in guess.fields}
        if "label" in named:
            guessed.pop("labels", None)
        fields = {**guessed, **named}
        said = ", ".join(
            f"{key}={fields[key]!r}" for key in ("objective", *COLUMNS) if key in guessed and key not in named
        )
        return fields, [f"guessed: {said} ({guess.phrase})"]


def _splits_of(data: Any) -> dict[str, Any]:
    """The splits of a dataset of several (`datasets.DatasetDict`, or one saved to disk), by the names that sidequest has."""
    if isinstance(data, str | Path):
        path = Path(data).expanduser()
        names = saved_splits(path) if path.is_dir() else []
        return {
            split: read_saved(path, name)
            for split, known in SPLIT_NAMES.items()
            if (name := next((each for each in known if each in names), None)) is not None
        }
    if not isinstance(data, Mapping) or not all(hasattr(rows, "features") for rows in data.values()) or not data:
        return {}
    splits = {
        split: data[name]
        for split, known in SPLIT_NAMES.items()
        if (name := next((each for each in known if each in data), None)) is not None
    }
    if "train" not in splits:
        raise SettingsError(f"a dataset of several splits needs one called 'train', found {', '.join(map(str, data))}")
    return splits


def _is_named(column: str, named: Mapping[str, Any]) -> bool:
    """Whether a column is among those that the user named, by itself, in a list, or in a template."""
    for key in COLUMNS:
        value = named.get(key)
        values = value if isinstance(value, (list, tuple)) else [value]
        if any(column == each or (isinstance(each, str) and f"{{{column}}}" in each) for each in values):
            return True
    return False
