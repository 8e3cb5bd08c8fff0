"""Acquisition functions over a finite set, and the portfolio that chooses among them (GP-Hedge, Hoffman et al. 2011).

All take the posterior's mean and deviation at m candidates, float64 [m], and give a value per candidate to maximise.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import erfcx, log_ndtr, logsumexp

PORTFOLIO = ("pi", "ei", "ucb")

_LOG_SQRT_2PI = 0.5 * math.log(2 * math.pi)


def log_probability_of_improvement(mean: np.ndarray, deviation: np.ndarray, best: float) -> np.ndarray:
    """log P(f > best): same order as PI itself, without ties where PI underflows."""
    return log_ndtr((mean - best) / deviation)


def log_expected_improvement(mean: np.ndarray, deviation: np.ndarray, best: float) -> np.ndarray:
    """log E[(f − best)⁺] = log σ + log(φ(u) + uΦ(u)) with u = (μ − best)/σ, without underflow (Ament et al. 2023)."""
    return np.log(deviation) + _log_h((mean - best) / deviation)


def _log_h(u: np.ndarray) -> np.ndarray:
    """log(φ(u) + uΦ(u)). For negative u, φ(u)·(1 + u·Φ(u)/φ(u)) with Φ(u)/φ(u) = √(π/2) erfcx(−u/√2); far out the bracket cancels
    to nothing and is 1/u² − 3/u⁴ to first orders."""
    out = np.empty_like(u)
    near = u > -1
    middle = ~near & (u > -1e3)
    far = ~near & ~middle
    out[near] = np.log(np.exp(-0.5 * u[near] ** 2 - _LOG_SQRT_2PI) + u[near] * np.exp(log_ndtr(u[near])))
    m = u[middle]
    out[middle] = -0.5 * m**2 - _LOG_SQRT_2PI + np.log1p(m * math.sqrt(math.pi / 2) * erfcx(-m / math.sqrt(2)))
    f = u[far]
    out[far] = -0.5 * f**2 - _LOG_SQRT_2PI - 2 * np.log(-f) + np.log1p(-3 / f**2)
    return out


def upper_confidence_bound(mean: np.ndarray, deviation: np.ndarray, kappa: float) -> np.ndarray:
    """μ + κσ."""
    return mean + kappa * deviation


def acquisitions(
    mean: np.ndarray, deviation: np.ndarray, best: float, *, xi: float, kappa: float
) -> dict[str, np.ndarray]:
    """The portfolio's three functions; `xi` is the least improvement that PI and EI look for, in the units of the mean."""
    return {
        "pi": log_probability_of_improvement(mean, deviation, best + xi),
        "ei": log_expected_improvement(mean, deviation, best + xi),
        "ucb": upper_confidence_bound(mean, deviation, kappa),
    }


def hedge_probabilities(gains: np.ndarray, eta: float) -> np.ndarray:
    """p_j ∝ exp(η g_j): the chance of following each function, given its cumulated gains."""
    return np.exp(eta * gains - logsumexp(eta * gains))
