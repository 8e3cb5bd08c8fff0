"""What `auto` has seen: rounds of arms trained at one length, and the state that holds them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Literal

import numpy as np
from pydantic import BaseModel, ConfigDict

from sidequest.methods.auto.arms import Arm
from sidequest.methods.auto.decision import Gain, gains
from sidequest.methods.base import Plan, State
from sidequest.methods.similarity.ranking import RowRankingState
from sidequest.recipe import Subset

Stage = Literal["probe", "confirm", "rows", "shares", "guard"]
ALONE = Arm(kind="single")


class Round(BaseModel):
    """Arms trained on one or more seeds. more: further seeds of the primary alone, which every gain leans on. hold_out: rows of
    the primary's train that are looked at instead of learned from. truth: by arm and seed, the log-likelihood per row."""

    model_config = ConfigDict(extra="forbid")

    stage: Stage
    arms: list[Arm]
    length: float
    seeds: list[int]
    more: list[int] = []
    hold_out: int = 0
    truth: dict[str, dict[int, list[float]]] = {}

    def seeds_of(self, arm: Arm) -> list[int]:
        return self.seeds + self.more * (arm == ALONE)

    @property
    def complete(self) -> bool:
        return next(self._missing(), None) is None

    def _missing(self) -> Iterator[tuple[Arm, int]]:
        for arm in self.arms:
            yield from ((arm, seed) for seed in self.seeds_of(arm) if seed not in self.truth.get(arm.name, {}))

    def plans(self, primary: str, epochs: float, subsets: Callable[[Arm], Mapping[str, Subset]]) -> Iterator[Plan]:
        """What is still to be trained. subsets: the rows that an arm takes of its tasks, where not all."""
        for arm, seed in self._missing():
            yield arm.plan(primary, epochs, self.length, seed, self.hold_out, subsets(arm))

    def told(self, plan: Plan, rows: np.ndarray) -> Round:
        """With the rows of a plan."""
        name = plan.note["arm"]
        return self.model_copy(
            update={"truth": {**self.truth, name: {**self.truth.get(name, {}), plan.seed: rows.tolist()}}}
        )

    @property
    def seen(self) -> list[Arm]:
        """Arms of which a run has ended: all of them in a complete round; none before one of the primary alone has."""
        return [arm for arm in self.arms if self.truth.get(arm.name)] if self.truth.get(ALONE.name) else []

    def rows(self, arm: Arm) -> np.ndarray:
        """float64 [seeds that have ended, rows]."""
        known = self.truth[arm.name]
        return np.array([known[seed] for seed in self.seeds_of(arm) if seed in known], dtype=np.float64)

    def gains(self) -> dict[str, Gain]:
        """Of every arm that was seen over the primary alone, by this round alone."""
        return gains({arm.name: self.rows(arm) for arm in self.seen}, ALONE.name)


class AutoState(State):
    """fine_tunes: whether the model is one whose short runs mislead. left_out: chosen by short runs, but not held to a guard.

    rows: of the primary's train; sizes: of the candidates'; batch_size: of training. hold_out: as of rounds.
    beside: what a batch of an auxiliary costs for one of the primary, whose last batch may be short. looks: x that a probe's
    evaluations on *select* cost.

    related: what labels say of many candidates. ranking: of the rows of the choice, if it has started; ranked: ids of each task's
    rows in that order, packed; no_rows: why rows were not looked at. rounds: complete ones and the one that runs. choice: what
    the complete rounds say. finished: nothing more is to be done.
    """

    primary: str
    candidates: list[str]
    epochs: float
    goal: str = "primary"
    fine_tunes: bool = False
    left_out: list[str] = []
    rows: int = 0
    sizes: dict[str, int] = {}
    batch_size: int = 1
    hold_out: int = 0
    beside: float = 1.0
    looks: float = 0.0
    related: dict[str, float] = {}
    ranking: RowRankingState | None = None
    ranked: dict[str, str] = {}
    no_rows: str = ""
    rounds: list[Round] = []
    choice: Arm | None = None
    finished: bool = False


def gains_so_far(state: AutoState) -> dict[str, Gain]:
    """Of the candidates in the last look at single candidates, with all that was seen of every arm at that length. Of a round
    that was stopped, those of which something was seen."""
    looks = [one for one in state.rounds if one.stage in ("probe", "confirm") and one.seen]
    if not looks:
        return {}
    runs: dict[str, list[np.ndarray]] = {}
    for one in looks:
        for arm in one.seen:
            runs.setdefault(arm.name, []).append(one.rows(arm))
    found = gains({name: np.concatenate(rows) for name, rows in runs.items()}, ALONE.name)
    return {arm.name: found[arm.name] for arm in looks[-1].arms if arm != ALONE and arm.name in found}
