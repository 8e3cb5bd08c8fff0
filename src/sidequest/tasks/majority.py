"""The best constant answer: what a model must beat to have learned anything from its inputs."""

from __future__ import annotations

import numpy as np

from sidequest.tasks.metrics import compute
from sidequest.tasks.task import Objective, Task


def majority_score(task: Task, split: str = "report") -> float | None:
    """The task's metric on a split when every row gets the same answer, chosen on train; None where there is no such thing.

    Classification: the most frequent class. Multi-label: of the most frequent label set and the m most frequent labels, for every
    m, what scores best on train; "never any label", the most frequent decision, would be too easy to beat.
    """
    if split not in task.splits or task.objective not in (Objective.CLASSIFICATION, Objective.MULTILABEL):
        return None
    target = np.asarray(task.splits[split].target)
    if task.objective is Objective.CLASSIFICATION:
        frequent = int(np.bincount(np.asarray(task.train.target)).argmax())
        return compute(task.metric, np.full(len(target), frequent), target, task.labels)
    return _constant_score(task, _best_label_set(task), target)


def _best_label_set(task: Task) -> np.ndarray:
    """uint8 [labels]."""
    train = np.asarray(task.train.target)
    sets, counts = np.unique(train, axis=0, return_counts=True)
    by_frequency = np.argsort(-train.sum(axis=0), kind="stable")
    candidates = [sets[counts.argmax()]]
    for most in range(1, train.shape[1] + 1):
        labels = np.zeros(train.shape[1], dtype=train.dtype)
        labels[by_frequency[:most]] = 1
        candidates.append(labels)
    return max(candidates, key=lambda labels: _constant_score(task, labels, train))


def _constant_score(task: Task, labels: np.ndarray, target: np.ndarray) -> float:
    return compute(task.metric, np.broadcast_to(labels, target.shape), target, task.labels)
