"""A suite as a user makes it: tasks given in Python, read at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from sidequest.api.tasks import Task
from sidequest.errors import SettingsError
from sidequest.model_settings import ModelSettings
from sidequest.runs.setup import Setup
from sidequest.settings import TrainSettings
from sidequest.tasks import loading
from sidequest.tasks.check import check_suite
from sidequest.tasks.check_report import CheckReport
from sidequest.tasks.overlap import without_overlap
from sidequest.tasks.suite import Goal
from sidequest.tasks.suite import Suite as LoadedSuite
from sidequest.tasks.task import Task as LoadedTask

TaskLike = Task | LoadedTask | str | Path


class Suite(LoadedSuite):
    """One primary task and its candidates, ready to be compared on.

        suite = Suite(
            primary=Task("reviews", frame, text="body", label="stars"),
            candidates={"other": Task("other", "other.jsonl", text="body", label="stars"), "sst2": "glue/sst2"},
        )

    Args:
        name: What the suite is called, on the page and in the default run directory.
        primary: The task to improve: a `Task`, or what `Task` takes as data. With `tasks`, its name.
        candidates: The other tasks, by name, or as a list of `Task`s.
        goal: `primary` asks for the best score of the primary, `average` for the best mean over all tasks.
        seed: Decides carved splits and samples; it is not the training seed.
        model: Defaults of `compare` and `select` for the model, as in a suite file.
        train: Defaults of `compare` and `select` for the training, as in a suite file.
        drop_overlap: Leave out train rows that are also rows of the primary's select or report split.
        tasks: Tasks that have been read already, by name, instead of `candidates`.
        defaults: The sections `model` and `train` of a suite file, instead of the two arguments.
        path: The suite file that it was read from.
    """

    def __init__(
        self,
        name: str = "suite",
        tasks: Mapping[str, LoadedTask] | None = None,
        primary: str | TaskLike | None = None,
        goal: Goal = "primary",
        seed: int = 0,
        defaults: dict[str, dict[str, object]] | None = None,
        path: Path | None = None,
        *,
        candidates: Mapping[str, TaskLike] | Iterable[Task | LoadedTask] = (),
        model: Mapping[str, Any] | None = None,
        train: Mapping[str, Any] | None = None,
        drop_overlap: bool = False,
    ) -> None:
        if tasks is None:
            first, others = _loaded(primary, candidates, goal, seed)
            read = {task.name: task for task in (first, *others)}
            if len(read) < 1 + len(others):
                raise SettingsError(
                    f"suite {name!r}: two tasks have one name; names are {[t.name for t in (first, *others)]}"
                )
            if drop_overlap:
                scored = tuple(read) if goal == "average" else (first.name,)
                read = dict(without_overlap(read, scored, own=True))
            tasks, primary = read, first.name
            sections = {"model": model, "train": train}
            defaults = {key: dict(value) for key, value in sections.items() if value} or defaults
        if not isinstance(primary, str) or primary not in tasks:
            raise SettingsError(f"suite {name!r}: no task is called {primary!r}; tasks are {', '.join(tasks)}")
        if goal not in ("primary", "average"):
            raise SettingsError(f"suite {name!r}: goal is 'primary' or 'average', found {goal!r}")
        super().__init__(name, dict(tasks), primary, goal, seed, defaults, path)

    def check(self, *, rows: bool = False) -> CheckReport:
        """Problems of the data and facts about it, as `sidequest check` shows them.

        Args:
            rows: List every row that a warning is about, not only the first.
        """
        from sidequest.models.token_limit import section_limit

        return check_suite(self, rows=rows, limit=section_limit)


def load_suite(source: str | Path, primary: str | None = None) -> Suite:
    """A suite from a suite file, or an embedded one by name.

    Args:
        source: The path of a suite file, or `digits` or `planted`.
        primary: Another primary than the file says.
    """
    return as_suite(loading.load_suite(source, primary))


def as_suite(suite: str | Path | LoadedSuite) -> Suite:
    """Whatever names or is a suite, as one; anything else is refused."""
    if isinstance(suite, Suite):
        return suite
    if isinstance(suite, str | Path):
        return load_suite(suite)
    if isinstance(suite, LoadedSuite):
        return Suite(**{field.name: getattr(suite, field.name) for field in fields(LoadedSuite)})
    raise SettingsError(f"a suite is a Suite, a Setup or the path of a suite file, found {type(suite).__name__}")


def as_setup(
    suite: str | Path | LoadedSuite | Setup,
    model: str | Mapping[str, Any] | ModelSettings | None = None,
    train: Mapping[str, Any] | TrainSettings | None = None,
    *,
    allow_code: bool = False,
) -> Setup:
    """A suite with a model; a setup is taken as it is."""
    if not isinstance(suite, Setup):
        return Setup.of(as_suite(suite), model, train, allow_code=allow_code)
    if model is not None or train is not None:
        raise SettingsError("a setup has its model and training settings already; give a suite to choose others")
    return suite


def _loaded(
    primary: Any, candidates: Mapping[str, TaskLike] | Iterable[Task | LoadedTask], goal: str, seed: int
) -> tuple[LoadedTask, list[LoadedTask]]:
    if primary is None:
        raise SettingsError('a suite has a primary task: Suite(primary=Task("name", data, …), candidates={…})')
    named: dict[str | None, Any]
    if isinstance(candidates, Mapping):
        named = {str(key): value for key, value in candidates.items()}
    elif isinstance(candidates, str) or not isinstance(candidates, Iterable):
        raise SettingsError(f"candidates: tasks by name, or a list of tasks; found {candidates!r}")
    else:
        named = {_name_of(task): task for task in candidates}
    others = [_load(task, name, goal == "average", seed) for name, task in named.items()]
    return _load(primary, None, True, seed), others


def _name_of(task: Any) -> str:
    if not isinstance(task, Task | LoadedTask):
        raise SettingsError(
            f"candidates: a list holds tasks; found {task!r}. Give other data by name: candidates={{'name': …}}"
        )
    return task.name


def _load(given: Any, name: str | None, primary: bool, seed: int) -> LoadedTask:
    if isinstance(given, LoadedTask):
        if name is not None and given.name != name:
            raise SettingsError(
                f"candidates: the key {name!r} holds a task that is called {given.name!r}; use one name"
            )
        return given
    if not isinstance(given, Task):
        if name is None:
            name = Path(given).stem if isinstance(given, str | Path) else "primary"
        given = Task(name, given)
    if name is not None and given.name != name:
        raise SettingsError(f"candidates: the key {name!r} holds a task that is called {given.name!r}; use one name")
    return given.load(primary=primary, seed=seed)
