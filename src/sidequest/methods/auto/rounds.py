"""What `auto` has seen: rounds of arms trained at one length, and the state that holds them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np
from pydantic import BaseModel, ConfigDict

from sidequest.methods.auto.arms import Arm
from sidequest.methods.auto.decision import JudgedArm, Spread, judge, spread_of
from sidequest.methods.base import State

Stage = Literal["screen", "probe", "compose", "shares", "guard"]


class Round(BaseModel):
    """Arms trained at one length on one or more seeds. truth: by arm, for each seed the probability of the truth per row."""

    model_config = ConfigDict(extra="forbid")

    stage: Stage
    arms: list[Arm]
    length: float
    seeds: list[int]
    truth: dict[str, list[list[float] | None]] = {}

    @property
    def complete(self) -> bool:
        return all(row is not None for arm in self.arms for row in self.truth.get(arm.name, [None]))

    def pending(self) -> Iterator[tuple[Arm, int]]:
        for arm in self.arms:
            for index, seed in enumerate(self.seeds):
                if self.truth.get(arm.name, [None] * len(self.seeds))[index] is None:
                    yield arm, seed

    def rows(self, arm: Arm) -> np.ndarray:
        """The probability of the truth, float64 [seeds, rows]."""
        return np.array(self.truth[arm.name], dtype=np.float64)

    @property
    def by_arm(self) -> dict[str, list[np.ndarray]]:
        return {arm.name: list(self.rows(arm)) for arm in self.arms}

    @property
    def controls(self) -> list[str]:
        return [arm.name for arm in self.arms if arm.is_control]

    def judged(self, known: Spread | None = None) -> dict[str, JudgedArm]:
        return judge(self.by_arm, self.controls, known)


class AutoState(State):
    """beside: what a batch of an auxiliary costs for one of the primary, whose last batch may be short. looks: x that a probe's
    looks at *select* cost. related: what labels say of many candidates. rounds: complete ones and the one that runs. choice: what
    the complete rounds say. finished: nothing more is to be done."""

    primary: str
    candidates: list[str]
    objectives: dict[str, str]
    epochs: float
    goal: str = "primary"
    beside: float = 1.0
    looks: float = 0.0
    related: dict[str, float] = {}
    rounds: list[Round] = []
    choice: Arm | None = None
    finished: bool = False


def spread_before(state: AutoState, now: Round) -> Spread:
    """The spread between runs that the rounds before this one showed."""
    before = state.rounds[: state.rounds.index(now)]
    return sum((spread_of(one.by_arm, one.controls) for one in before if one.stage != "screen"), Spread())
