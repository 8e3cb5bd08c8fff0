"""From a suite file, a name, or data in memory to tasks. All faults of a suite are raised together, one line each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from sidequest.errors import SettingsError, unknown
from sidequest.settings import parse
from sidequest.tasks import catalog
from sidequest.tasks.building import LoadedTask, build_task
from sidequest.tasks.columns import input_columns
from sidequest.tasks.examples import Examples
from sidequest.tasks.multimnist import multimnist_tables
from sidequest.tasks.overlap import content_codes
from sidequest.tasks.problems import Problems
from sidequest.tasks.readers import ReadSettings, Table, guess_format, read_file, read_hub, read_idx, read_saved
from sidequest.tasks.readers.jsonl import json_column
from sidequest.tasks.readers.table import plain_column
from sidequest.tasks.spec import SplitSpec, TaskSpec, parse_suite, read_suite_file
from sidequest.tasks.suite import Suite
from sidequest.tasks.task import Task

EMBEDDED = ("digits", "planted")


def load_suite(source: str | Path, primary: str | None = None) -> Suite:
    """A suite from a YAML file, or an embedded one by name. primary: another one than the file says."""
    problems = Problems()
    suite, _ = load_suite_with_problems(source, problems, primary)
    problems.raise_errors()
    assert suite is not None, "a suite without errors is a suite"
    return suite


def load_suite_with_problems(
    source: str | Path, problems: Problems, primary: str | None = None
) -> tuple[Suite | None, dict[str, LoadedTask]]:
    """Like `load_suite`, but faults go to `problems`; the tasks that could be read are returned even if the suite could not."""
    path = Path(source)
    if not path.exists():
        suite = _embedded(str(source))
        return suite if primary is None else suite.with_primary(primary), {}
    with problems.catch():
        data = read_suite_file(path)
        if primary is not None:
            data["primary"] = primary
        return load_suite_data(data, path.parent, str(path), problems, path)
    return None, {}


def load_task(
    name: str, spec: TaskSpec | Mapping[str, Any], base_dir: Path | str = ".", seed: int = 0, *, primary: bool = False
) -> Task:
    """One task from its part of a suite file. A primary without a *report* split gets one, carved from train."""
    if not isinstance(spec, TaskSpec):
        spec = parse(TaskSpec, spec, name)
    if faults := spec.faults():
        raise SettingsError("\n".join(f"{name}: {fault}" for fault in faults))
    problems = Problems()
    loaded = _load_task(name, spec, Path(base_dir), seed, primary, problems)
    problems.raise_errors()
    assert loaded is not None, "a task without errors is a task"
    return loaded.task


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
    """A task from data in memory: each split a mapping of lists or arrays, a DataFrame, an Arrow table or a Hugging Face dataset.

    Columns with canonical names (`text`, `text_b`, `choices`, `tokens`, `tags`, `image`, `label`) need no naming; others are
    named as in a suite file (`text="body"`), and so are `labels`, `metric`, `kind`, `limit` and the rest of `TaskSpec`.

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


def read_rows(path: Path, inputs: Mapping[str, Mapping[str, Any]]) -> Examples:
    """The rows of a file to predict, read as the task's own files were. inputs: `Task.inputs`."""
    reading = ReadSettings(**inputs.get("reading", {}))
    guessed = guess_format(path)
    if guessed is not None and guessed != reading.format:
        reading = ReadSettings(format=guessed)
    table = read_idx(path, None) if reading.format == "idx" else read_file(path, reading)
    return rows_to_examples(table, inputs["columns"])


def _embedded(name: str) -> Suite:
    if name == "digits":
        from sidequest.tasks.digits import digits_suite

        return digits_suite()
    if name == "planted":
        from sidequest.tasks.planted import planted_suite

        return planted_suite()
    if "." in name or "/" in name:
        raise SettingsError(f"{name}: no such suite file")
    raise unknown("suite (no such file, and no embedded suite)", name, EMBEDDED)


def load_suite_data(
    data: Mapping[str, Any], base: Path, where: str, problems: Problems, path: Path | None = None
) -> tuple[Suite | None, dict[str, LoadedTask]]:
    """A suite from the content of a suite file, whose paths are relative to `base`; `where` names it in messages."""
    spec, tasks = parse_suite(data, where, problems)
    loaded: dict[str, LoadedTask] = {}
    for name, task in tasks.items():
        primary = spec is not None and name == spec.primary
        result = _load_task(name, task, base, spec.seed if spec else 0, primary, problems)
        if result is not None:
            loaded[name] = result
    if spec is None or problems.errors:
        return None, loaded
    suite = Suite.of(
        loaded[spec.primary].task,
        [entry.task for name, entry in loaded.items() if name != spec.primary],
        name=spec.suite,
        goal=spec.goal,
        seed=spec.seed,
        defaults={"model": dict(spec.model), "train": dict(spec.train)},
        path=path,
    )
    return (without_overlap(suite) if spec.drop_overlap else suite), loaded


def without_overlap(suite: Suite) -> Suite:
    """The suite without those train rows whose inputs are a *select* or *report* row of another task that is scored.

    Scored is the primary, or with the goal `average` every task. A task's own overlap is left alone: it belongs to the data.
    """
    scored = [suite.primary] if suite.goal == "primary" else list(suite.tasks)
    codes = content_codes({(n, s): rows for n, task in suite.tasks.items() for s, rows in task.splits.items()})
    tasks: list[Task] = []
    for name, task in suite.tasks.items():
        seen = [
            codes[other, s] for other in scored if other != name for s in ("select", "report") if (other, s) in codes
        ]
        kept = (
            np.flatnonzero(~np.isin(codes[name, "train"], np.concatenate(seen))) if seen else np.arange(len(task.train))
        )
        if dropped := len(task.train) - len(kept):
            note = f"train: {dropped} rows left out, because they are select or report rows of another task"
            task = replace(task, splits={**task.splits, "train": task.train.take(kept)}, notes=(*task.notes, note))
        tasks.append(task)
    return Suite.of(
        tasks[0], tasks[1:], name=suite.name, goal=suite.goal, seed=suite.seed, defaults=suite.defaults, path=suite.path
    )


def _load_task(
    name: str, spec: TaskSpec, base: Path, seed: int, primary: bool, problems: Problems
) -> LoadedTask | None:
    before = len(problems.errors)
    tables: dict[str, Table] = {}
    reading: dict[str, Any] = {}
    with problems.catch(name):
        corner = catalog.ENTRIES[catalog.entry_name(spec.catalog)].corner if spec.catalog is not None else None
        if corner is not None:
            if spec.path is None:
                raise SettingsError("MultiMNIST is made from MNIST's idx files: say `path:` with their directory")
            tables = dict(multimnist_tables(base / Path(spec.path).expanduser(), corner, seed))
            spec = catalog.resolve(spec, base)
            reading = {"format": "idx"}
        elif spec.catalog is not None:
            spec = catalog.resolve(spec, base)
    for split, where in spec.splits.items() if not tables and len(problems.errors) == before else ():
        with problems.catch(name, split):
            tables[split], settings = _read_split(spec, where, base)
            if split == "train":
                reading = settings.model_dump(mode="json", exclude_defaults=True)
        if spec.hub is not None and split not in tables:
            break  # the hub retries for half a minute: ask it once, not once per split
    if "train" not in tables:
        return None
    loaded = build_task(name, spec, tables, seed=seed, primary=primary, problems=problems, reading=reading)
    # With a split unread the others could still show their faults, but the task would be another one than was asked for.
    return loaded if len(problems.errors) == before else None


def _read_split(spec: TaskSpec, split: SplitSpec, base: Path) -> tuple[Table, ReadSettings]:
    settings = spec.reading(split)
    if spec.hub is not None or spec.saved is not None:
        if split.file is None:
            raise SettingsError("with `hub:` or `saved:` a split is given by its name")
        if spec.hub is not None:
            return read_hub(*spec.hub_name, split.file, spec.revision), settings
        return read_saved(base / Path(str(spec.saved)).expanduser(), split.file), settings
    if split.image is not None:
        image, label = (base / Path(str(part)).expanduser() for part in (split.image, split.label))
        return read_idx(image, label), settings.model_copy(update={"format": "idx"})
    path = base / Path(str(split.file)).expanduser()
    format = settings.format or guess_format(path)
    return read_file(path, settings), settings.model_copy(update={"format": format})


def _memory_column(values: Any) -> pa.Array | np.ndarray:
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        return plain_column(values)
    array = values if isinstance(values, np.ndarray) else np.asarray(values) if hasattr(values, "__array__") else None
    if array is not None and array.dtype != object:
        return array if array.ndim > 1 else plain_column(pa.array(array))
    return json_column([None if _is_nan(value) else value for value in values])


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and value != value  # a DataFrame's "missing"
