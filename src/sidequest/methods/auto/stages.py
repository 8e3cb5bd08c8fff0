"""What comes after the set: the arms of the stages `shares`, `rows` and `guard`, and what their runs say of the choice."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

from sidequest.methods.auto.arms import Arm, Kind
from sidequest.methods.auto.decision import gains
from sidequest.methods.auto.rounds import ALONE, Round
from sidequest.methods.auto.rows import PARTS

FINISH = 0.3  # of the primary's epochs: a last stretch alone, as in "train together, then fine-tune"


def beside(names: list[str]) -> Arm:
    return Arm(kind="set" if len(names) > 1 else "candidate", tasks=tuple(sorted(names)))


def without(choice: Arm, name: str) -> Arm:
    """The choice with an auxiliary less."""
    left = beside([task for task in choice.tasks if task != name])
    return choice.model_copy(update={"kind": left.kind, "tasks": left.tasks})


def guard_of(choice: Arm, goal: str, seed: int, left_out: Collection[Kind] = ()) -> list[Arm]:
    """The choice and its simpler versions, and what they must beat, but for `left_out`. A read-out has rows of the primary alone,
    so not where the goal is the average."""
    contenders = _versions(choice)
    if "longer" in left_out:  # what equal shares are there for
        contenders = [one for one in contenders if one.share == choice.share]
    longer = dict.fromkeys(as_long_as(one) for one in contenders)
    shuffled = Arm(kind="permuted", tasks=choice.tasks[:1], permutation=1000 * seed + 500)
    read_out = [] if goal == "average" else [Arm(kind="read-out")]
    return [arm for arm in [*contenders, ALONE, *longer, shuffled, *read_out] if arm.kind not in left_out]


def _versions(choice: Arm) -> list[Arm]:
    """The choice; with all of its rows, and with equal shares, too: what was seen in shorter runs may not hold, and more batches
    have more of the primary's own to beat."""
    whole = choice.model_copy(update={"rows": "all"})
    return list(dict.fromkeys([choice, whole, beside(list(choice.tasks))]))


def as_long_as(choice: Arm) -> Arm:
    """The primary alone for as many batches."""
    return Arm(kind="longer", beside=max(1, math.ceil(len(choice.tasks) * choice.share / choice.primary_share)))


def shares_of(choice: Arm) -> list[Arm]:
    """Equal shares first; less and more of the auxiliaries; and a last stretch on the primary alone."""
    changes: list[dict[str, Any]] = [{"primary_share": 3}, {"share": 3}, {"finish": FINISH}]
    return [choice, *(choice.model_copy(update=change) for change in changes), ALONE]


def with_rows(choice: Arm) -> list[Arm]:
    """All rows first."""
    return [choice, *(choice.model_copy(update={"rows": rows}) for rows in PARTS), ALONE]


def best_change(now: Round, least: float) -> Arm:
    """Of shares, or of rows, the one with the highest gain; the first, equal shares or all rows, unless another is better by so
    many standard errors."""
    first, *others = [arm for arm in now.arms if arm.kind in ("candidate", "set")]
    best = max(others, key=lambda arm: now.rows(arm).mean())
    found = gains({arm.name: now.rows(arm) for arm in now.arms}, first.name)
    return best if found[best.name].z > least else first


def held(guard: Round, choice: Arm, least: float = 0.0) -> Arm | None:
    """The best version of the choice that is above all that it must beat, each by so many standard errors, and a simpler one
    where it is as good; None: none is. Each stands against the primary alone for as many batches as it has itself."""
    means = {arm: guard.rows(arm).mean() for arm in guard.arms}
    held: Arm | None = None
    for version in [one for one in _versions(choice) if one in means]:
        stands = all(above(guard, version, rival) > least for rival in rivals_of(guard, version))
        if stands and (held is None or means[version] >= means[held]):
            held = version
    return held


def above(guard: Round, version: Arm, rival: Arm) -> float:
    """In standard errors."""
    both = {arm.name: guard.rows(arm) for arm in (version, rival)}
    return gains(both, rival.name)[version.name].z


def rivals_of(guard: Round, choice: Arm) -> list[Arm]:
    """What a version of the choice must beat."""
    rivals = [arm for arm in guard.arms if arm.is_control or arm.kind == "read-out"]
    return [arm for arm in rivals if arm.kind != "longer" or arm == as_long_as(choice)]
