"""The largest of many numbers, in order, without sorting the others."""

from __future__ import annotations

import numpy as np


def top_positions(scores: np.ndarray, count: int) -> np.ndarray:
    """Positions of the `count` largest scores, the largest first; of equal ones the earlier position. NaN is never among them.

    scores: float [n]. Returns int64 [min(count, numbers that are not NaN)].
    """
    known = np.flatnonzero(~np.isnan(scores))
    values = scores[known]
    if count <= 0:
        return known[:0]
    if count < len(known):
        threshold = np.partition(values, len(values) - count)[len(values) - count]
        above = np.flatnonzero(values > threshold)
        equal = np.flatnonzero(values == threshold)[: count - len(above)]
        chosen = np.union1d(above, equal)
        known, values = known[chosen], values[chosen]
    return known[np.argsort(-values, kind="stable")]
