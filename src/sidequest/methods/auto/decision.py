"""From probabilities of the truth to gains over the primary alone. Pure functions: how arms were trained is not known here.

Branches of one trunk are paired: the same start, the same rows of the primary in the same order, the same rows of *select*. What
is left between two of them is noise of single rows, which shows in the spread over rows, and noise that all rows share, which
does not; runs on digits differed by up to one and a half times what their rows say.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

RUNS_OVER_ROWS = 1.5
SMALLEST_ERROR = 1e-6


@dataclass(frozen=True)
class Gain:
    """In the probability of the truth, over the primary alone. error: its standard error."""

    mean: float
    error: float

    @property
    def z(self) -> float:
        return self.mean / self.error


def gain(arm: np.ndarray, alone: np.ndarray) -> Gain:
    """arm, alone: the probability of the truth, float64 [seeds, rows]."""
    difference = (arm - alone).mean(axis=0)
    spread = difference.std(ddof=1) / math.sqrt(len(difference)) if len(difference) > 1 else 0.0
    return Gain(float(difference.mean()), max(RUNS_OVER_ROWS * float(spread), SMALLEST_ERROR))


def combined(gains: Sequence[Gain]) -> Gain:
    """Of several rounds, weighted by what each is worth."""
    weights = np.array([1 / one.error**2 for one in gains])
    mean = float(weights @ [one.mean for one in gains] / weights.sum())
    return Gain(mean, float(weights.sum() ** -0.5))


def least_z(tried: int, doubt: float) -> float:
    """What the best of `tried` candidates that do nothing exceeds with a probability of about `doubt`."""
    return float(ndtri(1 - doubt / max(tried, 1)))


def chosen(gains: Mapping[str, Gain], tried: int, doubt: float, keep: float, most: int) -> list[str]:
    """Nothing, unless one stands out; then also the others that are above 0 by a standard error and gain at least `keep` of the
    best gain. Best first."""
    standing = [name for name, one in gains.items() if one.z >= least_z(tried, doubt)]
    if not standing:
        return []
    best = max(gains[name].mean for name in standing)
    ranked = sorted(gains, key=lambda name: (-gains[name].mean, name))
    return [name for name in ranked if gains[name].z >= 1 and gains[name].mean >= keep * best][:most]
