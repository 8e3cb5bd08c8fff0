"""How well a model knows the truth of each row: the log-likelihood after one temperature.

The plain probability of the truth mixes being right with being sure: any training beside the primary makes a model less sure of
itself, and the probability falls though nothing became less right (`docs/log/2026-11-18-auto-measure.md`). One number, fitted to
the same rows, takes the sureness out. Each item's likelihood is bounded, so that no single row decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

from sidequest.tasks.task import Objective

COLDEST, HOTTEST = 0.2, 20.0  # temperatures
GUESS = 0.02  # of a distribution that knows nothing is mixed in: what bounds the log-likelihood from below
FARTHEST = 3.0  # standard deviations: what bounds it for values


@dataclass(frozen=True)
class Items:
    """What a model says of the items of some rows: of each row itself, of its words, or of its labels.

    logits: float64 [items, classes], −inf where an item lacks a choice; regression: the values [items]. truth: int64 [items];
    regression: float64. counts: items of each row, int64 [rows].
    """

    logits: np.ndarray
    truth: np.ndarray
    counts: np.ndarray


def joined(parts: Sequence[Items]) -> Items:
    """Rows one after another. Widths differ where rows have different numbers of choices."""
    logits = [part.logits for part in parts]
    if logits[0].ndim == 2:
        width = max(each.shape[1] for each in logits)
        logits = [np.pad(x, ((0, 0), (0, width - x.shape[1])), constant_values=-np.inf) for x in logits]
    return Items(
        np.concatenate(logits),
        np.concatenate([part.truth for part in parts]),
        np.concatenate([part.counts for part in parts]),
    )


def row_likelihood(items: Items, objective: Objective) -> np.ndarray:
    """The log-likelihood of the truth of each row, float64 [rows]: the mean over its items, 0 for a row without any."""
    values = _of_values(items) if objective == Objective.REGRESSION else _of_classes(items)
    row = np.repeat(np.arange(len(items.counts)), items.counts)
    return np.bincount(row, values, minlength=len(items.counts)) / np.maximum(items.counts, 1)


def _of_classes(items: Items) -> np.ndarray:
    if not len(items.truth):
        return np.zeros(0)
    each = np.arange(len(items.truth))

    def log_likelihood(inverse: float) -> np.ndarray:
        return log_softmax(items.logits * inverse, axis=1)[each, items.truth]

    bounds = (1 / HOTTEST, 1 / COLDEST)
    best = minimize_scalar(lambda inverse: -log_likelihood(inverse).mean(), bounds=bounds, method="bounded")
    classes = np.isfinite(items.logits).sum(axis=1)
    return np.log((1 - GUESS) * np.exp(log_likelihood(float(best.x))) + GUESS / classes)


def _of_values(items: Items) -> np.ndarray:
    """Normal, with the spread of the errors, up to a constant."""
    squares = (items.logits - items.truth) ** 2
    variance = max(float(squares.mean()), 1e-12) if len(squares) else 1.0
    return -0.5 * np.log(variance) - 0.5 * np.minimum(squares / variance, FARTHEST**2)
