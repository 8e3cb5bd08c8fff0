"""Estimators from sums against a walk over the log; bias, consistency; the search against its closed form."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from sidequest.numerics.off_policy import (
    LogSums,
    doubly_robust,
    effective_sample_size,
    entropy,
    importance_sampling,
    improve_policy,
    improvement_rewards,
    softmax,
    weighted_importance_sampling,
)

MEANS = np.array([0.1, 0.5, 0.3, 0.8])
LOGGING = np.array([0.4, 0.3, 0.2, 0.1])
TARGET = np.array([0.1, 0.2, 0.3, 0.4])


def draw_log(rng, steps, policy=LOGGING):
    """Tasks drawn from the policy, rewards 0 or 1 with the task's mean."""
    task = rng.choice(len(policy), size=steps, p=policy)
    return task, policy[task], (rng.random(steps) < MEANS[task]).astype(float)


def changing_log(rng, steps, tasks=8):
    """A log whose policy changes at every step."""
    policies = rng.dirichlet(np.ones(tasks), steps) * 0.9 + 0.1 / tasks
    task = (rng.random((steps, 1)) > policies.cumsum(1)[:, :-1]).sum(1)
    return task, policies[np.arange(steps), task], rng.random(steps)


def walk(task, propensity, reward, policy):
    """Eq. 10 and 11, record by record, with exact sums."""
    weights = [policy[k] / p for k, p in zip(task, propensity, strict=True)]
    earned = math.fsum(w * r for w, r in zip(weights, reward, strict=True))
    squares = math.fsum(w * w for w in weights)
    total = math.fsum(weights)
    return earned / len(task), earned / total, total**2 / squares


def test_sums_equal_the_walk_over_the_log_of_many_policies():
    rng = np.random.default_rng(0)
    log = changing_log(rng, 20_000)
    sums = LogSums.of(*log, 8)
    for policy in rng.dirichlet(np.ones(8), 20):
        by_is, by_wis, effective = walk(*log, policy)
        assert importance_sampling(policy, sums) == pytest.approx(by_is, abs=1e-12)
        assert weighted_importance_sampling(policy, sums) == pytest.approx(by_wis, abs=1e-12)
        assert effective_sample_size(policy, sums) == pytest.approx(effective, rel=1e-12)


def test_a_batch_of_policies_is_estimated_at_once():
    rng = np.random.default_rng(1)
    sums, policies = LogSums.of(*changing_log(rng, 500), 8), rng.dirichlet(np.ones(8), 7)
    for estimator in (importance_sampling, weighted_importance_sampling, doubly_robust, effective_sample_size):
        np.testing.assert_allclose(estimator(policies, sums), [estimator(each, sums) for each in policies], rtol=1e-13)


def test_logs_add_up():
    rng = np.random.default_rng(2)
    first, second = draw_log(rng, 300), draw_log(rng, 200, TARGET)
    both = [np.concatenate(pair) for pair in zip(first, second, strict=True)]
    for name, values in vars(LogSums.of(*first, 4) + LogSums.of(*second, 4)).items():
        np.testing.assert_allclose(values, getattr(LogSums.of(*both, 4), name), rtol=1e-13)


@pytest.mark.statistical
def test_importance_sampling_is_unbiased():
    """4,000 logs of 50 steps; a z-test of the mean estimate against the true value, false-alarm rate 1e-4."""
    rng, truth = np.random.default_rng(3), TARGET @ MEANS
    found = np.array([importance_sampling(TARGET, LogSums.of(*draw_log(rng, 50), 4)) for _ in range(4000)])
    z = (found.mean() - truth) / (found.std(ddof=1) / math.sqrt(len(found)))
    assert abs(z) < stats.norm.ppf(1 - 1e-4 / 2)


@pytest.mark.statistical
@pytest.mark.parametrize("model", [None, np.array([0.9, 0.0, 0.9, 0.0])])
def test_doubly_robust_is_unbiased_whatever_the_model(model):
    """As above, with a wrong model of the rewards; and for the log's own means, whose small-sample bias is below the test's
    resolution at 400 steps."""
    rng, truth = np.random.default_rng(4), TARGET @ MEANS
    found = np.array([doubly_robust(TARGET, LogSums.of(*draw_log(rng, 400), 4), model) for _ in range(2000)])
    z = (found.mean() - truth) / (found.std(ddof=1) / math.sqrt(len(found)))
    assert abs(z) < stats.norm.ppf(1 - 1e-4 / 2)


def test_doubly_robust_is_right_with_wrong_propensities_if_the_model_is():
    rng = np.random.default_rng(5)
    task, _, _ = draw_log(rng, 500)
    wrong = rng.uniform(0.1, 1.0, 500)
    assert doubly_robust(TARGET, LogSums.of(task, wrong, MEANS[task], 4), MEANS) == pytest.approx(TARGET @ MEANS)


@pytest.mark.statistical
def test_weighted_importance_sampling_is_consistent():
    """The error of 200 logs falls as 1/√T over a hundredfold T (a factor of 10, measured within 7 to 14), and at T = 100,000
    their mean is the truth up to a z-test of false-alarm rate 1e-4 plus a bias of order 1/T."""
    rng, truth = np.random.default_rng(6), TARGET @ MEANS

    def errors(steps):
        logs = (LogSums.of(*draw_log(rng, steps), 4) for _ in range(200))
        return np.array([weighted_importance_sampling(TARGET, sums) for sums in logs]) - truth

    small, large = errors(1000), errors(100_000)
    assert 7 < np.sqrt(np.mean(small**2) / np.mean(large**2)) < 14
    standard_error = large.std(ddof=1) / math.sqrt(len(large))
    assert abs(large.mean()) < stats.norm.ppf(1 - 1e-4 / 2) * standard_error + 10 / 100_000


def test_weighted_importance_sampling_is_the_steadier_one():
    """A constant added to all rewards shifts V_WIS by it exactly; V_IS moves with the luck of the draw."""
    task, propensity, reward = draw_log(np.random.default_rng(7), 200)
    plain, shifted = LogSums.of(task, propensity, reward, 4), LogSums.of(task, propensity, reward + 5, 4)
    moved = weighted_importance_sampling(TARGET, shifted) - weighted_importance_sampling(TARGET, plain)
    assert moved == pytest.approx(5.0, abs=1e-12)
    assert importance_sampling(TARGET, shifted) - importance_sampling(TARGET, plain) != pytest.approx(5.0, abs=1e-3)


def test_without_entropy_the_best_estimate_is_a_single_task():
    sums = LogSums.of(*changing_log(np.random.default_rng(8), 2000, tasks=5), 5)
    corners = weighted_importance_sampling(np.eye(5), sums)
    inside = weighted_importance_sampling(np.random.default_rng(9).dirichlet(np.ones(5), 500), sums)
    assert corners.max() > inside.max()


def test_effective_sample_size_counts_what_covers_the_policy():
    """Uniform log of 800 steps over 8 tasks: all of it judges the uniform policy, one eighth a single task."""
    task = np.repeat(np.arange(8), 100)
    sums = LogSums.of(task, np.full(800, 1 / 8), np.ones(800), 8)
    assert effective_sample_size(np.full(8, 1 / 8), sums) == pytest.approx(800)
    assert effective_sample_size(np.eye(8)[0], sums) == pytest.approx(100)


def test_a_propensity_outside_0_1_is_refused():
    with pytest.raises(ValueError, match=r"found 0\.0"):
        LogSums.of(np.array([0, 1]), np.array([0.5, 0.0]), np.zeros(2), 2)


@pytest.mark.parametrize("entropy_weight", [0.1, 0.2, 0.5, 1.0])
def test_search_finds_the_closed_form(entropy_weight):
    """With Σ 1/p equal for all tasks, V_WIS is linear and the maximum of V + λH is π ∝ exp(r̄/λ)."""
    rng = np.random.default_rng(10)
    means = rng.uniform(0, 0.6, 8)
    task = np.repeat(np.arange(8), 250)
    sums = LogSums.of(task, np.full(2000, 1 / 8), means[task], 8)
    exact = softmax(means / entropy_weight)
    found = improve_policy(sums, entropy_weight, seed=0, iterations=50)

    def objective(policy):
        return weighted_importance_sampling(policy, sums) + entropy_weight * entropy(policy)

    assert objective(found) <= objective(exact) + 1e-12
    assert objective(found) == pytest.approx(objective(exact), abs=1e-4)
    np.testing.assert_allclose(found, exact, atol=0.02)


def test_search_is_a_function_of_its_seed():
    sums = LogSums.of(*changing_log(np.random.default_rng(11), 500), 8)
    first, again, other = (improve_policy(sums, 0.3, seed=seed, iterations=5) for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_one_task_needs_no_search():
    sums = LogSums.of(np.zeros(5, dtype=int), np.ones(5), np.ones(5), 1)
    assert improve_policy(sums, 0.1, seed=0) == [1.0]


def test_improvement_rewards_are_equation_16_in_blocks_as_in_one_go():
    rng = np.random.default_rng(12)
    task, loss = rng.integers(4, size=300), rng.gamma(1.0, size=300)
    expected, last = [], {}
    for k, value in zip(task, loss, strict=True):
        expected.append(1 - math.exp(-value) if k in last and value < last[k] else 0.0)
        last[k] = value
    rewards, state = [], np.full(4, np.nan)
    for start in range(0, 300, 37):
        block, state = improvement_rewards(task[start : start + 37], loss[start : start + 37], state)
        rewards.extend(block)
    np.testing.assert_allclose(rewards, expected, atol=1e-15)
    assert state.tolist() == [last[k] for k in range(4)]
    assert improvement_rewards(task[:0], loss[:0], state)[0].shape == (0,)
