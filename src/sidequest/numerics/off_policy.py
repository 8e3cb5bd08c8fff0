"""What a policy would have earned, from the log of another (Glover & Hokamp 2019, Sec. 3.3), and the search for a better one.

Tasks carry no context, so for a fixed policy π [N] every estimator is a function of a few sums per task. `LogSums` holds them:
one pass over the log, whatever its length and however many policies logged it (each record has its own propensity), and then a
policy costs O(N) instead of O(T). All estimators take a policy [N] or a batch of policies [M, N] and return [] or [M].
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

Estimator = Literal["wis", "is", "dr"]


@dataclass(frozen=True)
class LogSums:
    """Sums over the records of each task, all of shape [N]; p is a record's propensity, r its reward.

    counts: records. rewards: Σ r. inverse: Σ 1/p. inverse_squared: Σ 1/p². weighted: Σ r/p.
    """

    counts: np.ndarray
    rewards: np.ndarray
    inverse: np.ndarray
    inverse_squared: np.ndarray
    weighted: np.ndarray

    @classmethod
    def of(cls, task: np.ndarray, propensity: np.ndarray, reward: np.ndarray, tasks: int) -> LogSums:
        """From a log: task int [T] in 0..tasks−1, propensity [T] in (0, 1], reward [T]."""
        if len(task) and not (propensity.min() > 0 and propensity.max() <= 1):
            bad = propensity[~((propensity > 0) & (propensity <= 1))][0]
            raise ValueError(f"a propensity is above 0 and at most 1, found {bad}")
        inverse = 1.0 / propensity

        def total(values: np.ndarray | None) -> np.ndarray:
            return np.bincount(task, weights=values, minlength=tasks).astype(np.float64)

        return cls(total(None), total(reward), total(inverse), total(inverse**2), total(reward * inverse))

    def __add__(self, other: LogSums) -> LogSums:
        """The sums of both logs together."""
        return LogSums(*(getattr(self, name) + getattr(other, name) for name in self.__dataclass_fields__))

    @property
    def steps(self) -> float:
        return float(self.counts.sum())

    @property
    def mean_rewards(self) -> np.ndarray:
        """r̄ [N]: the mean reward of each task; the mean over all records for a task without one."""
        overall = self.rewards.sum() / self.steps
        return np.where(self.counts > 0, self.rewards / np.maximum(self.counts, 1), overall)


def improvement_rewards(task: np.ndarray, loss: np.ndarray, last: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eq. 16: 1 − exp(−L) where a task's loss is below that of its last visit, 0 elsewhere and on a first visit.

    task: int [T]. loss: a negative log-likelihood [T] in step order. last: each task's loss at its last visit before these
    steps [N], nan where there was none. Returns the rewards [T] and the new `last` [N].
    """
    if not len(task):
        return np.zeros(0), last.copy()
    order = np.argsort(task, kind="stable")
    of_task, losses = task[order], loss[order]
    first = np.concatenate([[True], of_task[1:] != of_task[:-1]])
    before = np.where(first, last[of_task], np.roll(losses, 1))
    rewards = np.empty(len(task))
    rewards[order] = improvement_reward(losses, losses < before)  # a comparison with nan is False
    after = last.copy()
    after[of_task] = losses  # of equal indices the last one counts, which is the latest visit
    return rewards, after


def improvement_reward(loss: np.ndarray, improved: np.ndarray) -> np.ndarray:
    """1 − exp(−L) where improved, else 0; in [0, 1] for a loss of any sign."""
    return np.where(improved, -np.expm1(-np.maximum(loss, 0.0)), 0.0)


def importance_sampling(policy: np.ndarray, sums: LogSums) -> np.ndarray:
    """V_IS (Eq. 10) = (1/T) Σ_t π(a_t)/p_t · r_t. Unbiased where every task that π may draw could have been logged."""
    return np.asarray(policy @ sums.weighted / sums.steps)


def weighted_importance_sampling(policy: np.ndarray, sums: LogSums) -> np.ndarray:
    """V_WIS (Eq. 11) = Σ_t π(a_t)/p_t · r_t / Σ_t π(a_t)/p_t. Consistent, and of lower variance than V_IS."""
    return np.asarray(policy @ sums.weighted / (policy @ sums.inverse))


def doubly_robust(policy: np.ndarray, sums: LogSums, model: np.ndarray | None = None) -> np.ndarray:
    """V_DR (Dudík et al. 2011) = Σ_k π(k) q(k) + (1/T) Σ_t π(a_t)/p_t · (r_t − q(a_t)).

    model: q [N], a guess of each task's mean reward, by default the mean reward in the log. Unbiased whatever q is when the
    propensities are right, and right whatever the propensities are when q is.
    """
    guess = sums.mean_rewards if model is None else model
    return np.asarray(policy @ guess + policy @ (sums.weighted - guess * sums.inverse) / sums.steps)


ESTIMATORS: dict[Estimator, Callable[[np.ndarray, LogSums], np.ndarray]] = {
    "wis": weighted_importance_sampling,
    "is": importance_sampling,
    "dr": doubly_robust,
}


def effective_sample_size(policy: np.ndarray, sums: LogSums) -> np.ndarray:
    """(Σ w)² / Σ w² with w_t = π(a_t)/p_t: how many records drawn from π itself the log is worth for judging π."""
    return np.asarray((policy @ sums.inverse) ** 2 / (policy**2 @ sums.inverse_squared))


def softmax(logits: np.ndarray) -> np.ndarray:
    """π_ω (Eq. 12), over the last axis."""
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))


def entropy(policy: np.ndarray) -> np.ndarray:
    """H(π) in nats, over the last axis; 0 log 0 = 0."""
    return np.asarray(-np.sum(policy * np.log(np.where(policy > 0, policy, 1.0)), axis=-1))


def improve_policy(
    sums: LogSums,
    entropy_weight: float,
    *,
    seed: int,
    estimator: Estimator = "wis",
    iterations: int = 50,
    population: int = 64,
    sigma: float = 1.0,
) -> np.ndarray:
    """π [N] that maximises V(π_ω) + λ H(π_ω) (Eq. 14) by CMA-ES over ω, started at the uniform policy; the best one seen.

    With V_WIS and a log whose Σ 1/p is equal for all tasks the maximum is π ∝ exp(r̄/λ).
    """
    from cmaes import CMA

    tasks = len(sums.counts)
    if tasks == 1:
        return np.ones(1)
    value = ESTIMATORS[estimator]
    optimiser = CMA(mean=np.zeros(tasks), sigma=sigma, population_size=population, seed=seed)
    best, best_value = np.full(tasks, 1.0 / tasks), -np.inf
    for _ in range(iterations):
        logits = np.stack([optimiser.ask() for _ in range(population)])
        policies = softmax(logits)
        found = value(policies, sums) + entropy_weight * entropy(policies)
        top = int(found.argmax())
        if found[top] > best_value:
            best, best_value = policies[top], float(found[top])
        optimiser.tell([(logit, -float(score)) for logit, score in zip(logits, found, strict=True)])
    return best
