"""How long the runs of `auto` are: what the efforts allow, the bounds of each stage, and what a run costs."""

from __future__ import annotations

import math
from typing import Any

from sidequest.learning.meter import EVALUATION_SHARE
from sidequest.methods.auto.rounds import AutoState
from sidequest.tasks.pool import Pool

EFFORTS = {1: 1.0, 2: 3.0, 3: 6.0, 4: 12.0, 5: 25.0}  # x
USUAL = 8  # candidates; the probe of more may cost up to twice as much
MOST_PROBED = 16  # more are ordered by their labels before any training
LONGEST = {"probe": 0.4, "confirm": 0.4, "shares": 0.6, "rows": 0.6, "guard": 1.0}  # of the primary's length
SHORTEST = 0.02  # of the primary's length: less training says nothing of a candidate
LEAST = 0.15  # for shares and rows: in shorter runs whatever adds most batches looks best
LONG_ENOUGH = 0.7  # for a guard
WORTH_REPEATING = 0.25  # a length at which a further seed says more than further length
MOST_SEEDS = 3
LOOKS = 3  # at *select* in a probe
ENOUGH_ROWS = 200  # to judge by; with a smaller *select*, rows of train are held out
MOST_HELD_OUT = 1 / 3  # of the primary's train


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
