"""A simulated learner with attention heads: the more a task transfers to the primary, the more its heads are the primary's.

Log importances of task k are ρ_k z_primary + √(1 − ρ_k²) z_k with standard normal patterns z and ρ_k the task's transfer to the
primary, T[0, k], relative to the largest and at least 0. A row's are its task's plus noise of its own. So the expected τ of a
task grows with its transfer, and τ of single rows is lower than that of their task.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator

import numpy as np

from sidequest.learning.protocol import Warmup
from sidequest.simulation.learner import SimulatedLearner

LAYERS, HEADS = 4, 6
ROW_NOISE = 0.5
SEED_NOISE = 0.05  # how much the seed of the warm-up changes a task's pattern
CHUNK = 64


class SimulatedHeads(SimulatedLearner):
    """Implements `sidequest.learning.protocol.HeadImportance` too."""

    def fresh(self, seed: int) -> SimulatedHeads:
        return SimulatedHeads(self.simulation, seed=seed, meter=self.meter)

    def head_importance(self, task: str, warmup: Warmup) -> np.ndarray:
        batches = round(warmup.epochs * self.epoch_batches(task))
        probe = self.fresh(warmup.seed)
        probe.train(task, batches if warmup.most_batches is None else min(batches, warmup.most_batches))
        probe.train(task, self.epoch_batches(task))  # the pass without updates costs as much as an epoch
        total = np.zeros((LAYERS, HEADS))
        for _, values in self.instance_importance(task, warmup):
            total += values.sum(axis=0, dtype=np.float64)
        return total

    def instance_importance(self, task: str, warmup: Warmup) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        pattern = self._pattern(task) + SEED_NOISE * _normal("seed", str(warmup.seed), task)
        rows = self.simulation.cards[self._index(task)].rows
        for start in range(0, rows, CHUNK):
            ids = np.arange(start, min(start + CHUNK, rows))
            noise = _row_noise(task, start, len(ids))
            yield ids, np.exp(pattern + ROW_NOISE * noise).astype(np.float32)

    def _pattern(self, task: str) -> np.ndarray:
        gains = self.simulation.transfer[0]
        shared = 1.0 if task == self.primary else float(np.clip(gains[self._index(task)] / gains.max(), 0, 1))
        return shared * _normal("task", self.primary) + np.sqrt(1 - shared**2) * _normal("task", task)


@functools.lru_cache(maxsize=256)  # every pass over a task asks for the same ones
def _row_noise(task: str, start: int, count: int) -> np.ndarray:
    return np.stack([_normal("row", task, str(row)) for row in range(start, start + count)])


def _normal(*names: str) -> np.ndarray:
    """Standard normal numbers [layers, heads] that are a function of names."""
    seed = hashlib.sha256("\0".join(names).encode()).digest()[:8]
    return np.random.default_rng(int.from_bytes(seed, "little")).standard_normal((LAYERS, HEADS))
