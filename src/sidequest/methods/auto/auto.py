"""`auto`: which auxiliaries, how much of each, and whether any at all, at the cost of a few training runs.

Not from one paper. It unites what was measured about choosing cheaply: noise of the metric on a small *select* is what limits
every search, the truth is nearly additive, and short runs flatter any extra training. So:

1. *probe*: every candidate beside the primary for a fraction of the length, all with the same seed and so the same order of the
   primary's rows, scored by the probability of the truth per row; beside them controls: the primary alone, and candidates with
   shuffled targets. With many candidates first what their labels know of the primary's, by read-outs without training, and a
   shorter round (*screen*): both only ever drop the last ones, and keep one of those at random.
2. *compose*: the best of those that stand out from the controls, and all of them together, again with another seed; and the
   controls again. Only what stands out twice is chosen.
3. *shares* (with budget): more or less of the auxiliaries, and a last stretch on the primary alone.
4. *guard* (with budget): the choice at full length against the primary alone, and alone for as many batches. A tie goes to the
   primary alone: "no auxiliary helps" is an ordinary answer.

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
from sidequest.methods.auto.arms import Arm, first_arms
from sidequest.methods.auto.decision import JudgedArm, survivors
from sidequest.methods.auto.rounds import AutoState, Round, Stage, spread_before
from sidequest.methods.auto.words import evidence, verdict
from sidequest.methods.base import Method, Plan
from sidequest.recipe import Phase, Recipe
from sidequest.settings import Settings
from sidequest.tasks.pool import Pool

EFFORTS = {1: 1.0, 2: 3.0, 3: 6.0, 4: 12.0, 5: 25.0}  # x
MOST_PROBED = 8  # more candidates are screened first
MOST_SCREENED = 16  # more are ordered by their labels before any training
LONGEST = {"screen": 0.25, "probe": 0.5, "compose": 0.5, "shares": 1.0, "guard": 1.0}
WORTH_REPEATING = 0.25  # a length at which a further seed says more than further length
MOST_SEEDS = 3
LOOKS = 3  # at *select* in a probe
FINISH = 0.3  # of the primary's epochs: a last stretch alone, as in "train together, then fine-tune"


class AutoSettings(Settings):
    """effort: 1 to 5, about 1, 3, 6, 12 and 25 single-task training runs. keep: the part of the best gain that a candidate must
    reach to stay. controls: candidates whose shuffled copies are probed, too. least_z: standard errors by which a choice must
    stand out from the controls. most: auxiliaries in a set."""

    effort: int = Field(2, ge=1, le=5)
    keep: float = Field(0.7, ge=0, le=1)
    controls: int = Field(1, ge=0, le=8)
    least_z: float = Field(1.5, ge=0)
    most: int = Field(3, ge=1)


class Auto(Method[AutoSettings, AutoState]):
    """The answer itself."""

    name = "auto"
    summary = "probe every candidate beside controls, keep what stands out, guard the choice"
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
            objectives={name: str(pool.cards[name].objective) for name in candidates},
            epochs=pool.train.epochs,
            goal=pool.goal,
            **_costs(pool),
            finished=not candidates,
        )
        if state.finished or len(candidates) > MOST_SCREENED:
            return state
        return self._begin(state, self._first(state, candidates))

    def round(self, state: AutoState, learner: Learner, rng: np.random.Generator) -> AutoState:
        """With many candidates, before any training: what their labels say."""
        related: dict[str, float] = {}
        for name in state.candidates:
            try:
                related[name] = learner[LabelScreen].label_relatedness(name)
            except SettingsError:  # a model without features to read out
                related[name] = math.nan
        state = state.model_copy(update={"related": related})
        return self._begin(state, self._first(state, self._related(state)))

    def _related(self, state: AutoState) -> list[str]:
        """Those of which nothing can be said first, then the most related; the last place goes to one of the others at random."""
        first = np.random.default_rng([self.seed, 1]).permutation(state.candidates).tolist()
        told = {name: state.related[name] for name in first}
        ranked = sorted(first, key=lambda name: -math.inf if math.isnan(told[name]) else -told[name])
        return self._best_and_one(ranked, MOST_SCREENED)

    def _best_and_one(self, ranked: list[str], most: int) -> list[str]:
        rng = np.random.default_rng([self.seed, len(ranked)])
        return sorted([*ranked[: most - 1], ranked[int(rng.integers(most - 1, len(ranked)))]])

    def ask(self, state: AutoState, n: int) -> list[Plan]:
        if not state.rounds:
            return []
        now = state.rounds[-1]
        pending = list(now.pending())[:n]
        return [arm.plan(state.primary, state.epochs, now.length, seed) for arm, seed in pending]

    def tell_rows(self, state: AutoState, plan: Plan, score: float, rows: np.ndarray | None) -> AutoState:
        now = state.rounds[-1].model_copy(deep=True)
        if rows is None:
            if plan.measure != "read-out":
                raise TypeError("auto needs the probability of the truth per row")
            now.arms = [arm for arm in now.arms if arm.kind != "read-out"]  # this model has none
            now.truth.pop(plan.note["arm"], None)
            state = state.model_copy(update={"rounds": [*state.rounds[:-1], now]})
            return self._next(state) if now.complete and len(now.truth) == len(now.arms) else state
        by_seed = now.truth.setdefault(plan.note["arm"], [None] * len(now.seeds))
        by_seed[now.seeds.index(plan.seed)] = rows.tolist()
        state = state.model_copy(update={"rounds": [*state.rounds[:-1], now]})
        return self._next(state) if now.complete and len(now.truth) == len(now.arms) else state

    def done(self, state: AutoState) -> bool:
        return state.finished

    # What comes after a complete round

    def _next(self, state: AutoState) -> AutoState:
        now = state.rounds[-1]
        judged = now.judged(spread_before(state, now))
        arms = {arm.name: arm for arm in now.arms}
        if now.stage == "screen":
            return self._begin(state, self._first(state, self._screened(state, judged)))
        if now.stage == "guard":
            assert state.choice is not None
            holds = judged[state.choice.name].above and not any(
                now.rows(arm).mean() >= now.rows(state.choice).mean() for arm in now.arms if arm.kind == "read-out"
            )
            return state.model_copy(update={"finished": True, "choice": state.choice if holds else None})
        if now.stage == "shares":
            return self._begin(state.model_copy(update={"choice": self._best_share(now, judged)}), None)
        chosen = [arms[name] for name in self._standing(now, judged)]
        state = state.model_copy(update={"choice": chosen[0] if chosen else None})
        if not chosen:
            return state.model_copy(update={"finished": True})
        if now.stage == "probe" and "compose" in self._budgets(len(state.candidates)):
            return self._begin(state, self._composed(state, chosen))
        return self._begin(state, None)

    def _standing(self, now: Round, judged: dict[str, JudgedArm]) -> list[str]:
        """The names of the arms that stay, best first. A first look only drops; the last one before a choice must stand out."""
        tried = {arm.name: judged[arm.name] for arm in now.arms if arm.kind in ("candidate", "set")}
        last = now.stage == "compose" or "compose" not in self._budgets(len(tried))
        return survivors(tried, self.settings.keep, self.settings.least_z if last else 0.0, self.settings.most)

    def _begin(self, state: AutoState, now: Round | None) -> AutoState:
        """Start a round; None: the next stage that the budget has room for, or the end."""
        if now is None and state.choice is not None:
            done = {one.stage for one in state.rounds}
            budgets = self._budgets(len(state.candidates))
            if "shares" in budgets and "shares" not in done:
                now = self._round(state, "shares", _shares_of(state.choice))
            elif "guard" in budgets and "guard" not in done:
                now = self._round(state, "guard", _guard_of(state.choice, state.goal))
        if now is None:
            return state.model_copy(update={"finished": True})
        return state.model_copy(update={"rounds": [*state.rounds, now]})

    def _first(self, state: AutoState, candidates: list[str]) -> Round:
        screen = len(candidates) > MOST_PROBED
        controls = 0 if screen else self.settings.controls
        arms = first_arms(candidates, state.objectives, controls, self.seed)
        return self._round(state, "screen" if screen else "probe", arms)

    def _screened(self, state: AutoState, judged: dict[str, JudgedArm]) -> list[str]:
        """The best of a screen, and one of the others at random: a screen never decides alone."""
        looked_at = [name for name in state.candidates if name in judged]
        return self._best_and_one(sorted(looked_at, key=lambda name: (-judged[name].gain, name)), MOST_PROBED)

    def _composed(self, state: AutoState, chosen: list[Arm]) -> Round:
        """The best alone and all together; with more room also what lies between. One control beside the primary alone: those of
        the probe count, too."""
        tasks = [arm.tasks[0] for arm in chosen]
        generous = EFFORTS[self.settings.effort] >= 5
        sizes = range(1, len(tasks) + 1) if generous else sorted({1, len(tasks)})
        arms = [Arm(kind="set" if size > 1 else "candidate", tasks=tuple(sorted(tasks[:size]))) for size in sizes]
        arms.append(Arm(kind="single"))
        for number in range(min(self.settings.controls, 2 if generous else 1)):
            shuffled = 1000 * self.seed + 500 + number
            arms.append(Arm(kind="permuted", tasks=(tasks[number % len(tasks)],), permutation=shuffled))
        return self._round(state, "compose", arms)

    def _best_share(self, now: Round, judged: dict[str, JudgedArm]) -> Arm:
        """The share with the highest gain; equal shares unless another is better by a standard error over rows."""
        equal, *others = [arm for arm in now.arms if arm.kind in ("candidate", "set")]
        best = max(others, key=lambda arm: judged[arm.name].gain)
        difference = now.rows(best).mean(axis=0) - now.rows(equal).mean(axis=0)
        error = difference.std(ddof=1) / math.sqrt(len(difference))
        return best if difference.mean() > error else equal

    # What it may cost

    def _budgets(self, candidates: int) -> dict[str, float]:
        """x for each stage."""
        x = EFFORTS[self.settings.effort]
        if x < 2:
            parts = {"probe": 1.0}
        elif x < 5:
            parts = {"probe": 0.6, "compose": 0.4}
        elif x < 10:
            parts = {"probe": 0.35, "compose": 0.2, "guard": 0.45}
        else:
            parts = {"probe": 0.25, "compose": 0.15, "shares": 0.35, "guard": 0.25}
        if candidates > MOST_PROBED:
            # On top: out of the same budget it would leave all the rounds too short to find anything.
            parts = {"screen": 1.2 * parts["probe"], **parts}
        return {stage: part * x for stage, part in parts.items()}

    def _round(self, state: AutoState, stage: Stage, arms: list[Arm]) -> Round:
        room = self._budgets(len(state.candidates))[stage]
        each = sum(arm.cost(1.0, state.beside) for arm in arms)
        looks = state.looks * sum(arm.kind != "read-out" for arm in arms)
        repeats = min(MOST_SEEDS, max(1, int(room / each / WORTH_REPEATING)))
        length = min(LONGEST[stage], max(room / repeats - looks, 0.5 * room / repeats) / each)
        first = self.seed + 100 * (1 + len(state.rounds))
        return Round(stage=stage, arms=arms, length=length, seeds=list(range(first, first + repeats)))

    # The answer

    def recipe(self, state: AutoState) -> Recipe:
        phases: tuple[Phase, ...] = (Phase(shares={state.primary: 1}),)
        if state.choice is not None:
            phases = state.choice.phases(state.primary, state.epochs, whole=True)
        return Recipe(
            method=self.name,
            primary=state.primary,
            phases=phases,
            evidence={"related": state.related}
            | {"rounds": [evidence(state, one) for one in state.rounds if one.complete and one.truth]},
            verdict=verdict(state),
        )

    def total(self, state: AutoState) -> int | None:
        return None

    def journal(self, state: AutoState) -> dict[str, Any]:
        now = next((one for one in reversed(state.rounds) if one.truth), None)
        if now is None:
            return {}
        return {"stage": now.stage, "arms": len(now.truth), "of": len(now.arms)}


def _costs(pool: Pool) -> dict[str, float]:
    card, size = pool.cards[pool.primary], pool.train.batch_size
    if pool.goal == "average":
        return {}
    return {
        "beside": math.ceil(card.rows / size) * size / card.rows,
        "looks": LOOKS * EVALUATION_SHARE * card.select_rows / (pool.train.epochs * card.rows),
    }


def _guard_of(choice: Arm, goal: str) -> list[Arm]:
    """The choice, and what it must beat. A read-out has rows of the primary alone, so not where the goal is the average."""
    rivals = [choice, Arm(kind="single"), _longer(choice)]
    return rivals if goal == "average" else [*rivals, Arm(kind="read-out")]


def _longer(choice: Arm) -> Arm:
    return Arm(kind="longer", beside=max(1, math.ceil(len(choice.tasks) * choice.share / choice.primary_share)))


def _shares_of(choice: Arm) -> list[Arm]:
    """Equal shares first; less and more of the auxiliaries; and a last stretch on the primary alone. One control."""
    changes: list[dict[str, Any]] = [{"primary_share": 3}, {"share": 3}, {"finish": FINISH}]
    return [choice, *(choice.model_copy(update=change) for change in changes), Arm(kind="single")]
