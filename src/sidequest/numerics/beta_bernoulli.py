"""Beta-Bernoulli arms with forgetting: the posterior of AutoSeM's stage 1 (Algorithm 1; Eqs. 4 to 7).

Arms are positions in arrays `alpha` and `beta`, float64 [arms]. Functions return new arrays and keep no state.
"""

from __future__ import annotations

import numpy as np
from scipy import special  # not scipy.stats, which takes half a second to import


def update(
    alpha: np.ndarray,
    beta: np.ndarray,
    arm: int,
    reward: int,
    *,
    gamma: float,
    prior: tuple[float, float] = (1.0, 1.0),
) -> tuple[np.ndarray, np.ndarray]:
    """Every arm forgets towards the prior (lines 10 to 12), then the pulled arm counts its reward (line 16).

    reward: 0 or 1. gamma: 0 is the conjugate update of Eq. 5, exactly; 1 remembers the last round only.
    """
    new_alpha = (1 - gamma) * alpha + gamma * prior[0]
    new_beta = (1 - gamma) * beta + gamma * prior[1]
    new_alpha[arm] += reward
    new_beta[arm] += 1 - reward
    return new_alpha, new_beta


def thompson(alpha: np.ndarray, beta: np.ndarray, rng: np.random.Generator) -> int:
    """The arm with the largest draw from its posterior (lines 3 to 7). Draws are continuous, but with tiny parameters they
    pile up at 0 and 1; a tie is then broken at random, not by position."""
    draws = rng.beta(alpha, beta)
    return int(rng.choice(np.flatnonzero(draws == draws.max())))


def mean(alpha: np.ndarray, beta: np.ndarray) -> np.ndarray:
    """The expected utility of every arm (Eq. 6)."""
    return alpha / (alpha + beta)


def credible_bounds(alpha: np.ndarray, beta: np.ndarray, level: float) -> tuple[np.ndarray, np.ndarray]:
    """The ends of the central interval that holds the utility with probability `level`."""
    tail = (1 - level) / 2
    low, high = (special.betaincinv(alpha, beta, share) for share in (tail, 1 - tail))
    return np.asarray(low), np.asarray(high)


def density(alpha: float, beta: float, at: np.ndarray) -> np.ndarray:
    """The posterior density of one arm's utility (Eq. 2), for the paper's Figure 3."""
    log_density = special.xlogy(alpha - 1, at) + special.xlog1py(beta - 1, -at) - special.betaln(alpha, beta)
    return np.asarray(np.exp(log_density))


def memory(gamma: float) -> float:
    """How many rounds' worth of evidence an arm that is pulled every round can hold: Σ (1 − γ)^t = 1/γ."""
    return np.inf if gamma == 0 else 1 / gamma
