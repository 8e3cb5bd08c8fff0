"""Similarity sampling: the auxiliary rows that look most like the primary's. Kung et al. (2021).

1. *Task-discriminative model* (section 3.2). A fresh model learns `rows` rows of every task and, by a linear layer on its pooled
   output, to tell the tasks apart: with one question per task (`similarity`), or with one choice among them (`similarity-ce`).
2. *Ranking*. It scores every other row of every auxiliary; all of them compete in one ranking, and the top N are taken.
3. *Training* (section 3.3). All rows of the primary with the top N, then the primary alone (see `row_sampling`).

Departures
----------
- `similarity-ce` ranks by the softmax probability; the released code takes the sigmoid for both.
- Scores are logits (`bce`) and log-probabilities (`ce`) in float32: the order of the probabilities, without ties near 0 and 1.
- The paper reports many N; here `ladder` chooses one on *select*, and N = 0 is among the choices.
- The paper fine-tunes from the last epoch of the first phase; training in sidequest goes on from its best on *select*.
- Where tasks give different numbers of rows, losses are balanced in full; the released code's weight grows with the logarithm.
- Rows whose score is not a finite number are left out, and counted in the recipe's notes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from sidequest.learning.protocol import Discrimination, Learner, Piece, TaskDiscriminator
from sidequest.methods.similarity.ranking import Ranking, RowRankingState
from sidequest.methods.similarity.row_sampling import RowSampling, SamplingSettings, SamplingState, random_order
from sidequest.numerics.principal_components import principal_components
from sidequest.numerics.top import top_positions

SHOWN = 20  # best and worst rows of each task that the recipe names, for people to look at
BINS = 40  # of the histograms of scores
MAPPED, COMPONENTS = 80, 10  # rows of each task for the map of features, and how many numbers are kept of each


class SimilaritySettings(SamplingSettings):
    """rows: of each task, that the discriminator learns from.
    discriminator_epochs: passes over them.
    task_losses: False learns to tell tasks apart but not the tasks (section 5.3).
    resample: take as many rows of each auxiliary as the ranking does, but at random (in-task efficacy, section 5.1).
    chunk: rows ranked between two saves.
    """

    rows: int = Field(500, ge=1)
    discriminator_epochs: float = Field(5.0, gt=0)
    task_losses: bool = True
    resample: bool = False
    chunk: int = Field(8192, ge=1)


class SimilarityState(SamplingState, RowRankingState):
    """Rows that are ranked, then drawn."""


class Similarity(RowSampling[SimilaritySettings, SimilarityState]):
    """One binary question per task: a row may look like several (BCE)."""

    name = "similarity"
    summary = "the auxiliary rows that a task discriminator takes for the primary's, then the primary alone"
    cost = "some epochs of a few rows of every task, and one look at every row; with ladder, a trial per rung"
    Settings = SimilaritySettings
    State = SimilarityState
    loss: ClassVar[Literal["bce", "ce"]] = "bce"

    @property
    def _discrimination(self) -> Discrimination:
        settings = self.settings
        return Discrimination(
            self.loss, settings.rows, settings.discriminator_epochs, settings.task_losses, settings.chunk, self.seed
        )

    def _first_notes(self, rows: dict[str, int]) -> list[str]:
        primary, count = next(iter(rows.items()))
        few = f"the primary {primary!r} has {count:,} train rows, fewer than {self.settings.rows}: losses are balanced"
        return [*([few] if count < self.settings.rows else []), *super()._first_notes(rows)]

    # One round trains the discriminator, one ranks each chunk, and one draws.

    def round(self, state: SimilarityState, learner: Learner, rng: np.random.Generator) -> SimilarityState:
        power = learner[TaskDiscriminator]
        ranking = self._ranking(state)
        return self._draw(state, power, rng) if ranking.is_done(state) else ranking.step(state, learner)

    def ahead(self, state: SimilarityState) -> Sequence[Piece]:
        return () if state.drawn is not None else self._ranking(state).ahead(state)

    def _ranking(self, state: SimilarityState) -> Ranking:
        return Ranking(self._discrimination, state.pool)

    def _rounds(self, state: SimilarityState) -> int:
        return len(self._ranking(state).chunks) + 2 if self._wanted(state) else 0

    def journal(self, state: SimilarityState) -> dict[str, Any]:
        if state.drawn is not None:
            return super().journal(state)
        if not state.chunks:
            trained = state.trained or {}
            return {"discriminator": trained.get("accuracy"), "loss": trained.get("loss")}
        rate = state.ranked / state.seconds if state.seconds else 0.0
        left = sum(state.pool.values()) - state.ranked
        shown: dict[str, Any] = {"ranked": state.ranked, "rows_per_second": round(rate)}
        return shown | ({"minutes_left": round(left / rate / 60, 2)} if rate else {})

    def _draw(self, state: SimilarityState, learner: TaskDiscriminator, rng: np.random.Generator) -> SimilarityState:
        names, ranking = state.candidates, self._ranking(state)
        ids, scores = (list(each) for each in zip(*(ranking.scores(learner, name) for name in names), strict=True))
        unknown = {name: int(np.isnan(own).sum()) for name, own in zip(names, scores, strict=True)}
        owner = np.repeat(np.arange(len(names)), [len(rows) for rows in ids])
        order = top_positions(np.concatenate(scores), self._wanted(state))
        task, chosen = owner[order], np.concatenate(ids)[order]
        if self.settings.resample:
            chosen = _again_at_random(task, ids, rng)
        evidence = {
            "discriminator": {key: value for key, value in (state.trained or {}).items() if key != "empty"},
            "threshold": float(np.concatenate(scores)[order[-1]]) if len(order) else None,
            **_spread(names, ids, scores),
            "features": self._features(state, learner),
        }
        return self._with_drawn(state, task, chosen, evidence=evidence, notes=self._last_notes(state, unknown))

    def _features(self, state: SimilarityState, learner: TaskDiscriminator) -> dict[str, list[list[float]]]:
        """For Figure 1, principal components of some rows of every task: rows that the discriminator has not learned from, where
        there are any."""
        found, of = {}, self._discrimination
        for name in (state.primary, *state.candidates):
            ids = learner.rows_to_rank(name, of)
            if not len(ids):
                ids = learner.rows_to_rank(name, replace(of, rows=0))
            even = np.linspace(0, len(ids) - 1, min(len(ids), MAPPED)).astype(np.int64)
            found[name] = learner.pooled_features(name, ids[even], of)
        return {name: rows.round(3).tolist() for name, rows in principal_components(found, COMPONENTS).items()}

    def _last_notes(self, state: SimilarityState, unknown: dict[str, int]) -> list[str]:
        notes = [
            f"{name!r}: {count:,} of {state.pool[name]:,} rows have a score that is not a finite number; they are left out"
            for name, count in unknown.items()
            if count
        ]
        empty = (state.trained or {}).get("empty", {})
        return notes + [
            f"{name!r} has {count:,} train rows without any text; they are treated like all others"
            for name, count in sorted(empty.items())
        ]


class SimilarityCE(Similarity):
    """One choice among all tasks: looking like another task counts against a row (CE)."""

    name = "similarity-ce"
    summary = "as similarity, but the discriminator chooses one task for each row"
    loss = "ce"


def _again_at_random(task: np.ndarray, ids: list[np.ndarray], rng: np.random.Generator) -> np.ndarray:
    """For the rows of each task in `task` [n], as many of the task's own at random: ids int64 [n]."""
    out = np.empty(len(task), dtype=np.int64)
    for place, rows in enumerate(ids):
        mine = task == place
        _, at = random_order([len(rows)], int(mine.sum()), rng)
        out[mine] = rows[at]
    return out


def _spread(names: list[str], ids: list[np.ndarray], scores: list[np.ndarray]) -> dict[str, Any]:
    """How scores are spread over each task, and its best and worst rows."""
    known = np.concatenate([own[np.isfinite(own)] for own in scores])
    low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
    bins = np.linspace(low, high if high > low else low + 1.0, BINS + 1)
    ranked = {}
    for name, rows, own in zip(names, ids, scores, strict=True):
        if not len(rows):
            continue
        finite = own[np.isfinite(own)]
        ranked[name] = {
            "rows": len(rows),
            "mean": float(finite.mean(dtype=np.float64)) if len(finite) else None,
            "histogram": np.histogram(finite, bins)[0].tolist(),
            "best": [[int(rows[at]), float(own[at])] for at in top_positions(own, SHOWN)],
            "worst": [[int(rows[at]), float(own[at])] for at in top_positions(-own, SHOWN)],
        }
    return {"ranked": ranked, "bins": bins.tolist()}
