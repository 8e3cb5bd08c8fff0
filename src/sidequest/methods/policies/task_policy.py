"""What `exp3s` and `counterfactual` share: the length of a run, and a policy as a phase of a recipe."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from sidequest.methods.base import Pool
from sidequest.recipe import Phase

# Shares are rounded to this many decimals: a reader sees them whole, and the last bits of a search do not change a trial's key.
DECIMALS = 6


def run_steps(pool: Pool) -> int:
    """T, how many batches one run of a policy has, unless the user says.

    Goal `average`: `train.epochs` passes over all rows of all tasks. Goal `primary`: as long as a uniform mixture trains, which
    gives the primary that many passes over its rows.
    """
    train = pool.train
    batches = {name: math.ceil(card.rows / train.batch_size) for name, card in pool.cards.items()}
    passes = sum(batches.values()) if pool.goal == "average" else len(batches) * batches[pool.primary]
    steps = max(1, round(train.epochs * passes))
    return steps if train.max_batches is None else min(steps, train.max_batches)


def policy_phase(
    tasks: Sequence[str], policy: np.ndarray, *, goal: str, steps: int, least_primary_share: float = 0.0
) -> Phase:
    """A phase that draws every batch's task from the policy [N]; `tasks[0]` is the primary.

    Goal `average`: T batches, as in the paper. Goal `primary`: a number of epochs of the primary, like every recipe for a
    primary; a primary share that is too small would make that very long, so it is raised to `least_primary_share`.
    """
    shares = np.asarray(policy, dtype=np.float64)
    if goal == "primary" and shares[0] < least_primary_share < 1:
        others = shares[1:] / shares[1:].sum()
        shares = np.concatenate([[least_primary_share], (1 - least_primary_share) * others])
    rounded = {name: round(float(share), DECIMALS) for name, share in zip(tasks, shares, strict=True)}
    return Phase(order="sample", shares=rounded, epochs=None, batches=steps if goal == "average" else None)


def policy_by_task(tasks: Sequence[str], policy: Iterable[float]) -> dict[str, float]:
    """Numbers [N] of tasks (a policy, mean rewards) as evidence: by name, and rounded."""
    return {name: round(float(share), DECIMALS) for name, share in zip(tasks, policy, strict=True)}
