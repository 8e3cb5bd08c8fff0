"""`auto`: which auxiliaries, how much of each, and whether any at all, at the cost of a few training runs.

Not from one paper. It unites what was measured about choosing cheaply: noise of the metric on a small *select* is what limits
every search, effects of auxiliaries are nearly additive, and of short runs the longer ones say more than many. So:

1. *probe*: short runs, the primary alone twice and beside each candidate once, judged row by row by the log-likelihood of the
   truth after one temperature; where *select* is small, also on rows of the primary's train that no probe learns from. With very
   many candidates first what their labels know of the primary's, by read-outs without training.
2. *confirm*: those that gained most, and the primary alone, again with another seed. What stands out over both rounds from the
   noise of rows and of runs is chosen, and what is near it.
3. *rows* (with budget, where a chosen candidate has many more than the primary): all of them, or those that look most like the
   primary's, ranked as `similarity` ranks them.
4. *shares* (with budget): more or less of the auxiliaries, and a last stretch on the primary alone.
5. *guard* (with budget): the choice, as long as the budget allows, against the primary alone, the read-out and, where there is
   room, the primary alone for as many batches and a shuffled copy. A tie goes to the primary alone: "no auxiliary helps" is an
   ordinary answer.

Each round is a function of what the rounds before it showed, so runs may be parallel and come back in any order. Stopped
anywhere, it answers by the runs that have ended.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from pydantic import Field

from sidequest.errors import SettingsError
from sidequest.learning.protocol import LabelScreen, Learner, Piece, TaskDiscriminator
from sidequest.methods.auto.arms import Arm, Kind
from sidequest.methods.auto.decision import chosen, least_z
from sidequest.methods.auto.lengths import (
    EFFORTS,
    FULL,
    GUARDED,
    LEAST,
    LONG_ENOUGH,
    MOST_PROBED,
    SHORTEST,
    USUAL,
    USUAL_EFFORT,
    costs_of,
    length_for,
    parts_of,
    whole_batches,
)
from sidequest.methods.auto.rounds import ALONE, AutoState, Round, Stage, gains_so_far
from sidequest.methods.auto.rows import PARTS, RANKING_PART, best_first, planned, rows_of, with_many_rows
from sidequest.methods.auto.screen import most_related
from sidequest.methods.auto.stages import beside, best_change, guard_of, held, shares_of, with_rows, without
from sidequest.methods.auto.words import evidence, evidence_of_rows, verdict
from sidequest.methods.base import Method, Plan
from sidequest.methods.similarity.ranking import Ranking, RowRankingState
from sidequest.methods.similarity.row_sampling import pack, unpack
from sidequest.recipe import Phase, Recipe
from sidequest.settings import Settings
from sidequest.tasks.pool import Pool


class AutoSettings(Settings):
    """effort: 1 to 5, about 1, 3, 6, 12 and 25 single-task training runs. None: 2, but 3 where an encoder is fine-tuned: in short
        runs it learns sooner beside whatever adds steps, and effort 3 holds its choice against the primary alone in long ones.
    doubt: how often something may be chosen where nothing helps; the best candidate must stand out accordingly.
    keep: the part of the best gain that another must reach to be chosen with it.
    most: auxiliaries in a set.
    """

    effort: int | None = Field(None, ge=1, le=5)
    doubt: float = Field(0.1, gt=0, lt=1)
    keep: float = Field(0.5, ge=0, le=1)
    most: int = Field(3, ge=1)


class Auto(Method[AutoSettings, AutoState]):
    """The answer itself."""

    name = "auto"
    summary = "short runs beside every candidate, again beside the best, keep what stands out from the noise"
    cost = "about 3x (hf: 6x)"
    returns = "tasks, mixture"
    anytime = True
    Settings = AutoSettings
    State = AutoState

    def start(self, pool: Pool, rng: np.random.Generator) -> AutoState:
        candidates = list(pool.candidates)
        state = AutoState(
            primary=pool.primary,
            candidates=candidates,
            epochs=pool.train.epochs,
            goal=pool.goal,
            fine_tunes=pool.fine_tunes,
            **costs_of(pool),
            finished=not candidates,
        )
        if state.finished or len(candidates) > MOST_PROBED:
            return state
        return self._probe(state, candidates)

    def round(self, state: AutoState, learner: Learner, rng: np.random.Generator) -> AutoState:
        """With many candidates, before any training: what their labels say. Later, a step of the ranking of rows."""
        if state.ranking is not None:
            return self._rank(state, learner)
        related: dict[str, float] = {}
        for name in state.candidates:
            try:
                related[name] = learner[LabelScreen].label_relatedness(name)
            except SettingsError:  # a model without features to read out
                related[name] = math.nan
        state = state.model_copy(update={"related": related})
        return self._probe(state, most_related(related, self.seed))

    def ask(self, state: AutoState, n: int) -> list[Plan]:
        if not state.rounds:
            return []
        ranked = {name: unpack(ids, np.int64) for name, ids in state.ranked.items()}
        return list(state.rounds[-1].plans(state.primary, state.epochs, lambda arm: rows_of(arm, ranked)))[:n]

    def tell_rows(self, state: AutoState, plan: Plan, score: float, rows: np.ndarray | None) -> AutoState:
        now = state.rounds[-1]
        if rows is not None:
            now = now.told(plan, rows)
        elif plan.measure == "read-out":  # this model has none
            now = now.model_copy(update={"arms": [arm for arm in now.arms if arm.kind != "read-out"]})
        else:
            raise TypeError("auto needs the likelihood of the truth per row")
        state = state.model_copy(update={"rounds": [*state.rounds[:-1], now]})
        return self._next(state) if now.complete else state

    def done(self, state: AutoState) -> bool:
        return state.finished

    # What comes after a complete round

    def _next(self, state: AutoState) -> AutoState:
        now = state.rounds[-1]
        if now.stage == "guard":
            assert state.choice is not None
            # Where short runs may mislead, long ones alone must show it; else they need only not speak against it.
            least = self._beyond_noise if state.fine_tunes else 0.0
            return state.model_copy(update={"finished": True, "choice": held(now, state.choice, least)})
        if now.stage in ("shares", "rows"):
            least = 1.0 if now.stage == "shares" else least_z(len(PARTS), self.settings.doubt)
            return self._begin(state.model_copy(update={"choice": best_change(now, least)}))
        names = self._chosen(state)
        state = state.model_copy(update={"choice": beside(names) if names else None})
        if now.stage == "probe" and "confirm" in self._budgets(state):
            gains = gains_so_far(state)
            gained = sorted((name for name in gains if gains[name].mean > 0), key=lambda name: -gains[name].mean)
            return self._arms(state, "confirm", gained[: self._kept(state)]) if gained else self._end(state)
        return self._begin(state) if names else self._end(state)

    def _chosen(self, state: AutoState) -> list[str]:
        tried = len(state.rounds[0].seen) - 1
        return chosen(gains_so_far(state), tried, self.settings.doubt, self.settings.keep, self.settings.most)

    def _end(self, state: AutoState) -> AutoState:
        return state.model_copy(update={"finished": True})

    def _begin(self, state: AutoState) -> AutoState:
        """The next stage that the budget has room for, or the end."""
        choice = state.choice
        assert choice is not None
        done = {one.stage for one in state.rounds}
        budgets = self._budgets(state)
        if "rows" in budgets and "rows" not in done and not state.no_rows:
            now = self._round(state, "rows", with_rows(choice))
            if state.ranked:
                return self._add(state, now)
            if now.length >= LEAST and self._ranking(state) is not None:
                return state.model_copy(update={"ranking": RowRankingState()})
            state = state.model_copy(update={"no_rows": "it costs more than the budget has left for it"})
        if "shares" in budgets and "shares" not in done:
            now = self._round(state, "shares", shares_of(choice))
            if now.length >= LEAST:
                return self._add(state, now)
        if "guard" in budgets and "guard" not in done:
            held_to, now = self._guard(state, choice)
            left_out = [name for name in choice.tasks if name not in held_to.tasks]
            return self._add(state.model_copy(update={"choice": held_to, "left_out": left_out}), now)
        return self._end(state)

    def _guard(self, state: AutoState, choice: Arm) -> tuple[Arm, Round]:
        """Half-trained, the primary alone would gain more from further batches of its own than it does in the end: where the
        budget is short, rivals are left out before the runs are. A fine-tuned model learns sooner beside anything, so its guard
        has the full length: if need be with equal shares, then without the auxiliaries that gained least."""
        enough = FULL if state.fine_tunes else LONG_ENOUGH
        dear: tuple[Kind, ...]
        while True:
            for dear in ((), ("permuted",), ("permuted", "longer")):
                now = self._round(state, "guard", guard_of(choice, state.goal, self.seed, left_out=dear))
                if now.length >= enough:
                    return choice, now
            equal = beside(list(choice.tasks))
            if not state.fine_tunes:
                return choice, now
            if choice != equal and equal.cost(1.0) <= choice.cost(1.0):
                choice = equal
            elif len(choice.tasks) > 1:
                gains = gains_so_far(state)
                choice = without(choice, min(choice.tasks, key=lambda name: gains[name].mean))
            else:  # one auxiliary and the primary alone are 3x, which every budget with a guard can pay
                return choice, now.model_copy(update={"length": 1.0})

    @property
    def _beyond_noise(self) -> float:
        """By how many standard errors a long run must stand above another, where short runs prove nothing."""
        return max(0.0, least_z(1, self.settings.doubt))

    def _add(self, state: AutoState, now: Round) -> AutoState:
        return state.model_copy(update={"rounds": [*state.rounds, now]})

    def _probe(self, state: AutoState, candidates: list[str]) -> AutoState:
        begun = self._arms(state, "probe", candidates)
        return begun if begun.rounds[-1].length >= SHORTEST else self._end(state)

    def _arms(self, state: AutoState, stage: Stage, names: list[str]) -> AutoState:
        arms = [ALONE, *(Arm(kind="candidate", tasks=(name,)) for name in sorted(names))]
        return self._add(state, self._round(state, stage, arms))

    # Which rows

    def _ranking(self, state: AutoState) -> Ranking | None:
        return planned(state, self._budgets(state)["rows"], self.seed)

    def _rank(self, state: AutoState, learner: Learner) -> AutoState:
        ranking = self._ranking(state)
        assert ranking is not None
        assert state.ranking is not None
        try:
            power = learner[TaskDiscriminator]
        except SettingsError as error:
            return self._begin(state.model_copy(update={"ranking": None, "no_rows": str(error)}))
        now = ranking.step(state.ranking, learner)
        state = state.model_copy(update={"ranking": now})
        if not ranking.is_done(now):
            return state
        ranked = {name: pack(ids) for name, ids in best_first(ranking, power).items()}
        if not ranked:
            said = "no row has a score that is a finite number"
            return self._begin(state.model_copy(update={"ranking": None, "no_rows": said}))
        return self._begin(state.model_copy(update={"ranked": ranked}))

    def ahead(self, state: AutoState) -> Sequence[Piece]:
        ranking = self._ranking(state) if state.ranking is not None and not state.ranked else None
        return () if ranking is None or state.ranking is None else ranking.ahead(state.ranking)

    # What it may cost

    def _effort(self, state: AutoState) -> int:
        return self.settings.effort or (GUARDED if state.fine_tunes else USUAL_EFFORT)

    def _x(self, state: AutoState) -> float:
        return min(EFFORTS[self._effort(state)], math.inf if self.budget is None else self.budget)

    def _spent(self, state: AutoState) -> float:
        """x of the rounds so far, as they were planned."""
        ranking = RANKING_PART * self._budgets(state)["rows"] if state.ranking is not None else 0.0
        learned = {one.stage: 1 - one.hold_out / max(state.rows, 1) for one in state.rounds}
        return ranking + sum(
            len(one.seeds_of(arm)) * (learned[one.stage] * arm.cost(one.length, state.beside) + state.looks)
            for one in state.rounds
            for arm in one.arms
        )

    def _budgets(self, state: AutoState) -> dict[str, float]:
        """x for each stage."""
        x = self._x(state)
        parts = parts_of(x, state.fine_tunes, in_rows=not state.no_rows and bool(with_many_rows(state)))
        if self.budget is None:  # else it is the last word
            parts["probe"] *= min(2.0, max(1.0, len(state.candidates) / USUAL))
        return {stage: part * x for stage, part in parts.items()}

    def _kept(self, state: AutoState) -> int:
        """How many are confirmed."""
        return min(self.settings.most, max(2, math.ceil(len(state.candidates) / 3)))

    def _round(self, state: AutoState, stage: Stage, arms: list[Arm]) -> Round:
        first = self.seed + 100 * (1 + len(state.rounds))
        hold_out = 0 if stage == "guard" else state.hold_out
        if stage in ("probe", "confirm"):
            length, repeats = self._of_probes(state, len(arms) - 1)
        else:
            each = sum(arm.cost(1.0, state.beside) for arm in arms)
            looks = state.looks * sum(arm.kind != "read-out" for arm in arms)
            room = self._budgets(state)[stage]
            if stage == "rows":
                room *= 1 - RANKING_PART
            if stage == "guard":  # the last: all that is left
                room = max(room, self._x(state) - self._spent(state))
            length, repeats = length_for(state, stage, room, each, looks, hold_out)
        length = whole_batches(state, length, hold_out)
        seeds = list(range(first, first + repeats))
        more = [first + repeats] if stage == "probe" else []
        return Round(stage=stage, arms=arms, length=length, seeds=seeds, more=more, hold_out=hold_out)

    def _of_probes(self, state: AutoState, tried: int) -> tuple[float, int]:
        """Both rounds have one length and as many seeds, so that all their runs can be compared."""
        if state.rounds:
            return state.rounds[0].length, len(state.rounds[0].seeds)
        budgets = self._budgets(state)
        alone, beside = 2, tried
        if "confirm" in budgets:
            alone, beside = alone + 1, beside + self._kept(state)
        each = alone + beside * Arm(kind="candidate", tasks=("any",)).cost(1.0, state.beside)
        room = budgets["probe"] + budgets.get("confirm", 0.0)
        return length_for(state, "probe", room, each, state.looks * (alone + beside), state.hold_out)

    # The answer

    def _as_far_as_seen(self, state: AutoState) -> AutoState:
        """With the choice by all runs that have ended, where a look at single candidates was stopped."""
        if state.finished or not state.rounds or state.rounds[-1].stage not in ("probe", "confirm"):
            return state
        names = self._chosen(state) if gains_so_far(state) else []
        return state.model_copy(update={"choice": beside(names) if names else None})

    def recipe(self, state: AutoState) -> Recipe:
        state = self._as_far_as_seen(state)
        phases: tuple[Phase, ...] = (Phase(shares={state.primary: 1}),)
        if state.choice is not None:
            ranked = {name: unpack(ids, np.int64) for name, ids in state.ranked.items()}
            subsets = rows_of(state.choice, ranked)
            phases = state.choice.phases(state.primary, state.epochs, whole=True, subsets=subsets)
        return Recipe(
            method=self.name,
            primary=state.primary,
            phases=phases,
            evidence={"related": state.related, "effort": self._effort(state)}
            | {"rounds": [evidence(one) for one in state.rounds if one.seen]}
            | evidence_of_rows(state),
            verdict=verdict(state, self._beyond_noise if state.fine_tunes else 0.0),
        )

    def total(self, state: AutoState) -> int | None:
        return None

    def journal(self, state: AutoState) -> dict[str, Any]:
        now = next((one for one in reversed(state.rounds) if one.truth), None)
        if now is None:
            return {}
        if state.ranking is not None and not state.ranked:
            return {"stage": "rows", "ranked": state.ranking.ranked}
        return {"stage": now.stage, "arms": f"{len(now.truth)} of {len(now.arms)}"}
