"""What differences between seeds are worth: intervals, paired comparisons, verdicts.

Every interval here is two-sided with coverage `CONFIDENCE`. A verdict of `helps` or `hurts` is a paired t-test on the
same seeds: when there is no effect, each of the two appears in at most 2.5 % of comparisons (before a correction for
many of them).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Interval:
    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Paired:
    """Differences `a − b` over the same seeds.

    low, high: Student's t interval. boot_low, boot_high: percentile bootstrap of the mean. effect: mean difference in units of
    the differences' deviation (Cohen's d for paired samples). p: two-sided t-test of no difference.
    """

    mean: float
    low: float
    high: float
    boot_low: float
    boot_high: float
    effect: float
    p: float
    verdict: str


def mean_interval(values: Sequence[float]) -> Interval:
    """Mean with Student's t interval; with one value, or none that differ, the interval says what little is known."""
    sample = np.asarray(values, dtype=float)
    mean = float(sample.mean())
    if len(sample) < 2:
        return Interval(mean, -np.inf, np.inf)
    half = float(stats.t.ppf((1 + CONFIDENCE) / 2, len(sample) - 1) * sample.std(ddof=1) / np.sqrt(len(sample)))
    return Interval(mean, mean - half, mean + half)


def bootstrap_interval(values: Sequence[float], *, draws: int = 10_000, seed: int = 0) -> Interval:
    """Mean with a percentile bootstrap interval."""
    sample = np.asarray(values, dtype=float)
    rng = np.random.default_rng(seed)
    means = sample[rng.integers(0, len(sample), (draws, len(sample)))].mean(1)
    low, high = np.quantile(means, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return Interval(float(sample.mean()), float(low), float(high))


def paired_comparison(a: Sequence[float], b: Sequence[float], *, seed: int = 0) -> Paired:
    """Compare two methods on the same seeds, in the same order."""
    if len(a) != len(b):
        raise ValueError(f"paired samples have one length, found {len(a)} and {len(b)}")
    difference = np.asarray(a, dtype=float) - np.asarray(b, dtype=float)
    interval, boot = mean_interval(difference), bootstrap_interval(difference, seed=seed)
    deviation = float(difference.std(ddof=1)) if len(difference) > 1 else 0.0
    if deviation > 0:
        p = float(stats.ttest_1samp(difference, 0.0).pvalue)
        effect = interval.mean / deviation
    else:  # all seeds agree exactly: either identical methods, or too few seeds to know a spread
        p = 1.0 if interval.mean == 0 or len(difference) < 2 else 0.0
        effect = 0.0 if interval.mean == 0 else float(np.copysign(np.inf, interval.mean))
    return Paired(interval.mean, interval.low, interval.high, boot.low, boot.high, effect, p, verdict(interval.mean, p))


def verdict(difference: float, p: float) -> str:
    """In words; `p` may have been corrected for many comparisons."""
    if p < 1 - CONFIDENCE:
        return "helps" if difference > 0 else "hurts"
    return "no clear difference"


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down correction: p-values that may be read as if there had been one comparison."""
    p = np.asarray(p_values, dtype=float)
    order = np.argsort(p)
    corrected = np.minimum(1.0, np.maximum.accumulate((len(p) - np.arange(len(p))) * p[order]))
    out = np.empty_like(p)
    out[order] = corrected
    return out.tolist()


def probability_best(scores: Mapping[str, Sequence[float]], *, draws: int = 10_000, seed: int = 0) -> dict[str, float]:
    """How often each method has the highest mean when seeds are drawn anew (the same draw for all; ties share)."""
    names = list(scores)
    table = np.array([scores[name] for name in names], dtype=float)  # [methods, seeds]
    rng = np.random.default_rng(seed)
    means = table[:, rng.integers(0, table.shape[1], (draws, table.shape[1]))].mean(2)  # [methods, draws]
    best = means == means.max(0)
    return dict(zip(names, (best / best.sum(0)).mean(1).tolist(), strict=True))
