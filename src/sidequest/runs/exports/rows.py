"""The rows of a recipe for other trainers, and how long to train on them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from sidequest.recipe import Phase, Recipe
from sidequest.settings import TrainSettings
from sidequest.tasks.examples import Examples
from sidequest.tasks.suite import Suite
from sidequest.tasks.task import Objective, Task


def epoch_rows(phase: Phase, suite: Suite, seed: int) -> dict[str, Examples]:
    """The rows of one epoch of a phase per task: the first of a seeded shuffle and, beyond one pass, of a new one.

    An epoch has the primary's rows once and of every other task as many as its share says.
    """
    anchor = suite.primary if phase.shares.get(suite.primary, 0) > 0 else phase.tasks[0]
    rows = {name: _chosen(suite.tasks[name], phase) for name in phase.tasks}
    unit = len(rows[anchor]) / phase.shares[anchor]
    return {
        name: _repeat(rows[name], round(unit * phase.shares[name]), [seed, i]) for i, name in enumerate(phase.tasks)
    }


def epochs_of(phase: Phase, suite: Suite, train: TrainSettings) -> float:
    """How many of these epochs the phase is long."""
    if phase.batches is None:
        return phase.epochs if phase.epochs is not None else train.epochs
    rows = sum(len(part) for part in epoch_rows(phase, suite, 0).values())
    return phase.batches * train.batch_size / rows


def seed_of(recipe: Recipe) -> int:
    return int(recipe.provenance.get("seed", 0))


def shares_of(phase: Phase) -> dict[str, float]:
    """Each task's part of the batches; together 1."""
    total = sum(phase.shares[name] for name in phase.tasks)
    return {name: phase.shares[name] / total for name in phase.tasks}


def weights_of(recipe: Recipe) -> dict[str, float]:
    """Loss weights other than 1, by task, over all phases."""
    return {name: weight for phase in recipe.phases for name, weight in phase.weights.items() if weight != 1}


def _chosen(task: Task, phase: Phase) -> Examples:
    subset = phase.subsets.get(task.name)
    return task.train if subset is None else task.train.with_ids(subset.ids)


def _repeat(rows: Examples, count: int, seed: list[int]) -> Examples:
    if count == len(rows):
        return rows
    rng = np.random.default_rng(seed)
    passes = [rng.permutation(len(rows)) for _ in range(-(-count // len(rows)))]
    return rows.take(np.concatenate([*passes, np.empty(0, dtype=np.int64)])[:count])


def plain_rows(task: Task, rows: Examples) -> Iterator[dict[str, Any]]:
    """Rows as dicts of plain values, labels by name."""
    columns = {name: _plain(column) for name, column in rows.columns.items()}
    for i in range(len(rows)):
        yield {
            "id": int(rows.ids[i]),
            **{name: column[i] for name, column in columns.items()},
            "label": _label(task, rows, i),
        }


def _plain(column: Any) -> list[Any]:
    return column.tolist() if isinstance(column, np.ndarray) else column.to_pylist()


def _label(task: Task, rows: Examples, i: int) -> Any:
    if rows.target is None:
        return None
    if task.objective == Objective.TAGGING:
        return [task.labels[tag] for tag in rows.target[i].as_py()]
    if task.objective == Objective.CLASSIFICATION:
        return task.labels[int(rows.target[i])]
    if task.objective == Objective.MULTILABEL:
        return [task.labels[label] for label in np.flatnonzero(rows.target[i])]
    return rows.target[i].item()
