"""What `auto` has seen: rounds of arms trained at one length, and the state that holds them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np
from pydantic import BaseModel, ConfigDict

from sidequest.methods.auto.arms import Arm
from sidequest.methods.auto.decision import Gain, combined, gain
from sidequest.methods.base import Plan, State
from sidequest.recipe import Phase

Stage = Literal["probe", "confirm", "shares", "guard"]
ALONE = Arm(kind="single")


class Round(BaseModel):
    """Arms trained on one or more seeds. trunk: the part of the primary's length that is trained alone before, once for all arms
    of a seed; 0: each arm is a run of its own. truth: by arm, for each seed the probability of the truth per row."""

    model_config = ConfigDict(extra="forbid")

    stage: Stage
    arms: list[Arm]
    trunk: float
    length: float
    seeds: list[int]
    truth: dict[str, list[list[float] | None]] = {}

    @property
    def complete(self) -> bool:
        return all(row is not None for arm in self.arms for row in self.truth.get(arm.name, [None]))

    def plans(self, primary: str, epochs: float) -> Iterator[Plan]:
        """What is still to be trained: with a trunk, one plan for each seed."""
        for index, seed in enumerate(self.seeds):
            missing = [arm for arm in self.arms if self.truth.get(arm.name, [None] * len(self.seeds))[index] is None]
            if self.trunk and missing:
                trunk = Phase(shares={primary: 1}, epochs=epochs * self.trunk, stop_early=False)
                branches = tuple(arm.phases(primary, epochs, self.length) for arm in self.arms)
                label = f"auto: {self.stage}, {len(branches)} branches of one trunk"
                yield Plan(phases=(trunk,), branches=branches, seed=seed, label=label, measure="truth")
            elif not self.trunk:
                yield from (arm.plan(primary, epochs, self.length, seed) for arm in missing)

    def told(self, plan: Plan, rows: np.ndarray) -> Round:
        """With the rows of a plan."""
        names = [arm.name for arm in self.arms] if plan.branches else [plan.note["arm"]]
        truth = {name: list(found) for name, found in self.truth.items()}
        for name, each in zip(names, np.atleast_2d(rows).tolist(), strict=True):
            truth.setdefault(name, [None] * len(self.seeds))[self.seeds.index(plan.seed)] = each
        return self.model_copy(update={"truth": truth})

    def rows(self, arm: Arm) -> np.ndarray:
        """The probability of the truth, float64 [seeds, rows]."""
        return np.array(self.truth[arm.name], dtype=np.float64)

    def gains(self) -> dict[str, Gain]:
        """Of every arm over the primary alone."""
        return {arm.name: gain(self.rows(arm), self.rows(ALONE)) for arm in self.arms}


class AutoState(State):
    """beside: what a batch of an auxiliary costs for one of the primary, whose last batch may be short. looks: x that a probe's
    looks at *select* cost. related: what labels say of many candidates. rounds: complete ones and the one that runs. choice: what
    the complete rounds say. finished: nothing more is to be done."""

    primary: str
    candidates: list[str]
    epochs: float
    goal: str = "primary"
    beside: float = 1.0
    looks: float = 0.0
    related: dict[str, float] = {}
    rounds: list[Round] = []
    choice: Arm | None = None
    finished: bool = False


def gains_so_far(state: AutoState) -> dict[str, Gain]:
    """Of the candidates in the last complete look at single candidates, with all that was seen of them before."""
    looks = [one.gains() for one in state.rounds if one.stage in ("probe", "confirm") and one.complete and one.truth]
    singles = [name for name in looks[-1] if name != ALONE.name]
    return {name: combined([one[name] for one in looks if name in one]) for name in singles}
