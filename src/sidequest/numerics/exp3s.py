"""Exp3.S: a bandit for rewards that drift (Auer et al. 2002; Graves et al. 2017; Glover & Hokamp 2019, Eq. 5).

Pure functions over log-weights ω [N]. The policy depends on differences of ω only, so every update returns ω with its maximum at
0: nothing can overflow, however large the rewards or long the run.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

Importance = Literal["sampled", "printed"]

# The largest move of a log-weight in one step. Beyond about 745 an exponential is 0 or infinite in any case; the bound only keeps
# the arithmetic finite when a caller's reward is not.
LARGEST_STEP = 1e300


def weights_policy(log_weights: np.ndarray) -> np.ndarray:
    """ρ [N]: the softmax of the log-weights [N]."""
    weights = np.exp(log_weights - log_weights.max())
    return weights / weights.sum()


def sampling_policy(log_weights: np.ndarray, epsilon: float) -> np.ndarray:
    """π [N] = (1 − ε) ρ + ε / N: what arms are drawn from."""
    return (1 - epsilon) * weights_policy(log_weights) + epsilon / len(log_weights)


def update(
    log_weights: np.ndarray,
    arm: int,
    reward: float,
    step: int,
    *,
    eta: float,
    epsilon: float,
    importance: Importance = "sampled",
) -> np.ndarray:
    """ω_{t+1} [N] from ω_t [N], after arm a_t was drawn at step t (from 1) and gave the reward r_t.

    ω_{t+1,k} = log[(1 − α) exp(ω_{t,k} + η r̃_{t,k}) + α / (N − 1) Σ_{j≠k} exp(ω_{t,j} + η r̃_{t,j})], α = 1 / (t + 1).

    importance: `sampled` divides the reward by π, the probability with which the arm was drawn (Auer et al.), which makes
        r̃ unbiased; `printed` divides by ρ, as Eq. 5 does.

    All arms move at once from the old weights. A single arm has nothing to share with.
    """
    if np.isnan(reward):
        raise ValueError("a reward is a number, found nan")
    policy = sampling_policy(log_weights, epsilon) if importance == "sampled" else weights_policy(log_weights)
    moved = log_weights - log_weights.max()
    with np.errstate(over="ignore", divide="ignore"):
        moved[arm] += np.clip(eta * reward / policy[arm] if reward else 0.0, -LARGEST_STEP, LARGEST_STEP)
    grown = np.exp(moved - moved.max())  # the largest is 1: every sum below is positive
    arms = len(grown)
    if arms == 1:
        return np.zeros(1)
    alpha = 1.0 / (step + 1)
    # Σ_{j≠k} by a product with a matrix of ones and a zero diagonal: Σ_j minus own would cancel when one arm dominates.
    shared = (1 - alpha) * grown + alpha / (arms - 1) * ((1 - np.eye(arms)) @ grown)
    log_shared = np.log(shared)
    return np.asarray(log_shared - log_shared.max())
