"""What comes after the set: the arms of the stages `shares`, `rows` and `guard`, and what their runs say of the choice."""

from __future__ import annotations

import math
from typing import Any

from sidequest.methods.auto.arms import Arm
from sidequest.methods.auto.decision import gains
from sidequest.methods.auto.rounds import ALONE, Round
from sidequest.methods.auto.rows import PARTS

FINISH = 0.3  # of the primary's epochs: a last stretch alone, as in "train together, then fine-tune"


def beside(names: list[str]) -> Arm:
    return Arm(kind="set" if len(names) > 1 else "candidate", tasks=tuple(sorted(names)))


def guard_of(choice: Arm, goal: str, seed: int) -> list[Arm]:
    """The choice, and what it must beat. A read-out has rows of the primary alone, so not where the goal is the average."""
    more = max(1, math.ceil(len(choice.tasks) * choice.share / choice.primary_share))
    shuffled = Arm(kind="permuted", tasks=choice.tasks[:1], permutation=1000 * seed + 500)
    contenders = [choice] if choice.rows == "all" else [choice, _with_all_rows(choice)]
    rivals = [*contenders, ALONE, Arm(kind="longer", beside=more), shuffled]
    return rivals if goal == "average" else [*rivals, Arm(kind="read-out")]


def shares_of(choice: Arm) -> list[Arm]:
    """Equal shares first; less and more of the auxiliaries; and a last stretch on the primary alone."""
    changes: list[dict[str, Any]] = [{"primary_share": 3}, {"share": 3}, {"finish": FINISH}]
    return [choice, *(choice.model_copy(update=change) for change in changes), ALONE]


def with_rows(choice: Arm) -> list[Arm]:
    """All rows first."""
    return [choice, *(choice.model_copy(update={"rows": rows}) for rows in PARTS), ALONE]


def _with_all_rows(choice: Arm) -> Arm:
    return choice.model_copy(update={"rows": "all"})


def best_change(now: Round, least: float) -> Arm:
    """Of shares, or of rows, the one with the highest gain; the first, equal shares or all rows, unless another is better by so
    many standard errors."""
    first, *others = [arm for arm in now.arms if arm.kind in ("candidate", "set")]
    best = max(others, key=lambda arm: now.rows(arm).mean())
    found = gains({arm.name: now.rows(arm) for arm in now.arms}, first.name)
    return best if found[best.name].z > least else first


def held(guard: Round, choice: Arm) -> Arm | None:
    """The choice if it is above all that it must beat, with all its rows where they are as good; None: it is not."""
    means = {arm.name: guard.rows(arm).mean() for arm in guard.arms}
    mine = means.pop(choice.name)
    if choice.rows != "all" and (whole := means.pop(_with_all_rows(choice).name)) >= mine:
        mine, choice = whole, _with_all_rows(choice)
    return choice if mine > max(means.values()) else None
