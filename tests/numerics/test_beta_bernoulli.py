"""The posterior of stage 1 against the conjugate one and against a slow, transparent version."""

import numpy as np
import pytest
from scipy import integrate, stats

from sidequest.numerics import beta_bernoulli as bb


def random_history(rng, arms, rounds):
    return list(zip(rng.integers(arms, size=rounds).tolist(), rng.integers(2, size=rounds).tolist(), strict=True))


def test_without_decay_the_posterior_is_conjugate_exactly():
    rng = np.random.default_rng(0)
    for _ in range(20):
        arms = int(rng.integers(1, 9))
        history = random_history(rng, arms, 200)
        alpha, beta = np.ones(arms), np.ones(arms)
        for arm, reward in history:
            alpha, beta = bb.update(alpha, beta, arm, reward, gamma=0.0)
        wins = [sum(r for a, r in history if a == k) for k in range(arms)]
        losses = [sum(1 - r for a, r in history if a == k) for k in range(arms)]
        assert alpha.tolist() == [1 + w for w in wins]
        assert beta.tolist() == [1 + losses[k] for k in range(arms)]


def slow_decayed(history, arms, gamma, start, prior):
    """Each reward r of round t weighs (1 − γ)^(T − t); what was known at the start weighs (1 − γ)^T and the prior the rest."""
    total = len(history)
    alpha, beta = [], []
    for k in range(arms):
        kept = (1 - gamma) ** total
        a = kept * start[k][0] + (1 - kept) * prior[0]
        b = kept * start[k][1] + (1 - kept) * prior[1]
        for t, (arm, reward) in enumerate(history, start=1):
            if arm == k:
                a += (1 - gamma) ** (total - t) * reward
                b += (1 - gamma) ** (total - t) * (1 - reward)
        alpha.append(a)
        beta.append(b)
    return alpha, beta


@pytest.mark.parametrize("gamma", [0.01, 0.1, 0.3, 1.0])
def test_with_decay_the_posterior_is_the_discounted_sum(gamma):
    rng = np.random.default_rng(1)
    for _ in range(10):
        arms, prior = int(rng.integers(1, 6)), (1.0, 2.0)
        start = [(float(a), float(b)) for a, b in rng.uniform(0.5, 5, size=(arms, 2))]
        history = random_history(rng, arms, 60)
        alpha, beta = np.array([a for a, _ in start]), np.array([b for _, b in start])
        for arm, reward in history:
            alpha, beta = bb.update(alpha, beta, arm, reward, gamma=gamma, prior=prior)
        slow_alpha, slow_beta = slow_decayed(history, arms, gamma, start, prior)
        np.testing.assert_allclose(alpha, slow_alpha, rtol=1e-12)
        np.testing.assert_allclose(beta, slow_beta, rtol=1e-12)


def test_update_leaves_its_arguments_alone():
    alpha, beta = np.ones(3), np.ones(3)
    bb.update(alpha, beta, 1, 1, gamma=0.2)
    assert alpha.tolist() == beta.tolist() == [1, 1, 1]


def test_evidence_saturates_at_the_memory():
    alpha, beta = np.ones(1), np.ones(1)
    for _ in range(500):
        alpha, beta = bb.update(alpha, beta, 0, 1, gamma=0.3)
    assert alpha[0] - 1 == pytest.approx(bb.memory(0.3), rel=1e-9)
    assert bb.mean(alpha, beta)[0] == pytest.approx(0.8125)  # γ = 0.3 can never say more than 0.81


@pytest.mark.statistical
def test_thompson_pulls_an_arm_as_often_as_it_is_best():
    """P(θ₀ > θ₁) by numerical integration; 4,000 draws, bound at 4.5 deviations: false alarms below 1 in 100,000."""
    alpha, beta = np.array([3.0, 5.0]), np.array([4.0, 4.0])
    best, _ = integrate.quad(lambda t: stats.beta.pdf(t, 3, 4) * stats.beta.cdf(t, 5, 4), 0, 1)
    rng = np.random.default_rng(2)
    draws = 4000
    share = np.mean([bb.thompson(alpha, beta, rng) == 0 for _ in range(draws)])
    assert abs(share - best) < 4.5 * np.sqrt(best * (1 - best) / draws)


@pytest.mark.statistical
def test_ties_break_at_random():
    """Parameters this small draw exactly 0 or 1. 300 pulls of 3 arms: a share below 0.2 is more than 5 deviations off."""
    rng = np.random.default_rng(3)
    pulls = np.bincount([bb.thompson(np.full(3, 50.0), np.full(3, 1e-300), rng) for _ in range(300)], minlength=3)
    assert pulls.min() > 60


def test_credible_bounds_hold_their_probability():
    low, high = bb.credible_bounds(np.array([2.0, 30.0]), np.array([5.0, 3.0]), 0.9)
    held = stats.beta.cdf(high, [2, 30], [5, 3]) - stats.beta.cdf(low, [2, 30], [5, 3])
    np.testing.assert_allclose(held, 0.9, rtol=1e-9)
    area, _ = integrate.quad(lambda t: float(bb.density(2.0, 5.0, np.array([t]))[0]), low[0], high[0])
    assert area == pytest.approx(0.9, rel=1e-6)
