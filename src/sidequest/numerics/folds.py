"""Which samples a choice between models is made on, and which of them are held out in turn."""

from __future__ import annotations

import numpy as np

from sidequest.numerics.likelihoods import Loss

FOLDS = 5
# Samples that a choice is made on, at most: with more of them it matters less and costs more.
CHOOSING_ROWS = 1_000


def choosing_folds(loss: Loss, seed: int = 0) -> tuple[np.ndarray, list[np.ndarray]]:
    """The samples that choices between models are made on, and the parts of them that are held out in turn."""
    samples = sample_of(len(loss), seed)
    return samples, [samples[part] for part in folds_of(loss.strata[samples], None, seed)]


def sample_of(n: int, seed: int, groups: np.ndarray | None = None) -> np.ndarray:
    """Positions of at most CHOOSING_ROWS samples, in order; whole groups where there are groups."""
    if n <= CHOOSING_ROWS:
        return np.arange(n)
    rng = np.random.default_rng(seed)
    if groups is None:
        return np.sort(rng.choice(n, CHOOSING_ROWS, replace=False))
    _, number, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    order = rng.permutation(len(sizes))
    fits = np.cumsum(sizes[order]) <= CHOOSING_ROWS
    fits[0] = True
    chosen = np.zeros(len(sizes), dtype=bool)
    chosen[order[fits]] = True
    return np.flatnonzero(chosen[number])[:CHOOSING_ROWS]


def folds_of(strata: np.ndarray, groups: np.ndarray | None, seed: int) -> list[np.ndarray]:
    """Positions per fold: every stratum spread over all folds as evenly as can be, or whole groups at random."""
    rng = np.random.default_rng([seed, 1])
    if groups is not None:
        _, number = np.unique(groups, return_inverse=True)
        count = int(number.max(initial=-1)) + 1
        fold = (rng.permutation(count) % FOLDS)[number]
    else:
        shuffled = rng.permutation(len(strata))
        order = shuffled[np.argsort(strata[shuffled], kind="stable")]
        fold = np.empty(len(strata), dtype=np.int64)
        fold[order] = np.arange(len(strata)) % FOLDS
    return [part for number in range(FOLDS) if len(part := np.flatnonzero(fold == number))]
