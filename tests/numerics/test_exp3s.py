"""Exp3.S in log space against Eq. 5 written out with 60-digit weights."""

from __future__ import annotations

import math
from decimal import MAX_EMAX, MIN_EMIN, Decimal, localcontext

import numpy as np
import pytest

from sidequest.numerics.exp3s import sampling_policy, update, weights_policy


@pytest.fixture(autouse=True)
def wide_decimals():
    """60 digits, and exponents large enough for the weights of huge rewards."""
    with localcontext(prec=60, Emax=MAX_EMAX, Emin=MIN_EMIN):
        yield


class SlowExp3S:
    """Eq. 5 as printed, arm by arm, in 60-digit decimals: slow, and too plain to be wrong."""

    def __init__(self, arms: int, eta: float, epsilon: float, importance: str) -> None:
        self.weights = [Decimal(1)] * arms  # exp(ω)
        self.eta, self.epsilon, self.importance = Decimal(eta), Decimal(epsilon), importance

    def rho(self) -> list[Decimal]:
        return [weight / sum(self.weights) for weight in self.weights]

    def pi(self) -> list[Decimal]:
        return [(1 - self.epsilon) * share + self.epsilon / len(self.weights) for share in self.rho()]

    def update(self, arm: int, reward: float, step: int) -> None:
        arms = len(self.weights)
        divisor = (self.pi() if self.importance == "sampled" else self.rho())[arm]
        grown = [
            weight * ((self.eta * Decimal(reward) / divisor).exp() if k == arm else 1)
            for k, weight in enumerate(self.weights)
        ]
        alpha = Decimal(1) / (step + 1)
        new = []
        for k in range(arms):
            others = sum((grown[j] for j in range(arms) if j != k), Decimal(0))
            shared = alpha / (arms - 1) * others if arms > 1 else Decimal(0)
            new.append((1 - alpha) * grown[k] + shared)
        self.weights = new


REWARDS = {
    "random": lambda rng: rng.uniform(-1, 1),
    "equal": lambda rng: 0.7,
    "huge": lambda rng: rng.choice([-1e5, 1e5]),
}


@pytest.mark.parametrize("rewards", REWARDS)
@pytest.mark.parametrize("importance", ["sampled", "printed"])
@pytest.mark.parametrize(("arms", "eta", "epsilon"), [(2, 0.3, 0.0), (5, 0.05, 0.05), (8, 1e-3, 0.05), (1, 0.1, 0.05)])
def test_agrees_with_the_equation(rewards, importance, arms, eta, epsilon):
    rng = np.random.default_rng([arms, importance == "printed"])
    slow, weights = SlowExp3S(arms, eta, epsilon, importance), np.zeros(arms)
    for step in range(1, 201):
        policy = sampling_policy(weights, epsilon)
        np.testing.assert_allclose(policy, [float(share) for share in slow.pi()], rtol=1e-10)
        arm, reward = int(rng.choice(arms, p=policy)), float(REWARDS[rewards](rng))
        weights = update(weights, arm, reward, step, eta=eta, epsilon=epsilon, importance=importance)
        slow.update(arm, reward, step)


def test_two_readings_differ_when_weights_are_uneven():
    weights = np.log([0.7, 0.2, 0.1])
    sampled, printed = (
        update(weights, 2, 1.0, 5, eta=0.5, epsilon=0.3, importance=reading) for reading in ("sampled", "printed")
    )
    assert weights_policy(printed)[2] > weights_policy(sampled)[2]  # ρ is below π here, so 1/ρ is the larger weight


def test_all_arms_move_from_the_old_weights():
    """Renaming arms renames the result; an update in place, arm after arm, would break this."""
    rng = np.random.default_rng(0)
    weights, order = rng.normal(size=6), rng.permutation(6)
    moved = update(weights, 3, 0.8, 4, eta=0.5, epsilon=0.1)
    renamed = update(weights[order], int(np.flatnonzero(order == 3)[0]), 0.8, 4, eta=0.5, epsilon=0.1)
    np.testing.assert_allclose(renamed, moved[order], atol=1e-14)


def test_one_arm_is_always_drawn():
    weights = np.zeros(1)
    for step in range(1, 20):
        weights = update(weights, 0, 5.0, step, eta=1.0, epsilon=0.05)
        assert sampling_policy(weights, 0.05) == 1.0


def test_rewards_of_zero_leave_the_uniform_policy():
    weights = np.zeros(4)
    for step in range(1, 50):
        weights = update(weights, step % 4, 0.0, step, eta=0.5, epsilon=0.0)
    np.testing.assert_allclose(weights_policy(weights), 0.25, rtol=1e-14)


@pytest.mark.parametrize("reward", [1e308, -1e308, 1e6, -1e6, math.inf, -math.inf])
def test_huge_rewards_neither_overflow_nor_starve_an_arm(reward):
    weights = np.zeros(4)
    with np.errstate(all="raise", under="ignore"):
        for step in range(1, 100):
            weights = update(weights, step % 4, reward, step, eta=10.0, epsilon=0.05)
            policy = sampling_policy(weights, 0.05)
            assert np.isfinite(weights).all()
            assert policy.sum() == pytest.approx(1.0, abs=1e-12)
            assert policy.min() >= 0.05 / 4 * 0.999


def test_a_reward_that_is_no_number_is_refused():
    with pytest.raises(ValueError, match="found nan"):
        update(np.zeros(3), 0, math.nan, 1, eta=1.0, epsilon=0.1)


def test_a_long_run_stays_finite_and_follows_a_change():
    """The best arm changes half-way; the sharing term lets the policy follow."""
    rng = np.random.default_rng(1)
    weights, drawn = np.zeros(3), []
    for step in range(1, 20_001):
        policy = sampling_policy(weights, 0.05)
        arm = int(rng.choice(3, p=policy))
        best = 0 if step <= 10_000 else 2
        weights = update(weights, arm, 1.0 if arm == best else -1.0, step, eta=0.02, epsilon=0.05)
        drawn.append(arm)
    assert np.mean(np.array(drawn[8_000:10_000]) == 0) > 0.85
    assert np.mean(np.array(drawn[18_000:]) == 2) > 0.85
