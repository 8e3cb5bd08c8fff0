"""Runs of a fixed policy that keep a log, and logs as sums: the data side of `counterfactual`."""

from __future__ import annotations

import numpy as np

from sidequest.errors import SidequestError
from sidequest.learning.protocol import Learner, PredictionGain
from sidequest.methods.base import State
from sidequest.methods.policies.log import STEP, PolicyLog, pack, unpack
from sidequest.numerics.off_policy import LogSums, improvement_reward, improvement_rewards


class LoggedRun(State):
    """A run of T steps that draws tasks from a fixed policy [N], finished or under way.

    last_loss: the loss of each visited task at its last visit. blocks: the log so far, packed.
    """

    policy: list[float]
    logged: int = 0
    last_loss: dict[str, float] = {}
    blocks: list[str] = []

    @property
    def sums(self) -> LogSums:
        return sums_of(unpack(self.blocks), len(self.policy))


def log_steps(
    run: LoggedRun, n_steps: int, tasks: list[str], goal: str, learner: Learner, rng: np.random.Generator
) -> LoggedRun:
    """The run after more steps, each with the reward of Eq. 16.

    Goal `average`: of the drawn task's own loss, against its last visit. Goal `primary`: of the loss of a probe batch of the
    primary, `tasks[0]`, after the step against before it.
    """
    policy = np.array(run.policy)
    drawn = rng.choice(len(policy), size=n_steps, p=policy / policy.sum())
    records = np.empty(n_steps, dtype=STEP)
    records["task"], records["propensity"] = drawn, policy[drawn]
    last_loss = run.last_loss
    if goal == "primary":
        gains = learner[PredictionGain]
        pairs = np.array([gains.train_with_gain(tasks[task], target=tasks[0]) for task in drawn])
        records["loss"], records["reward"] = pairs[:, 0], improvement_reward(pairs[:, 0], pairs[:, 1] < pairs[:, 0])
    else:
        records["loss"] = [learner.train(tasks[task], 1)[0] for task in drawn]
        last = np.array([last_loss.get(name, np.nan) for name in tasks])
        records["reward"], last = improvement_rewards(drawn, records["loss"], last)
        last_loss = {name: float(loss) for name, loss in zip(tasks, last, strict=True) if not np.isnan(loss)}
    if not np.isfinite(records["loss"]).all():
        bad = int(np.argmin(np.isfinite(records["loss"])))
        raise SidequestError(
            f"counterfactual: the loss is not finite at step {run.logged + bad + 1} of a logging run, on {tasks[drawn[bad]]!r}: "
            "the training has diverged. Lower train.learning_rate."
        )
    return LoggedRun(
        policy=run.policy, logged=run.logged + n_steps, last_loss=last_loss, blocks=[*run.blocks, pack(records)]
    )


def with_improvement(log: PolicyLog) -> np.ndarray:
    """The records of a log with the reward of Eq. 16; a log of prediction gains has all that it takes."""
    if log.reward == "improvement":
        return log.steps
    steps = log.steps.copy()
    if log.goal == "primary":
        steps["reward"] = improvement_reward(steps["loss"], steps["reward"] > 0)
    else:
        never = np.full(len(log.tasks), np.nan)
        steps["reward"], _ = improvement_rewards(steps["task"], steps["loss"], never)
    return steps


def sums_of(steps: np.ndarray, tasks: int) -> LogSums:
    return LogSums.of(steps["task"], steps["propensity"], steps["reward"], tasks)
