"""Statistics against scipy, and coverage by simulation."""

import math

import numpy as np
import pytest
from scipy import stats

from sidequest.numerics.statistics import (
    bootstrap_interval,
    holm,
    mean_interval,
    paired_comparison,
    probability_best,
    seeds_and_rows,
    verdict,
)


@pytest.fixture
def rng():
    return np.random.default_rng(7)


@pytest.mark.parametrize("n", [2, 5, 30])
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_mean_interval_is_students(rng, n, level):
    values = rng.normal(3, 2, n)
    found = mean_interval(values, level)
    low, high = stats.t.interval(level, n - 1, loc=values.mean(), scale=stats.sem(values))
    np.testing.assert_allclose([found.mean, found.low, found.high], [values.mean(), low, high])


def test_paired_comparison_is_the_paired_t_test(rng):
    ours, baseline = rng.normal(1, 1, 8), rng.normal(0, 1, 8)
    found = paired_comparison(ours, baseline)
    expected = stats.ttest_rel(ours, baseline)
    interval = expected.confidence_interval(0.95)
    np.testing.assert_allclose([found.p_value, found.low, found.high], [expected.pvalue, interval.low, interval.high])


def test_effect_size_is_unbiased_for_normal_differences(rng):
    draws = rng.normal(0.8, 1, (1500, 4))
    found = [paired_comparison(row, np.zeros(4), resamples=1).effect_size for row in draws]
    assert np.mean(found) == pytest.approx(0.8, abs=4 * np.std(found) / math.sqrt(len(found)))


def test_one_seed_shows_nothing():
    found = paired_comparison([0.9], [0.1])
    assert (found.low, found.high, found.p_value) == (-math.inf, math.inf, 1.0)
    assert found.verdict == "no verdict"


def test_equal_scores_show_nothing_and_equal_differences_need_three_seeds():
    assert paired_comparison([0.5] * 5, [0.5] * 5).verdict == "not shown"
    assert paired_comparison([0.75, 0.75], [0.5, 0.5]).verdict == "no verdict"
    assert paired_comparison([0.75] * 3, [0.5] * 3).verdict == "helps"


def test_verdict_has_the_sign_of_a_significant_difference(rng):
    baseline = rng.normal(0.5, 0.01, 6)
    noise = rng.normal(0, 0.01, 6)
    assert paired_comparison(baseline + 0.1 + noise, baseline).verdict == "helps"
    assert paired_comparison(baseline - 0.1 + noise, baseline).verdict == "hurts"
    assert verdict(0.1, p_value=0.04, n=6, error_rate=0.01) == "not shown"
    assert "5%" in paired_comparison(baseline + noise, baseline).sentence


def test_holm_against_its_definition(rng):
    p = rng.random(7)
    adjusted = holm(p)
    for alpha in (0.1, 0.5, 0.9):
        rejected = set()
        for k, index in enumerate(np.argsort(p)):
            if p[index] * (len(p) - k) > alpha:
                break
            rejected.add(int(index))
        assert rejected == set(np.flatnonzero(adjusted <= alpha).tolist())
    np.testing.assert_allclose(holm([0.01, 0.04, 0.03]), [0.03, 0.06, 0.06])


def test_bootstrap_approaches_the_t_interval_and_is_seeded(rng):
    values = rng.normal(0, 1, 200)
    low, high = bootstrap_interval(values, rng=np.random.default_rng(0))
    assert (low, high) == bootstrap_interval(values, rng=np.random.default_rng(0))
    expected = mean_interval(values)
    np.testing.assert_allclose([low, high], [expected.low, expected.high], atol=0.01)


def test_probability_best_sums_to_one_and_shares_ties():
    found = probability_best({"a": [0.5, 0.6, 0.7], "b": [0.7, 0.5, 0.6], "c": [0.1, 0.1, 0.1]})
    assert sum(found.values()) == pytest.approx(1)
    assert found["c"] == 0
    tied = probability_best({"a": [0.1, 0.2, 0.3], "b": [0.1, 0.2, 0.3]})
    assert tied == {"a": 0.5, "b": 0.5}
    assert probability_best({"a": [0.5, 0.6], "b": [0.4, 0.5]}) == {"a": 1.0, "b": 0.0}


def test_probability_best_of_two_is_the_bootstrap_of_their_difference(rng):
    a, b = rng.normal(0.1, 1, 20), rng.normal(0, 1, 20)
    found = probability_best({"a": a, "b": b}, resamples=40_000)["a"]
    result = stats.bootstrap((a - b,), np.mean, n_resamples=40_000, method="percentile", rng=3)
    assert found == pytest.approx(np.mean(result.bootstrap_distribution > 0), abs=0.015)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mean_interval([]), "at least one"),
        (lambda: mean_interval([math.nan]), "finite"),
        (lambda: paired_comparison([1.0], [1.0, 2.0]), "found 1 and 2"),
        (lambda: holm([0.5, 1.5]), "between 0 and 1"),
        (lambda: probability_best({"a": [1.0], "b": [1.0, 2.0]}), "one score per seed"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# With 4,000 samples a true coverage of 95 % falls outside 93 to 97 % with probability below 1e-8.
@pytest.mark.statistical
@pytest.mark.parametrize("n", [3, 5, 10])
def test_t_interval_covers_as_often_as_it_says(n):
    samples = np.random.default_rng(n).normal(0.3, 2.0, (4000, n))
    covered = [found.low <= 0.3 <= found.high for found in map(mean_interval, samples)]
    assert 0.93 <= np.mean(covered) <= 0.97


@pytest.mark.statistical
@pytest.mark.parametrize(("n", "least"), [(5, 0.90), (10, 0.93), (20, 0.93)])
def test_bootstrap_interval_covers_as_often_as_it_says(n, least):
    rng = np.random.default_rng(100 + n)
    samples = rng.normal(0.3, 2.0, (2000, n))
    intervals = [bootstrap_interval(row, resamples=1000, rng=rng) for row in samples]
    assert least <= np.mean([low <= 0.3 <= high for low, high in intervals]) <= 0.97


# 0.05 ± 5 standard errors: a false alarm in about one of two million test runs.
@pytest.mark.statistical
def test_verdict_errs_as_often_as_it_says():
    rng = np.random.default_rng(5)
    wrong = [paired_comparison(*rng.normal(0.5, 0.02, (2, 5)), resamples=1).verdict != "not shown" for _ in range(2000)]
    assert np.mean(wrong) == pytest.approx(0.05, abs=5 * math.sqrt(0.05 * 0.95 / 2000))


def known_rows(rng, seeds: int, rows: int, by_seed: float, by_row: float, by_both: float) -> np.ndarray:
    """Differences [seeds, rows] whose expectation over seeds and rows is 0.1."""
    of_seeds, of_rows = rng.normal(0, by_seed, (seeds, 1)), rng.normal(0, by_row, (1, rows))
    return 0.1 + of_seeds + of_rows + rng.normal(0, by_both, (seeds, rows))


ROWS = 150
WEIGHTS = np.random.default_rng(0).multinomial(ROWS, np.full(ROWS, 1 / ROWS), 300) / ROWS


def two_way(values: np.ndarray):
    return seeds_and_rows(values.mean(axis=1), values @ WEIGHTS.T)


# Of 400 samples with a true coverage of 95 % fewer than 366 cover with probability below 0.001. The interval is built to be
# rather too wide than too narrow where the seeds are few; an interval that always covers would say nothing.
@pytest.mark.statistical
@pytest.mark.parametrize("seeds", [3, 5])
@pytest.mark.parametrize(("by_seed", "by_row", "by_both"), [(0.1, 0.0, 0.2), (0.02, 1.0, 0.5), (0.0, 0.0, 1.0)])
def test_the_interval_over_seeds_and_rows_covers_as_often_as_it_says(seeds, by_seed, by_row, by_both):
    rng = np.random.default_rng(11)
    found = [two_way(known_rows(rng, seeds, ROWS, by_seed, by_row, by_both)) for _ in range(400)]
    covered = np.mean([each.low <= 0.1 <= each.high for each in found])
    assert 0.915 <= covered <= 0.998


@pytest.mark.statistical
def test_an_interval_over_seeds_alone_does_not_cover_other_rows():
    """The control of the test above: where rows matter, the t interval over seeds is far too sure."""
    rng = np.random.default_rng(12)
    found = [mean_interval(known_rows(rng, 5, ROWS, 0.02, 1.0, 0.5).mean(axis=1)) for _ in range(400)]
    assert np.mean([each.low <= 0.1 <= each.high for each in found]) < 0.8


def test_rows_that_say_nothing_new_leave_the_t_interval(rng):
    differences = rng.normal(0.1, 0.05, 6)
    found = seeds_and_rows(differences, np.repeat(differences[:, None], 50, axis=1))
    expected = paired_comparison(differences, np.zeros(6))
    np.testing.assert_allclose(
        [found.low, found.high, found.p_value], [expected.low, expected.high, expected.p_value], rtol=1e-6
    )


def test_the_p_value_and_the_interval_over_rows_agree(rng):
    for _ in range(50):
        found = two_way(known_rows(rng, 4, ROWS, 0.05, 0.5, 0.3) - 0.05)
        assert (found.p_value <= 0.05) == (not found.low <= 0 <= found.high)
        assert found.low <= found.high
    assert seeds_and_rows([0.1], np.full((1, 9), 0.1)).p_value == 1
    assert seeds_and_rows([0.1, 0.1], np.full((2, 9), 0.1)).p_value == 0
    assert seeds_and_rows([0.0, 0.0], np.zeros((2, 9))).p_value == 1
