"""Kendall's τ-b of many vectors against one reference, without a loop over the vectors."""

from __future__ import annotations

import numpy as np

# Vectors are compared in blocks of about this many numbers: many enough that Python's own time vanishes, few enough that memory
# stays at a few megabytes however many vectors there are.
BLOCK = 1 << 19
# Comparisons are added up in single bytes, which cannot hold more.
MOST = 255


def kendall_tau(vectors: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """τ-b of each vector with the reference; NaN where one of the two is constant.

    vectors: [n, m]; reference: [m]. Returns float64 [n].

    τ-b = (C − D) / √((P − T_x)(P − T_y)) with P = m(m−1)/2 pairs, C concordant and D discordant ones, and T the pairs tied within
    a vector. Pairs are concordant, discordant or tied in one or both, so C − D = 2C − (P − T_x − T_y + T_xy), and C alone has to
    be counted: with the columns in the reference's order it is how often a later rank is greater.
    """
    vectors, reference = np.asarray(vectors), np.asarray(reference)
    if vectors.ndim != 2 or vectors.shape[1:] != reference.shape:
        raise ValueError(f"vectors [n, m] and a reference [m] were expected, found {vectors.shape}, {reference.shape}")
    if not (np.isfinite(vectors).all() and np.isfinite(reference).all()):
        raise ValueError("Kendall's τ needs finite numbers")
    n, m = vectors.shape
    pairs = m * (m - 1) // 2
    order = np.argsort(reference, kind="stable")
    y = dense_ranks(reference[None, order])[0]
    untied_from = np.searchsorted(y, y, side="right")  # [m]: the first column with a greater reference
    tied_y = tied_pairs(y[None])[0]
    tau = np.empty(n)
    rows = max(1, BLOCK // max(1, m))
    for start in range(0, n, rows):
        x = dense_ranks(vectors[start : start + rows, order])
        tied_x = tied_pairs(x)
        tied_both = tied_pairs(dense_ranks(x.astype(np.int64) * m + y)) if tied_y else 0
        balance = 2 * _concordant(x, untied_from) - (pairs - tied_x - tied_y + tied_both)
        with np.errstate(divide="ignore", invalid="ignore"):
            found = balance / np.sqrt((pairs - tied_x) * float(pairs - tied_y))
        tau[start : start + rows] = np.where((tied_x < pairs) & (tied_y < pairs), found, np.nan)
    return tau


def kendall_matrix(vectors: np.ndarray) -> np.ndarray:
    """τ-b of every vector with every other: [n, m] → float64 [n, n]."""
    return np.stack([kendall_tau(vectors, vector) for vector in vectors])


def dense_ranks(vectors: np.ndarray) -> np.ndarray:
    """Ranks from 0 within each vector, equal for equal numbers, in the smallest unsigned type: [n, m] → [n, m]."""
    order = np.argsort(vectors, axis=1)
    ordered = np.take_along_axis(vectors, order, axis=1)
    steps = np.zeros(vectors.shape, dtype=np.min_scalar_type(max(vectors.shape[1], 1)))
    np.cumsum(ordered[:, 1:] != ordered[:, :-1], axis=1, out=steps[:, 1:])
    ranks = np.empty_like(steps)
    np.put_along_axis(ranks, order, steps, axis=1)
    return ranks


def tied_pairs(ranks: np.ndarray) -> np.ndarray:
    """How many pairs of equal ranks each vector has; ranks are dense: [n, m] → int64 [n]."""
    pairs = np.zeros(len(ranks), dtype=np.int64)
    tied = np.flatnonzero(
        ranks.max(axis=1, initial=0) != ranks.shape[1] - 1
    )  # few, as a rule: others have m different ranks
    ordered = np.sort(ranks[tied], axis=1)
    place = np.arange(ranks.shape[1])
    new = np.ones(ordered.shape, dtype=bool)
    new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    # The k-th of t equal ranks (k from 0) is tied with k earlier ones; their sum is t(t−1)/2.
    first = np.maximum.accumulate(np.where(new, place, 0), axis=1)
    pairs[tied] = (place - first).sum(axis=1)
    return pairs


def _concordant(ranks: np.ndarray, untied_from: np.ndarray) -> np.ndarray:
    """Pairs of columns (i, j), j ≥ untied_from[i], with a greater rank at j: [n, m] → int64 [n]."""
    columns = np.ascontiguousarray(ranks.T)  # [m, n]: comparisons run along the rows
    total = np.zeros(len(ranks), dtype=np.int64)
    for column, first in zip(columns, untied_from, strict=True):
        for start in range(first, len(columns), MOST):
            greater = columns[start : start + MOST] > column
            total += np.add.reduce(greater.view(np.uint8), axis=0, dtype=np.uint8)
    return total
