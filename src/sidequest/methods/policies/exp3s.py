"""Exp3.S with prediction gain: an online curriculum over tasks (Graves et al. 2017, as in Glover & Hokamp 2019, Sec. 3.2)."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator

from sidequest.errors import SidequestError
from sidequest.learning.protocol import Learner, PredictionGain
from sidequest.methods.base import Method, PaperSettings, Pool, State
from sidequest.methods.policies.log import STEP, PolicyLog, pack, unpack
from sidequest.methods.policies.task_policy import policy_by_task, policy_phase, run_steps
from sidequest.numerics import exp3s, reservoir
from sidequest.recipe import Recipe

CURVE_POINTS = 100  # of the policy over time that the evidence keeps


class Exp3SSettings(PaperSettings):
    """eta: η of Eq. 5, the rate at which the policy moves.
    epsilon: ε of Eq. 5, the share of the uniform policy in what is drawn.
    importance: divide a reward by the sampled policy π (Auer et al.) or by ρ (as printed).
    reservoir: how many past rewards the scaling samples.
    low: the percentile of past rewards that is scaled to the lowest reward (Eq. 6).
    high: the percentile that is scaled to the highest.
    steps: batches of the run; None: `train.epochs` passes (see `task_policy.run_steps`).
    round_steps: batches per round.
    least_primary_share: the primary's least share in the recipe, when the goal is `primary`.
    result: `model`: the model of the online run is what is judged, as in the paper; `recipe`: a training by the recipe.
    """

    PUBLISHED: ClassVar[dict[str, Any]] = {"importance": "printed"}

    eta: float = Field(1e-3, gt=0)
    epsilon: float = Field(0.05, ge=0, le=1)
    importance: Literal["sampled", "printed"] = "sampled"
    reservoir: int = Field(1000, ge=2)
    low: float = Field(20.0, ge=0, le=100)
    high: float = Field(80.0, ge=0, le=100)
    steps: int | None = Field(None, ge=1)
    round_steps: int = Field(50, ge=1)
    least_primary_share: float = Field(0.05, gt=0, lt=1)
    result: Literal["model", "recipe"] = "model"

    @model_validator(mode="after")
    def _ordered(self) -> Exp3SSettings:
        if self.low >= self.high:
            raise ValueError(f"low is below high, found {self.low:g} and {self.high:g}")
        return self


class Exp3SState(State):
    """log_weights: ω [N]. sample: the reservoir of unscaled rewards. policy_sum: Σ_t π_t [N]. curve: (step, π) over time.
    blocks: the log so far, packed."""

    tasks: list[str]
    goal: str
    steps: int
    step: int = 0
    log_weights: list[float]
    sample: list[float] = []
    policy_sum: list[float]
    curve: list[tuple[int, list[float]]] = []
    blocks: list[str] = []


class Exp3S(Method[Exp3SSettings, Exp3SState]):
    """One run of T steps. At each step a task is drawn from π_t (Eq. 5), a batch of it trained, and the drop in loss on that same
    batch (prediction gain), scaled to [−1, 1] by the percentiles of its history (Eq. 6), is the reward.

    Departures from the paper:
    - The policy changes at every step, a recipe does not: the recipe samples tasks from the *mean of π_t over the run*, which
      draws each task as often as the run did in expectation, in a constant instead of a changing order. The evidence has the
      policy over time. The model after the last step is the result that a comparison judges (`result=recipe`: a training by the
      recipe); a run that a budget ended leaves a recipe only.
    - The importance weight is 1/π, of the policy sampled from, as in Auer et al.; `importance=printed` is Eq. 5's 1/ρ.
    - The percentiles are of the history up to and including this step; where both are equal, a reward equal to them is 0.
    - The paper's goal is the mean over all tasks. With the goal `primary` the reward is the drop in the loss of a batch of the
      *primary*, whichever task was trained (Graves et al.'s target prediction gain).
    - The reservoir's size is not given in either paper: 1,000.
    """

    name = "exp3s"
    summary = "an online bandit draws tasks by how much each batch lowers its loss; returns the mean policy"
    paper = "Glover & Hokamp 2019, Task Selection Policies for Multitask Learning, Sec. 3.2"
    cost = "one run over all tasks, with a third more work per step"
    returns = "mixture, model"
    anytime = True
    trains_model = True
    requires = (PredictionGain,)
    Settings = Exp3SSettings
    State = Exp3SState

    def start(self, pool: Pool, rng: np.random.Generator) -> Exp3SState:
        names = list(pool.names)
        zeros = [0.0] * len(names)
        steps = self.settings.steps or run_steps(pool)
        return Exp3SState(tasks=names, goal=pool.goal, steps=steps, log_weights=zeros, policy_sum=zeros)

    def round(self, state: Exp3SState, learner: Learner, rng: np.random.Generator) -> Exp3SState:
        settings, gains = self.settings, learner[PredictionGain]
        target = state.tasks[0] if state.goal == "primary" else None
        if state.step == 0:
            learner.begin(state.steps)
        weights, sample = np.array(state.log_weights), state.sample
        policy_sum = np.array(state.policy_sum)
        stop = min(state.step + settings.round_steps, state.steps)
        records = np.empty(stop - state.step, dtype=STEP)
        for index, step in enumerate(range(state.step + 1, stop + 1)):
            policy = exp3s.sampling_policy(weights, settings.epsilon)
            arm = int(rng.choice(len(policy), p=policy))
            before, after = gains.train_with_gain(state.tasks[arm], target=target)
            gain = before - after
            if not np.isfinite(gain):
                raise SidequestError(
                    f"exp3s: the loss of {target or state.tasks[arm]!r} is not finite at step {step}, after a batch of "
                    f"{state.tasks[arm]!r} ({before:g}, then {after:g}): the training has diverged. Lower train.learning_rate."
                )
            sample = reservoir.add(sample, step - 1, gain, settings.reservoir, rng)
            bounds = reservoir.percentile_bounds(sample, settings.low, settings.high)
            weights = exp3s.update(
                weights,
                arm,
                reservoir.scale(gain, *bounds),
                step,
                eta=settings.eta,
                epsilon=settings.epsilon,
                importance=settings.importance,
            )
            policy_sum += policy
            records[index] = (arm, policy[arm], gain, before)
        curve = state.curve
        if stop == state.steps or stop * CURVE_POINTS // state.steps > state.step * CURVE_POINTS // state.steps:
            shown = exp3s.sampling_policy(weights, settings.epsilon)
            curve = [*curve, (stop, [round(float(share), 6) for share in shown])]
        return state.model_copy(
            update={
                "step": stop,
                "log_weights": weights.tolist(),
                "sample": sample,
                "policy_sum": policy_sum.tolist(),
                "curve": curve,
                "blocks": [*state.blocks, pack(records)],
            }
        )

    def done(self, state: Exp3SState) -> bool:
        return state.step >= state.steps

    def improved(self, state: Exp3SState) -> bool:
        """The model of the online policy is the one after its last step."""
        return self.settings.result == "model" and self.done(state)

    def total(self, state: Exp3SState) -> int:
        return -(-state.steps // self.settings.round_steps)

    def journal(self, state: Exp3SState) -> dict[str, object]:
        policy = exp3s.sampling_policy(np.array(state.log_weights), self.settings.epsilon)
        return {"step": state.step, "policy": policy_by_task(state.tasks, policy)}

    def recipe(self, state: Exp3SState) -> Recipe:
        policy = np.array(state.policy_sum) / state.step  # a budget may have ended the run before its planned length
        steps = unpack(state.blocks)
        drawn = np.bincount(steps["task"], minlength=len(state.tasks))
        gains = np.bincount(steps["task"], weights=steps["reward"], minlength=len(state.tasks)) / np.maximum(drawn, 1)
        final = exp3s.sampling_policy(np.array(state.log_weights), self.settings.epsilon)
        phase = policy_phase(
            state.tasks,
            policy,
            goal=state.goal,
            steps=state.steps,
            least_primary_share=self.settings.least_primary_share,
        )
        most, least = state.tasks[int(policy.argmax())], state.tasks[int(policy.argmin())]
        return Recipe(
            method=self.name,
            primary=state.tasks[0],
            phases=(phase,),
            evidence={
                "goal": state.goal,
                "steps": state.step,
                "mean_policy": policy_by_task(state.tasks, policy),
                "final_policy": policy_by_task(state.tasks, final),
                "drawn": dict(zip(state.tasks, drawn.tolist(), strict=True)),
                "mean_gain": dict(zip(state.tasks, gains.tolist(), strict=True)),
                "policy_over_time": {
                    "step": [step for step, _ in state.curve],
                    "policy": {
                        name: [policy[index] for _, policy in state.curve] for index, name in enumerate(state.tasks)
                    },
                },
            },
            verdict=f"drew {most} most ({policy.max():.3f}) and {least} least ({policy.min():.3f}); "
            f"uniform is {1 / len(policy):.3f}",
        )

    def artifacts(self, state: Exp3SState) -> dict[str, bytes]:
        about = {"method": self.name, "policy": None, "settings": self.settings.model_dump(mode="json")}
        log = PolicyLog(tuple(state.tasks), unpack(state.blocks), state.goal, "prediction-gain", about)
        return {"logs/exp3s.parquet": log.to_parquet()}
