"""A simulated learner whose rows have a known likeness to the primary: the more a task transfers to it, the more they have of it.

The score of row i of task k is T[0, k] plus noise that is a function of (seed, task, row). As everywhere in the simulation, which
rows are trained on does not matter, only how many batches; but for `SimulatedRows`.
"""

from __future__ import annotations

import hashlib
from typing import Any, ClassVar

import numpy as np

from sidequest.learning.protocol import Discrimination
from sidequest.recipe import Subset
from sidequest.simulation.learner import SimulatedLearner

NOISE = 0.1


class SimulatedSimilarity(SimulatedLearner):
    """Implements `sidequest.learning.protocol.TaskDiscriminator` too."""

    def rows_to_rank(self, task: str, discrimination: Discrimination) -> np.ndarray:
        rows = self.sizes[task]
        used = _generator("rows", task, discrimination.seed).permutation(rows)[: discrimination.rows]
        return np.delete(np.arange(rows), used)

    def train_discriminator(self, discrimination: Discrimination) -> dict[str, Any]:
        probe, used = self.fresh(discrimination.seed), {}
        for task in sorted(self.tasks):
            used[task] = min(discrimination.rows, self.sizes[task])
            probe.train(task, round(discrimination.epochs * -(-used[task] // self.simulation.batch_size)))
        return {"rows": used, "loss": 0.0, "accuracy": 1.0, "precision": "fp32", "empty": {}}

    def rank_chunk(self, task: str, chunk: int, discrimination: Discrimination) -> int:
        start = chunk * discrimination.chunk
        rows = len(self.rows_to_rank(task, discrimination)[start : start + discrimination.chunk])
        self.meter.of(task).evaluated_examples += rows
        return rows

    def similarities(self, task: str, discrimination: Discrimination) -> np.ndarray:
        noise = _generator("score", task, discrimination.seed).standard_normal(self.sizes[task])
        likeness = self.simulation.transfer[0, self._index(task)] + NOISE * noise
        return likeness[self.rows_to_rank(task, discrimination)].astype(np.float32)

    def pooled_features(self, task: str, ids: np.ndarray, discrimination: Discrimination) -> np.ndarray:
        """Rows lie around a place of their task's own."""
        self.meter.of(task).evaluated_examples += len(ids)
        place = _generator("place", task).standard_normal(4)
        spread = NOISE * _generator("features", task, discrimination.seed).standard_normal((self.sizes[task], 4))
        return (place + spread)[ids].astype(np.float32)


class SimulatedRows(SimulatedSimilarity):
    """Half of an auxiliary's rows, at random, teach the primary `1 + SPREAD` times as much as a row does on average, the others
    `1 − SPREAD` times as much: they undo what it has learned. The good ones look more like the primary's."""

    SPREAD: ClassVar[float] = 1.5

    def worth(self, task: str) -> np.ndarray:
        """What each row teaches, float64 [rows]; its mean is 1."""
        order = _generator("worth", task).permutation(self.sizes[task])
        return 1 + self.SPREAD * np.where(order < self.sizes[task] / 2, 1.0, -1.0)

    def train(self, task: str, n_batches: int, *, weight: float = 1.0, subset: Subset | None = None) -> list[float]:
        if task != self.primary and subset is not None:
            weight *= max(0.0, float(self.worth(task)[subset.ids].mean()))
        return super().train(task, n_batches, weight=weight, subset=subset)

    def similarities(self, task: str, discrimination: Discrimination) -> np.ndarray:
        worth = self.worth(task)[self.rows_to_rank(task, discrimination)] - 1
        return (super().similarities(task, discrimination) + 2 * NOISE * worth).astype(np.float32)


def _generator(*names: object) -> np.random.Generator:
    seed = hashlib.sha256("\0".join(map(str, names)).encode()).digest()[:8]
    return np.random.default_rng(int.from_bytes(seed, "little"))
