"""From a suite file or a name to tasks. All faults of a suite are raised together, one line each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sidequest.errors import SettingsError, unknown
from sidequest.paths import input_file, user_path, what_is_at
from sidequest.settings import parse
from sidequest.tasks import catalog
from sidequest.tasks.building import LoadedTask, build_task
from sidequest.tasks.multimnist import multimnist_tables
from sidequest.tasks.overlap import without_overlap
from sidequest.tasks.problems import Problems
from sidequest.tasks.readers import ReadSettings, Table, guess_format, read_file, read_hub, read_idx, read_saved
from sidequest.tasks.spec import SplitSpec, TaskSpec, parse_suite
from sidequest.tasks.suite import Suite
from sidequest.tasks.suite_file import read_suite_file
from sidequest.tasks.task import Task

Read = Callable[[Path, ReadSettings], Table]
EMBEDDED = ("digits", "planted")


@dataclass(frozen=True)
class LoadedSuite:
    """What could be read of a suite file: the suite, or None if something is wrong with it; and the tasks that are sound.

    tables: for each task the table that the rows of each split came from.
    scored: the tasks by which the suite is judged, as far as they could be read.
    """

    suite: Suite | None
    tasks: Mapping[str, Task]
    tables: Mapping[str, Mapping[str, Table]]
    scored: tuple[str, ...]
    model: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, suite: Suite) -> LoadedSuite:
        scored = (suite.primary,) if suite.goal == "primary" else tuple(suite.tasks)
        return cls(suite, suite.tasks, {}, scored, (suite.defaults or {}).get("model", {}))


def load_suite(source: str | Path, primary: str | None = None) -> Suite:
    """A suite from a YAML file, or an embedded one by name. primary: another one than the file says."""
    problems = Problems()
    loaded = load_suite_with_problems(source, problems, primary)
    problems.raise_errors()
    assert loaded.suite is not None, "a suite without errors is a suite"
    return loaded.suite


def load_suite_with_problems(source: str | Path, problems: Problems, primary: str | None = None) -> LoadedSuite:
    """Like `load_suite`, but faults go to `problems`; the tasks that could be read are returned even if the suite could not."""
    if not str(source):
        raise SettingsError("a suite is a file, or digits or planted; found an empty name")
    path = user_path(source)
    if what_is_at(path) == "nothing":
        suite = _embedded(str(source))
        return LoadedSuite.of(suite if primary is None else suite.with_primary(primary))
    with problems.catch():
        data = read_suite_file(path)
        if primary is not None:
            data["primary"] = primary
        return load_suite_data(data, path.parent, str(path), problems, path)
    return LoadedSuite(None, {}, {}, ())


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
    data: Mapping[str, Any],
    base: Path,
    where: str,
    problems: Problems,
    path: Path | None = None,
    read: Read = read_file,
) -> LoadedSuite:
    """A suite from the content of a suite file, whose paths are relative to `base`; `where` names it in messages.

    read: reads a file; another than `read_file` can know some tables already.
    """
    spec, written = parse_suite(data, where, problems)
    loaded: dict[str, LoadedTask] = {}
    for name, task in written.items():
        primary = spec is not None and name == spec.primary
        result = _load_task(name, task, base, spec.seed if spec else 0, primary, problems, read)
        if result is not None:
            loaded[name] = result
    tasks = {name: entry.task for name, entry in loaded.items()}
    tables = {name: entry.tables for name, entry in loaded.items()}
    if spec is None:
        return LoadedSuite(None, tasks, tables, ())
    scored = tuple(name for name in tasks if spec.goal == "average" or name == spec.primary)
    if spec.drop_overlap:
        with problems.catch():
            tasks = without_overlap(tasks, scored, own=spec.drop_overlap is True)
    if problems.errors:
        return LoadedSuite(None, tasks, tables, scored, spec.model)
    suite = Suite.of(
        tasks[spec.primary],
        [task for name, task in tasks.items() if name != spec.primary],
        name=spec.suite,
        goal=spec.goal,
        seed=spec.seed,
        defaults={"model": dict(spec.model), "train": dict(spec.train)},
        path=path,
    )
    return LoadedSuite(suite, tasks, tables, scored, spec.model)


def _load_task(
    name: str, spec: TaskSpec, base: Path, seed: int, primary: bool, problems: Problems, read: Read = read_file
) -> LoadedTask | None:
    before = len(problems.errors)
    tables: dict[str, Table] = {}
    reading: dict[str, Any] = {}
    with problems.catch(name):
        corner = catalog.ENTRIES[catalog.entry_name(spec.catalog)].corner if spec.catalog is not None else None
        if corner is not None:
            if spec.path is None:
                raise SettingsError("MultiMNIST is made from MNIST's idx files: say `path:` with their directory")
            tables = dict(multimnist_tables(base / user_path(spec.path, "path"), corner, seed))
            spec = catalog.resolve(spec, base)
            reading = {"format": "idx"}
        elif spec.catalog is not None:
            spec = catalog.resolve(spec, base)
    if len(problems.errors) > before:
        return None
    if not tables:
        tables, reading = _read_splits(name, spec, base, problems, read)
    if "train" not in tables:
        return None
    loaded = build_task(name, spec, tables, seed=seed, primary=primary, problems=problems, reading=reading)
    # With a split unread the others could still show their faults, but the task would be another one than was asked for.
    return loaded if len(problems.errors) == before else None


def _read_splits(
    name: str, spec: TaskSpec, base: Path, problems: Problems, read: Read
) -> tuple[dict[str, Table], dict[str, Any]]:
    """The tables of the splits that can be read, and how train was read."""
    tables: dict[str, Table] = {}
    reading: dict[str, Any] = {}
    for split, where in spec.splits.items():
        with problems.catch(name, split):
            tables[split], settings = _read_split(spec, where, base, read)
            if split == "train":
                reading = settings.model_dump(mode="json", exclude_defaults=True)
        if spec.hub is not None and split not in tables:
            break  # the hub retries for half a minute: ask it once, not once per split
    return tables, reading


def _read_split(spec: TaskSpec, split: SplitSpec, base: Path, read: Read) -> tuple[Table, ReadSettings]:
    settings = spec.reading(split)
    if spec.hub is not None or spec.saved is not None:
        if split.file is None:
            raise SettingsError("with `hub:` or `saved:` a split is given by its name")
        if spec.hub is not None:
            return read_hub(*spec.hub_name, split.file, spec.revision), settings
        return read_saved(base / user_path(str(spec.saved), "saved"), split.file), settings
    if split.image is not None:
        image, label = (base / user_path(str(part)) for part in (split.image, split.label))
        return read_idx(image, label), settings.model_copy(update={"format": "idx"})
    path = base / user_path(str(split.file))
    if what_is_at(path) == "other":
        input_file(path, "a data file")
    format = settings.format or guess_format(path)
    return read(path, settings), settings.model_copy(update={"format": format})
