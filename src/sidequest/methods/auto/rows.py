"""Which rows: a candidate may have many more than the training beside the primary ever sees, and not all of them are alike.

They are ranked as `similarity` ranks them, by a discriminator that learns some rows of every task. Half of the rows and an eighth
of them, the best, are then tried beside all of them.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sidequest.learning.meter import EVALUATION_SHARE
from sidequest.learning.protocol import Discrimination, TaskDiscriminator
from sidequest.methods.auto.arms import Arm
from sidequest.methods.auto.rounds import AutoState
from sidequest.methods.similarity.ranking import Ranking
from sidequest.numerics.top import top_positions
from sidequest.recipe import Subset

MANY = 4  # times the primary's rows
FEWEST = 256  # rows to rank: an eighth of them is a batch
PARTS = {"the best half": 1 / 2, "the best eighth": 1 / 8}
DISCRIMINATOR_ROWS, DISCRIMINATOR_EPOCHS = 500, 5.0  # of similarity
FEWEST_TO_LEARN = 50  # rows of each task, to tell them apart by
RANKING_PART = 0.4  # of what the stage may cost


def with_many_rows(state: AutoState) -> list[str]:
    """Of the choice, the candidates with several times as many rows as the primary."""
    if state.choice is None or state.goal != "primary":
        return []
    least = max(MANY * state.rows, FEWEST)
    return [name for name in state.choice.tasks if state.sizes[name] >= least]


def planned(state: AutoState, x: float, seed: int) -> Ranking | None:
    """The ranking that a part of x pays for; None: it does not."""
    names = with_many_rows(state)
    run = state.epochs * state.rows  # rows that one training of the primary sees
    room = RANKING_PART * x * run - EVALUATION_SHARE * sum(state.sizes[name] for name in names)
    each = (1 + len(state.sizes)) * DISCRIMINATOR_EPOCHS
    learned = min(DISCRIMINATOR_ROWS, *(state.sizes[name] // 4 for name in names), int(room / each))
    if learned < FEWEST_TO_LEARN:
        return None
    of = Discrimination(rows=learned, epochs=DISCRIMINATOR_EPOCHS, seed=seed)
    return Ranking(of, {name: max(0, state.sizes[name] - learned) for name in names})


def best_first(ranking: Ranking, power: TaskDiscriminator) -> dict[str, np.ndarray]:
    """Ids of each ranked task's rows, int64, those most like the primary's first; without those of which nothing is known."""
    found = {}
    for name in ranking.rows:
        ids, scores = ranking.scores(power, name)
        found[name] = ids[top_positions(scores, len(scores))]
    return {name: ids for name, ids in found.items() if len(ids)}


def rows_of(arm: Arm, ranked: Mapping[str, np.ndarray]) -> dict[str, Subset]:
    """The rows that an arm takes, of the tasks of which it takes not all."""
    if arm.rows == "all":
        return {}
    # The arm may have fewer tasks than were ranked.
    its = {name: ids for name, ids in ranked.items() if name in arm.tasks}
    counts = {name: max(1, round(PARTS[arm.rows] * len(ids))) for name, ids in its.items()}
    return {name: Subset(ids=np.sort(ids[: counts[name]])) for name, ids in its.items()}
