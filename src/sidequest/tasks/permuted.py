"""A task with shuffled targets: a control that shows what *any* training beside the primary does. Never exported."""

from __future__ import annotations

import dataclasses

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sidequest.tasks.examples import Examples
from sidequest.tasks.splits import generator
from sidequest.tasks.task import Objective, Task


def permuted(task: Task, seed: int) -> Task:
    """The same rows and the same targets, but whose target is whose is random: a function of the seed and the task's name."""
    train = shuffled(task.train, task.objective, generator(seed, task.name, "permuted"))
    return dataclasses.replace(task, splits={**task.splits, "train": train})


def shuffled(rows: Examples, objective: Objective, rng: np.random.Generator) -> Examples:
    """The same rows with permuted targets."""
    if rows.target is None:
        raise ValueError("these rows have no targets to shuffle")
    return dataclasses.replace(rows, target=_shuffled(rows, objective, rng))


def _shuffled(train: Examples, objective: Objective, rng: np.random.Generator) -> np.ndarray | pa.Array:
    if objective == Objective.TAGGING:  # among all words: a sentence keeps its length
        lengths = np.asarray(pc.list_value_length(train.target), dtype=np.int64)
        flat = pc.list_flatten(train.target)
        offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]), type=pa.int32())
        return pa.ListArray.from_arrays(offsets, flat.take(pa.array(rng.permutation(len(flat)))))
    target = np.asarray(train.target)
    if objective != Objective.CHOICE:
        return target[rng.permutation(len(target))]
    # A row keeps a target that it has: rows change places only with rows of as many choices.
    choices = np.asarray(pc.list_value_length(train.columns["choices"]), dtype=np.int64)
    order = np.arange(len(target))
    for count in np.unique(choices):
        rows = np.flatnonzero(choices == count)
        order[rows] = rng.permutation(rows)
    return target[order]
