"""Ranking rows by how much they look like the primary's, step by step: what `similarity` and the rows of `auto` share.

One step trains the discriminator, and each further one ranks a chunk, so that a killed run goes on from its last chunk and
workers rank chunks at the same time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from sidequest.learning.protocol import Discrimination, Learner, RankedChunk, TaskDiscriminator
from sidequest.methods.base import State


class RowRankingState(State):
    """How far a ranking has come. trained: what the discriminator came to. chunks, ranked: chunks and rows ranked so
    far. seconds: how long they took."""

    trained: dict[str, Any] | None = None
    chunks: int = 0
    ranked: int = 0
    seconds: float = 0.0


RankingT = TypeVar("RankingT", bound=RowRankingState)


@dataclass(frozen=True)
class Ranking:
    """What is to be ranked. rows: of each task, those that the discriminator does not learn from."""

    discrimination: Discrimination
    rows: Mapping[str, int]

    @property
    def chunks(self) -> list[tuple[str, int]]:
        """(task, chunk) of all that is to be ranked."""
        size = self.discrimination.chunk
        return [(name, chunk) for name, rows in self.rows.items() for chunk in range(-(-rows // size))]

    def is_done(self, at: RowRankingState) -> bool:
        return at.trained is not None and at.chunks == len(self.chunks)

    def step(self, at: RankingT, learner: Learner) -> RankingT:
        power = learner[TaskDiscriminator]
        if at.trained is None:
            return at.model_copy(update={"trained": power.train_discriminator(self.discrimination)})
        before = learner.meter.seconds
        rows = power.rank_chunk(*self.chunks[at.chunks], self.discrimination)
        seconds = at.seconds + learner.meter.seconds - before
        return at.model_copy(update={"chunks": at.chunks + 1, "ranked": at.ranked + rows, "seconds": seconds})

    def ahead(self, at: RowRankingState) -> list[RankedChunk]:
        """Chunks that are still to be ranked; none before there is a discriminator."""
        if at.trained is None:
            return []
        return [RankedChunk(*chunk, self.discrimination) for chunk in self.chunks[at.chunks :]]

    def scores(self, power: TaskDiscriminator, task: str) -> tuple[np.ndarray, np.ndarray]:
        """Ids int64 [n] and their likeness float32 [n] to the primary's rows; NaN where it is not a finite number."""
        found = power.similarities(task, self.discrimination)
        known = np.where(np.isfinite(found), found, np.float32(np.nan))
        return power.rows_to_rank(task, self.discrimination), known
