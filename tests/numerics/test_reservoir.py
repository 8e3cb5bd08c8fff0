"""The reservoir is a uniform sample of the whole history, and scaling is Eq. 6."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from sidequest.numerics.reservoir import add, percentile_bounds, scale


def fill(values, capacity, rng):
    sample = []
    for seen, value in enumerate(values):
        sample = add(sample, seen, value, capacity, rng)
    return sample


def test_holds_the_whole_history_while_it_fits():
    rng = np.random.default_rng(0)
    before = rng.bit_generator.state
    assert fill(range(5), 5, rng) == [0, 1, 2, 3, 4]
    assert rng.bit_generator.state == before


@pytest.mark.statistical
def test_every_value_is_kept_equally_often():
    """Chi-square over 40 values, 10 kept, 4,000 runs; false-alarm rate 1e-4."""
    rng, kept = np.random.default_rng(1), np.zeros(40)
    for _ in range(4000):
        sample = fill(range(40), 10, rng)
        assert len(sample) == len(set(sample)) == 10
        kept[sample] += 1
    # Within a run exactly 10 are kept: the variance of a count is that of a draw without replacement.
    statistic = ((kept - 1000) ** 2 / (1000 * 0.75)).sum() * 39 / 40
    assert statistic < stats.chi2.ppf(1 - 1e-4, 39)


def test_does_not_forget_the_past_as_a_window_would():
    """After a jump from 0 to 1 in the middle of the history, about half of the sample is old."""
    sample = fill([0.0] * 5000 + [1.0] * 5000, 500, np.random.default_rng(2))
    assert 0.4 < np.mean(sample) < 0.6


def test_scaling_is_equation_6():
    values = np.random.default_rng(3).normal(size=301)
    lower, upper = percentile_bounds(values)
    assert (lower, upper) == (np.quantile(values, 0.2), np.quantile(values, 0.8))
    for value in values:
        expected = -1 if value < lower else 1 if value > upper else 2 * (value - lower) / (upper - lower) - 1
        assert scale(value, lower, upper) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("reward", "scaled"), [(3.0, 0.0), (2.9, -1.0), (3.1, 1.0)])
def test_equal_percentiles_divide_by_nothing(reward, scaled):
    assert scale(reward, 3.0, 3.0) == scaled


def test_percentiles_as_far_apart_as_floats_go():
    assert scale(0.0, -1.7e308, 1.7e308) == pytest.approx(0.0)
    assert scale(1.7e308, -1.7e308, 1.7e308) == pytest.approx(1.0)
