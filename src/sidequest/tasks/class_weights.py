"""How much rows of each class count in the loss, so that rare labels are learned too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from sidequest.errors import SettingsError, nearest
from sidequest.tasks.task import LABELLED, ClassWeights, Objective


def class_weights(
    given: Literal["balanced"] | Mapping[str, float], objective: Objective, labels: tuple[str, ...], target: Any
) -> ClassWeights:
    """A weight per class, or for several labels per row a pair (without the label, with it) per label.

    `balanced`: every class counts equally, as in scikit-learn; so do the rows with and without each label. A mapping gives
    classes (or rows that have a label) a weight, those that it leaves out count 1. Weights are scaled so that the mean row of
    train counts 1: what a task as a whole counts in a mixture is the recipe's business.
    """
    assert objective in LABELLED, "a spec without faults has class weights for labelled tasks only"
    chosen = given if isinstance(given, Mapping) else {}
    if unknown := [label for label in chosen if label not in labels]:
        raise SettingsError(f"class_weights: no label is called {unknown[0]!r}. {nearest(unknown[0], labels)}")
    if objective is Objective.MULTILABEL:
        having = np.asarray(target).sum(axis=0, dtype=np.int64)
        counts = np.stack([len(target) - having, having], axis=1)
        wanted = [(1.0, chosen.get(label, 1.0)) for label in labels]
        pairs = [_scaled(given, each, weights) for each, weights in zip(counts, wanted, strict=True)]
        return tuple((without, with_it) for without, with_it in pairs)
    flat = target.flatten() if objective is Objective.TAGGING else target
    counts = np.bincount(np.asarray(flat, dtype=np.int64), minlength=len(labels))
    return tuple(_scaled(given, counts, [chosen.get(label, 1.0) for label in labels]))


def _scaled(given: object, counts: np.ndarray, wanted: Sequence[float]) -> list[float]:
    """Weights whose mean over the counted rows is 1."""
    weights = 1 / np.maximum(counts, 1) if given == "balanced" else np.asarray(wanted)
    return (weights * (counts.sum() / (counts @ weights))).tolist()
