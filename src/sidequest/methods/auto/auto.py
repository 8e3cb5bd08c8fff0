"""`auto`: which auxiliaries, how much of each, and whether any at all, at the cost of a few training runs.

Not from one paper. It unites what was measured about choosing cheaply: noise of the metric on a small *select* is what limits
every search, effects of auxiliaries are nearly additive, and of short runs the longer ones say more than many. So:

1. *probe*: short runs, the primary alone twice and beside each candidate once, judged row by row by the log-likelihood of the
   truth after one temperature; where *select* is small, also on rows of the primary's train that no probe learns from. With very
   many candidates first what their labels know of the primary's, by read-outs without training.
2. *confirm*: those that gained most, and the primary alone, again with another seed. What stands out over both rounds from the
   noise of rows and of runs is chosen, and what is near it.
3. *shares* (with budget): more or less of the auxiliaries, and a last stretch on the primary alone.
4. *guard* (with budget): the choice at full length against the primary alone, alone for as many batches, and a shuffled copy. A
   tie goes to the primary alone: "no auxiliary helps" is an ordinary answer.

Each round is a function of what the rounds before it showed, so runs may be parallel and come back in any order. Stopped
anywhere, it answers by the rounds that are complete.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from pydantic import Field

from sidequest.errors import SettingsError
from sidequest.learning.meter import EVALUATION_SHARE
from sidequest.learning.protocol import LabelScreen, Learner
from sidequest.methods.auto.arms import Arm
from sidequest.methods.auto.decision import chosen, gains
from sidequest.methods.auto.rounds import ALONE, AutoState, Round, Stage, gains_so_far
from sidequest.methods.auto.words import evidence, verdict
from sidequest.methods.base import Method, Plan
from sidequest.recipe import Phase, Recipe
from sidequest.settings import Settings
from sidequest.tasks.pool import Pool

EFFORTS = {1: 1.0, 2: 3.0, 3: 6.0, 4: 12.0, 5: 25.0}  # x
USUAL = 8  # candidates; the probe of more may cost up to twice as much
MOST_PROBED = 16  # more are ordered by their labels before any training
LONGEST = {"probe": 0.4, "confirm": 0.4, "shares": 0.6, "guard": 1.0}  # of the primary's length
SHORTEST = 0.02  # of the primary's length: less training says nothing of a candidate
WORTH_REPEATING = 0.25  # a length at which a further seed says more than further length
MOST_SEEDS = 3
LOOKS = 3  # at *select* in a probe
FINISH = 0.3  # of the primary's epochs: a last stretch alone, as in "train together, then fine-tune"
ENOUGH_ROWS = 200  # to judge by; with a smaller *select*, rows of train are held out
MOST_HELD_OUT = 1 / 3  # of the primary's train


class AutoSettings(Settings):
    """effort: 1 to 5, about 1, 3, 6, 12 and 25 single-task training runs. doubt: how often something may be chosen where nothing
    helps; the best candidate must stand out accordingly. keep: the part of the best gain that another must reach to be chosen
    with it. most: auxiliaries in a set."""

    effort: int = Field(2, ge=1, le=5)
    doubt: float = Field(0.1, gt=0, lt=1)
    keep: float = Field(0.5, ge=0, le=1)
    most: int = Field(3, ge=1)


class Auto(Method[AutoSettings, AutoState]):
    """The answer itself."""

    name = "auto"
    summary = "short runs beside every candidate, again beside the best, keep what stands out from the noise"
    cost = "about 3x (effort 2)"
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
            **_costs(pool),
            finished=not candidates,
        )
        if state.finished or len(candidates) > MOST_PROBED:
            return state
        return self._probe(state, candidates)

    def round(self, state: AutoState, learner: Learner, rng: np.random.Generator) -> AutoState:
        """With many candidates, before any training: what their labels say."""
        related: dict[str, float] = {}
        for name in state.candidates:
            try:
                related[name] = learner[LabelScreen].label_relatedness(name)
            except SettingsError:  # a model without features to read out
                related[name] = math.nan
        state = state.model_copy(update={"related": related})
        return self._probe(state, self._related(state))

    def _related(self, state: AutoState) -> list[str]:
        """Those of which nothing can be said first, then the most related; the last place goes to one of the others at random."""
        first = np.random.default_rng([self.seed, 1]).permutation(state.candidates).tolist()
        told = {name: state.related[name] for name in first}
        ranked = sorted(first, key=lambda name: -math.inf if math.isnan(told[name]) else -told[name])
        rng = np.random.default_rng([self.seed, len(ranked)])
        return sorted([*ranked[: MOST_PROBED - 1], ranked[int(rng.integers(MOST_PROBED - 1, len(ranked)))]])

    def ask(self, state: AutoState, n: int) -> list[Plan]:
        if not state.rounds:
            return []
        return list(state.rounds[-1].plans(state.primary, state.epochs))[:n]

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
            means = {arm.name: now.rows(arm).mean() for arm in now.arms}
            mine = means.pop(state.choice.name)
            holds = mine > max(means.values())
            return state.model_copy(update={"finished": True, "choice": state.choice if holds else None})
        if now.stage == "shares":
            return self._begin(state.model_copy(update={"choice": self._best_share(now)}))
        names = self._chosen(state)
        state = state.model_copy(update={"choice": _beside(names) if names else None})
        if now.stage == "probe" and "confirm" in self._budgets(state):
            gains = gains_so_far(state)
            gained = sorted((name for name in gains if gains[name].mean > 0), key=lambda name: -gains[name].mean)
            return self._arms(state, "confirm", gained[: self._kept(state)]) if gained else self._end(state)
        return self._begin(state) if names else self._end(state)

    def _chosen(self, state: AutoState) -> list[str]:
        tried = len(state.rounds[0].arms) - 1
        return chosen(gains_so_far(state), tried, self.settings.doubt, self.settings.keep, self.settings.most)

    def _end(self, state: AutoState) -> AutoState:
        return state.model_copy(update={"finished": True})

    def _begin(self, state: AutoState) -> AutoState:
        """The next stage that the budget has room for, or the end."""
        assert state.choice is not None
        done = {one.stage for one in state.rounds}
        budgets = self._budgets(state)
        if "shares" in budgets and "shares" not in done:
            return self._add(state, self._round(state, "shares", _shares_of(state.choice)))
        if "guard" in budgets and "guard" not in done:
            return self._add(state, self._round(state, "guard", _guard_of(state.choice, state.goal, self.seed)))
        return self._end(state)

    def _add(self, state: AutoState, now: Round) -> AutoState:
        return state.model_copy(update={"rounds": [*state.rounds, now]})

    def _probe(self, state: AutoState, candidates: list[str]) -> AutoState:
        begun = self._arms(state, "probe", candidates)
        return begun if begun.rounds[-1].length >= SHORTEST else self._end(state)

    def _arms(self, state: AutoState, stage: Stage, names: list[str]) -> AutoState:
        arms = [ALONE, *(Arm(kind="candidate", tasks=(name,)) for name in sorted(names))]
        return self._add(state, self._round(state, stage, arms))

    def _best_share(self, now: Round) -> Arm:
        """The share with the highest gain; equal shares unless another is better by a standard error."""
        equal, *others = [arm for arm in now.arms if arm.kind in ("candidate", "set")]
        best = max(others, key=lambda arm: now.rows(arm).mean())
        found = gains({arm.name: now.rows(arm) for arm in now.arms}, equal.name)
        return best if found[best.name].z > 1 else equal

    # What it may cost

    def _budgets(self, state: AutoState) -> dict[str, float]:
        """x for each stage."""
        x = min(EFFORTS[self.settings.effort], math.inf if self.budget is None else self.budget)
        if x < 2:
            parts = {"probe": 1.0}
        elif x < 5:
            parts = {"probe": 0.57, "confirm": 0.43}
        elif x < 10:
            parts = {"probe": 0.35, "confirm": 0.2, "guard": 0.45}
        else:
            parts = {"probe": 0.25, "confirm": 0.15, "shares": 0.35, "guard": 0.25}
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
            length, repeats = self._length(state, stage, self._budgets(state)[stage], each, looks, hold_out)
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
        return self._length(state, "probe", room, each, state.looks * (alone + beside), state.hold_out)

    def _length(
        self, state: AutoState, stage: Stage, room: float, each: float, looks: float, hold_out: int
    ) -> tuple[float, int]:
        """A round's length and number of seeds, from the x it may cost, and what it costs at full length and in looks."""
        each *= 1 - hold_out / max(state.rows, 1)
        repeats = min(MOST_SEEDS, max(1, int(room / (each * WORTH_REPEATING))))
        room /= repeats
        return min(LONGEST[stage], max(room - looks, 0.5 * room) / each), repeats

    # The answer

    def recipe(self, state: AutoState) -> Recipe:
        phases: tuple[Phase, ...] = (Phase(shares={state.primary: 1}),)
        if state.choice is not None:
            phases = state.choice.phases(state.primary, state.epochs, whole=True)
        return Recipe(
            method=self.name,
            primary=state.primary,
            phases=phases,
            evidence={"related": state.related} | {"rounds": [evidence(one) for one in state.rounds if one.complete]},
            verdict=verdict(state),
        )

    def total(self, state: AutoState) -> int | None:
        return None

    def journal(self, state: AutoState) -> dict[str, Any]:
        now = next((one for one in reversed(state.rounds) if one.truth), None)
        if now is None:
            return {}
        return {"stage": now.stage, "arms": len(now.truth), "of": len(now.arms)}


def _costs(pool: Pool) -> dict[str, Any]:
    card, size = pool.cards[pool.primary], pool.train.batch_size
    if pool.goal == "average":
        return {}
    return {
        "rows": card.rows,
        "hold_out": max(0, min(int(MOST_HELD_OUT * card.rows), ENOUGH_ROWS - card.select_rows)),
        "beside": math.ceil(card.rows / size) * size / card.rows,
        "looks": LOOKS * EVALUATION_SHARE * card.select_rows / (pool.train.epochs * card.rows),
    }


def _beside(names: list[str]) -> Arm:
    return Arm(kind="set" if len(names) > 1 else "candidate", tasks=tuple(sorted(names)))


def _guard_of(choice: Arm, goal: str, seed: int) -> list[Arm]:
    """The choice, and what it must beat. A read-out has rows of the primary alone, so not where the goal is the average."""
    more = max(1, math.ceil(len(choice.tasks) * choice.share / choice.primary_share))
    shuffled = Arm(kind="permuted", tasks=choice.tasks[:1], permutation=1000 * seed + 500)
    rivals = [choice, ALONE, Arm(kind="longer", beside=more), shuffled]
    return rivals if goal == "average" else [*rivals, Arm(kind="read-out")]


def _shares_of(choice: Arm) -> list[Arm]:
    """Equal shares first; less and more of the auxiliaries; and a last stretch on the primary alone."""
    changes: list[dict[str, Any]] = [{"primary_share": 3}, {"share": 3}, {"finish": FINISH}]
    return [choice, *(choice.model_copy(update=change) for change in changes), ALONE]
