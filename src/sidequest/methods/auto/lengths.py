"""How long the runs of `auto` are: what the efforts allow, the bounds of each stage, and what a run costs."""

from __future__ import annotations

import math
from typing import Any

from sidequest.learning.meter import EVALUATION_SHARE
from sidequest.methods.auto.rounds import AutoState, Stage
from sidequest.tasks.pool import Pool

EFFORTS = {1: 1.0, 2: 3.0, 3: 6.0, 4: 12.0, 5: 25.0}  # x
USUAL_EFFORT = 2
GUARDED = 3  # the least effort with a guard
USUAL = 8  # candidates; the probe of more may cost up to twice as much
MOST_PROBED = 16  # more are ordered by their labels before any training
LONGEST = {"probe": 0.4, "confirm": 0.4, "shares": 0.6, "rows": 0.6, "guard": 1.0}  # of the primary's length
SHORTEST = 0.02  # of the primary's length: less training says nothing of a candidate
LEAST = 0.15  # for shares and rows: in shorter runs whatever adds most batches looks best
LONG_ENOUGH = 0.7  # for a guard
FULL = 0.95  # for that of a fine-tuned model
WORTH_REPEATING = 0.25  # a length at which a further seed says more than further length
MOST_SEEDS = 3
LOOKS = 3  # at *select* in a probe
ENOUGH_ROWS = 200  # to judge by; with a smaller *select*, rows of train are held out
MOST_HELD_OUT = 1 / 3  # of the primary's train


def parts_of(x: float, fine_tunes: bool, in_rows: bool) -> dict[str, float]:
    """What each stage gets of the x that all may cost. in_rows: whether rows are in question."""
    if x < 2:
        return {"probe": 1.0}
    if x < 5:
        return {"probe": 0.57, "confirm": 0.43}
    if (
        x < 10 and fine_tunes
    ):  # noise is not all that is wrong with its short runs: a guard is worth more than a second look
        return {"probe": 0.35, "guard": 0.65}
    if x < 10:
        return {"probe": 0.35, "confirm": 0.2, "guard": 0.45}
    if in_rows:
        return {"probe": 0.2, "confirm": 0.12, "shares": 0.2, "rows": 0.18, "guard": 0.3}
    return {"probe": 0.2, "confirm": 0.12, "shares": 0.28, "guard": 0.4}


def length_for(
    state: AutoState, stage: Stage, room: float, each: float, looks: float, hold_out: int
) -> tuple[float, int]:
    """A round's length and number of seeds, from the x it may cost, and what it costs at full length and in looks."""
    each *= 1 - hold_out / max(state.rows, 1)
    # A guard is to be long before it is sure.
    worth_repeating = LONGEST["guard"] if stage == "guard" else WORTH_REPEATING
    repeats = min(MOST_SEEDS, max(1, int(room / (each * worth_repeating))))
    room /= repeats
    return min(LONGEST[stage], max(room - looks, 0.5 * room) / each), repeats


def whole_batches(state: AutoState, length: float, hold_out: int) -> float:
    """The length as whole batches of the primary: the same number alone and beside others, where rounding would give one of them
    more and make it look better."""
    if not state.rows:
        return length
    whole = state.epochs * math.ceil((state.rows - hold_out) / state.batch_size)
    return max(1, math.floor(length * whole + 1e-9)) / whole if length >= SHORTEST else length


def costs_of(pool: Pool) -> dict[str, Any]:
    card, size = pool.cards[pool.primary], pool.train.batch_size
    if pool.goal == "average":
        return {}
    return {
        "rows": card.rows,
        "sizes": {name: pool.cards[name].rows for name in pool.candidates},
        "batch_size": size,
        "hold_out": max(0, min(int(MOST_HELD_OUT * card.rows), ENOUGH_ROWS - card.select_rows)),
        "beside": math.ceil(card.rows / size) * size / card.rows,
        "looks": LOOKS * EVALUATION_SHARE * card.select_rows / (pool.train.epochs * card.rows),
    }
