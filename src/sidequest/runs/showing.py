"""Rows of a recipe for people to judge: what was chosen of each auxiliary task, and what was not, beside the primary's own.

A method that ranks rows leaves the best and the worst of each task in `evidence["ranked"]`; of any other recipe with instance
subsets (`gradts-fg`) chosen and other rows are shown, evenly spread over the task. Only *train* is looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from sidequest.errors import RunMismatch
from sidequest.recipe import Recipe
from sidequest.records.evidence import RankedRows, RowRankings
from sidequest.tasks.examples import Examples
from sidequest.tasks.suite import Suite
from sidequest.tasks.task import Objective, Task

SHAPE_ONLY = "image"  # a column without text: its shape is shown


@dataclass(frozen=True)
class ShownRow:
    """id: in the task's train split. texts: by column, whole and as they are: who shows them cuts and escapes them.

    target: the label's name, the number, or the tags. score: of the ranking, where there is one. taken: by the recipe.
    """

    id: int
    texts: dict[str, str]
    target: str
    score: float | None
    taken: bool


@dataclass(frozen=True)
class ShownGroup:
    """title: "best ranked", "worst ranked", "taken", "not taken", or "examples" where the recipe takes all rows."""

    title: str
    rows: list[ShownRow]


@dataclass(frozen=True)
class ShownTask:
    """rows: of the train split. taken: how many of them the recipe trains on."""

    name: str
    primary: bool
    rows: int
    taken: int
    groups: list[ShownGroup]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def examples_of(suite: Suite, recipe: Recipe, count: int = 3) -> list[ShownTask]:
    """The primary first, then every task that the recipe ranked or trains on, by name; up to `count` rows in each group."""
    ranking = RowRankings.find(recipe.evidence)
    ranked = {} if ranking is None else ranking.ranked
    names = sorted({*ranked, *recipe.auxiliaries} - {recipe.primary})
    return [_shown(_task(suite, name), recipe, ranked.get(name), count) for name in (recipe.primary, *names)]


def _task(suite: Suite, name: str) -> Task:
    if name not in suite.tasks:
        raise RunMismatch(f"the recipe speaks of task {name!r}, which the suite lacks; it has {', '.join(suite.tasks)}")
    return suite.tasks[name]


def _shown(task: Task, recipe: Recipe, ranking: RankedRows | None, count: int) -> ShownTask:
    ids = taken_ids(task, recipe)
    groups: list[tuple[str, Sequence[tuple[int, float | None]]]] = []
    if ranking is not None:
        groups = [("best ranked", ranking.best[:count]), ("worst ranked", ranking.worst[:count])]
    elif 0 < len(ids) < len(task.train):
        others = np.setdiff1d(task.train.ids, ids)
        groups = [("taken", _spread(ids, count)), ("not taken", _spread(others, count))]
    else:
        groups = [("examples", _spread(task.train.ids, count))]
    taken = set(ids.tolist())
    shown = [ShownGroup(title, _rows(task, rows, taken)) for title, rows in groups if rows]
    return ShownTask(task.name, task.name == recipe.primary, len(task.train), len(taken), shown)


def taken_ids(task: Task, recipe: Recipe) -> np.ndarray:
    """Ids of the task's train rows that some phase trains on, in order."""
    parts = [
        phase.subsets[task.name].ids if task.name in phase.subsets else task.train.ids
        for phase in recipe.phases
        if task.name in phase.tasks
    ]
    return np.unique(np.concatenate(parts)) if parts else np.zeros(0, dtype=np.int64)


def _spread(ids: np.ndarray, count: int) -> list[tuple[int, float | None]]:
    if not len(ids):
        return []
    positions = np.unique(np.linspace(0, len(ids) - 1, min(count, len(ids))).round().astype(int))
    return [(int(ids[i]), None) for i in positions]


def _rows(task: Task, rows: Sequence[tuple[int, float | None]], taken: set[int]) -> list[ShownRow]:
    try:
        examples = task.train.with_ids(np.array([row for row, _ in rows], dtype=np.int64))
    except KeyError as error:
        raise RunMismatch(f"task {task.name!r}: the recipe names rows that the train split lacks: {error}") from None
    return [
        ShownRow(row, _texts(examples, at), _target(task, examples, at), score, row in taken)
        for at, (row, score) in enumerate(rows)
    ]


def _texts(rows: Examples, at: int) -> dict[str, str]:
    texts = {}
    for name, column in rows.columns.items():
        if name == SHAPE_ONLY:
            texts[name] = " × ".join(str(side) for side in column.shape[1:])
            continue
        value = column[at].as_py()
        texts[name] = value if isinstance(value, str) else (" " if name == "tokens" else " | ").join(value)
    return texts


def _target(task: Task, rows: Examples, at: int) -> str:
    if rows.target is None:
        return ""
    if task.objective == Objective.TAGGING:
        return " ".join(task.labels[tag] for tag in rows.target[at].as_py())
    if task.objective == Objective.CLASSIFICATION:
        return task.labels[int(rows.target[at])]
    if task.objective == Objective.MULTILABEL:
        return ", ".join(task.labels[label] for label in np.flatnonzero(rows.target[at])) or "no label"
    return f"{float(rows.target[at]):g}"
