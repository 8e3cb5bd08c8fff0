"""FLAD: a bandit over auxiliaries whose reward is the alignment of their gradient with the primary's.

A. Albalak, C. Raffel, W. Y. Wang. Improving Few-Shot Generalization by Exploring and Exploiting Auxiliary Data. NeurIPS 2023.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
from pydantic import Field

from sidequest.learning.protocol import GradientAlignment, Learner
from sidequest.methods.base import Method, Pool, State
from sidequest.recipe import Phase, Recipe
from sidequest.settings import Settings

DECIMALS = 6


class FladSettings(Settings):
    """bandit: `exp3` (EXP3-FLAD) or `ucb1` (UCB1-FLAD).
    smoothing: the weight of the newest reward in UCB1's moving average.
    round_steps: turns per round.
    steps: turns of the run; None: as many as the primary has batches in a training.
    """

    bandit: Literal["exp3", "ucb1"] = "exp3"
    smoothing: float = Field(0.1, gt=0, le=1)
    round_steps: int = Field(50, ge=1)
    steps: int | None = Field(None, ge=1)


class FladState(State):
    """totals: Σ of importance-weighted rewards (exp3) or the moving average of rewards (ucb1), per candidate. drawn: turns of
    each. policy_sum: Σ of the policies drawn from. rewards: Σ of plain rewards."""

    primary: str
    candidates: list[str]
    epochs: float
    steps: int | None
    step: int = 0
    totals: list[float]
    drawn: list[int]
    policy_sum: list[float]
    rewards: list[float]


class Flad(Method[FladSettings, FladState]):
    """A turn draws one auxiliary, takes its next batch and the primary's, and steps on both losses together; the reward is the
    cosine between the two gradients of the shared parameters (Section 3). EXP3 (Algorithm 1) draws from
    π = (1 − K ε_t) softmax(ε_{t−1} R̂) + ε_t with ε_t = min(1/K, √(ln K / (K t))) and R̂ the sum of r/π; UCB1 (Algorithm 2)
    takes the largest R̂ + √(2 ln t / n).

    Departures: the recipe draws auxiliaries by the *mean* policy of the run (for UCB1 how often each was taken), half of the
    batches being the primary's, and is trained from the start, like every recipe; the paper keeps the model of the run itself.
    The gradient of the primary is of its next batch, not of all its rows. The paper does not give a first policy for UCB1: each
    is taken once."""

    name = "flad"
    summary = "an online bandit draws auxiliaries by the alignment of their gradient with the primary's"
    paper = "Albalak, Raffel & Wang 2023, Improving Few-Shot Generalization by Exploring and Exploiting Auxiliary Data"
    cost = "2x, however many candidates"
    returns = "mixture"
    anytime = True
    requires = (GradientAlignment,)
    Settings = FladSettings
    State = FladState

    def start(self, pool: Pool, rng: np.random.Generator) -> FladState:
        names = sorted(pool.candidates)
        zeros = [0.0] * len(names)
        return FladState(
            primary=pool.primary,
            candidates=names,
            epochs=pool.train.epochs,
            steps=0 if not names else self.settings.steps,
            totals=zeros,
            drawn=[0] * len(names),
            policy_sum=zeros,
            rewards=zeros,
        )

    def round(self, state: FladState, learner: Learner, rng: np.random.Generator) -> FladState:
        steps = state.steps
        if steps is None:
            steps = max(1, round(state.epochs * learner.epoch_batches(state.primary)))
        if state.step == 0:
            learner.begin(steps)
        power = learner[GradientAlignment]
        totals, policy_sum, rewards = (np.array(x) for x in (state.totals, state.policy_sum, state.rewards))
        drawn = np.array(state.drawn)
        stop = min(state.step + self.settings.round_steps, steps)
        for turn in range(state.step + 1, stop + 1):
            if self.settings.bandit == "exp3":
                policy = exp3_policy(totals, turn)
                arm = int(rng.choice(len(policy), p=policy))
            else:
                arm = ucb1_arm(totals, drawn, turn)
                policy = np.eye(len(totals))[arm]
            reward = power.train_aligned(state.candidates[arm], state.primary)
            if self.settings.bandit == "exp3":
                totals[arm] += reward / policy[arm]
            else:
                new = self.settings.smoothing if drawn[arm] else 1.0
                totals[arm] += new * (reward - totals[arm])
            drawn[arm] += 1
            policy_sum += policy
            rewards[arm] += reward
        return state.model_copy(
            update={
                "steps": steps,
                "step": stop,
                "totals": totals.tolist(),
                "drawn": drawn.tolist(),
                "policy_sum": policy_sum.tolist(),
                "rewards": rewards.tolist(),
            }
        )

    def done(self, state: FladState) -> bool:
        return state.steps is not None and state.step >= state.steps

    def total(self, state: FladState) -> int | None:
        return None if state.steps is None else -(-state.steps // self.settings.round_steps)

    def journal(self, state: FladState) -> dict[str, Any]:
        return {"step": state.step, "policy": self._policy(state)}

    def _policy(self, state: FladState) -> dict[str, float]:
        whole = max(1, state.step)
        return {n: round(s / whole, DECIMALS) for n, s in zip(state.candidates, state.policy_sum, strict=True)}

    def recipe(self, state: FladState) -> Recipe:
        policy = self._policy(state)
        shares = {name: share for name, share in policy.items() if share > 0}
        phase = Phase(shares={state.primary: 1})
        if shares:
            phase = Phase(order="sample", shares={state.primary: 1.0, **shares})
        aligned = {
            name: round(total / max(1, count), DECIMALS)
            for name, total, count in zip(state.candidates, state.rewards, state.drawn, strict=True)
        }
        best = max(policy, key=lambda name: policy[name]) if shares else ""
        return Recipe(
            method=self.name,
            primary=state.primary,
            phases=(phase,),
            evidence={
                "mean_policy": policy,
                "mean_alignment": aligned,
                "drawn": dict(zip(state.candidates, state.drawn, strict=True)),
            },
            verdict=f"drew {best} most ({policy[best]:.3f}, mean cosine {aligned[best]:.3f}); uniform is {1 / len(policy):.3f}"
            if best
            else "",
        )


def exp3_policy(totals: np.ndarray, turn: int) -> np.ndarray:
    """π [K] at a turn (from 1), given Σ r/π [K]."""
    arms = len(totals)

    def rate(t: int) -> float:
        return min(1 / arms, math.sqrt(math.log(arms) / (arms * t))) if t and arms > 1 else 1 / arms

    scaled = rate(turn - 1) * totals
    weights = np.exp(scaled - scaled.max())
    policy = (1 - arms * rate(turn)) * weights / weights.sum() + rate(turn)
    return np.asarray(policy / policy.sum())


def ucb1_arm(means: np.ndarray, drawn: np.ndarray, turn: int) -> int:
    """The arm with the highest upper bound; one that was never taken comes first."""
    if (drawn == 0).any():
        return int(np.argmin(drawn))
    return int(np.argmax(means + np.sqrt(2 * math.log(turn) / drawn)))
