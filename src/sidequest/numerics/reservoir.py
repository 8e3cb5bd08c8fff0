"""A uniform sample of a history of unknown length (Vitter's algorithm R), and rewards scaled by its percentiles (Eq. 6)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def add(values: Sequence[float], seen: int, value: float, capacity: int, rng: np.random.Generator) -> list[float]:
    """The sample after one more value: each of the `seen + 1` values so far is in it with equal probability.

    values: the sample before, at most `capacity` of the `seen` values. Draws from `rng` only once the sample is full.
    """
    if seen < capacity:
        return [*values, value]
    slot = int(rng.integers(seen + 1))
    if slot >= capacity:
        return list(values)
    return [*values[:slot], value, *values[slot + 1 :]]


def percentile_bounds(values: Sequence[float], low: float = 20.0, high: float = 80.0) -> tuple[float, float]:
    """q^low and q^high of the sample, by linear interpolation."""
    lower, upper = np.percentile(np.asarray(values, dtype=np.float64), [low, high])
    return float(lower), float(upper)


def scale(reward: float, lower: float, upper: float) -> float:
    """Eq. 6: [lower, upper] to [−1, 1], and what lies outside to the nearer end.

    When the two percentiles are equal (constant rewards, the first step) what equals them is 0: it says nothing.
    """
    if reward < lower:
        return -1.0
    if reward > upper:
        return 1.0
    if upper == lower:
        return 0.0
    # Halves first: upper − lower may overflow where each half does not.
    return float((reward / 2 - lower / 2) / (upper / 2 - lower / 2) * 2 - 1)
