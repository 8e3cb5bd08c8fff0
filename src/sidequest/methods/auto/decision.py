"""From what runs know of the truth to gains over the primary alone. Pure functions: how arms were trained is not known here.

Two kinds of noise stand between a gain that was seen and one that is there. *select* is a sample of rows; that shows in the
spread of the difference over rows, and further runs do not lessen it. Runs differ by their seeds, in a way that all rows share;
that shows only between runs of one arm. There are few of those, so their spread is pooled over arms and held up by a prior.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

# Before any two runs of one arm were seen, a run is believed to differ from the next by as much as rows say, as surely as three
# runs would tell.
RUNS_OVER_ROWS = 1.0
BELIEF = 2
SMALLEST_ERROR = 0.001  # nats: less is no difference to anyone


@dataclass(frozen=True)
class Gain:
    """In the log-likelihood of the truth, over the primary alone. error: its standard error."""

    mean: float
    error: float

    @property
    def z(self) -> float:
        return self.mean / self.error


def gains(runs: Mapping[str, np.ndarray], alone: str) -> dict[str, Gain]:
    """runs: by arm, float64 [seeds, rows]; all arms have the same rows."""
    between = run_variance(runs, alone)
    baseline = runs[alone]
    return {
        name: Gain(
            float((arm.mean(0) - baseline.mean(0)).mean()),
            math.sqrt(
                _row_error(arm, baseline) ** 2 + between * (1 / len(arm) + 1 / len(baseline)) + SMALLEST_ERROR**2
            ),
        )
        for name, arm in runs.items()
    }


def run_variance(runs: Mapping[str, np.ndarray], alone: str) -> float:
    """Of the mean over rows, between runs of one arm that differ by their seed."""
    errors = [_row_error(arm, runs[alone]) for name, arm in runs.items() if name != alone]
    believed = (RUNS_OVER_ROWS * float(np.median(errors))) ** 2 if errors else 0.0
    means = [arm.mean(axis=1) for arm in runs.values()]
    squares = sum(float(((each - each.mean()) ** 2).sum()) for each in means)
    return (BELIEF * believed + squares) / (BELIEF + sum(len(each) - 1 for each in means))


def _row_error(arm: np.ndarray, alone: np.ndarray) -> float:
    difference = arm.mean(axis=0) - alone.mean(axis=0)
    return float(difference.std(ddof=1)) / math.sqrt(len(difference)) if len(difference) > 1 else 0.0


def least_z(tried: int, doubt: float) -> float:
    """What the best of `tried` candidates that do nothing exceeds with a probability of about `doubt`."""
    return float(ndtri(1 - doubt / max(tried, 1)))


def chosen(found: Mapping[str, Gain], tried: int, doubt: float, keep: float, most: int) -> list[str]:
    """Nothing, unless one stands out; then also the others that are above 0 by a standard error and gain at least `keep` of the
    best gain. Best first."""
    standing = [name for name, one in found.items() if one.z >= least_z(tried, doubt)]
    if not standing:
        return []
    best = max(found[name].mean for name in standing)
    ranked = sorted(found, key=lambda name: (-found[name].mean, name))
    return [name for name in ranked if found[name].z >= 1 and found[name].mean >= keep * best][:most]
