"""The order in which a task's rows are seen: shuffled epochs of length-bucketed batches.

An epoch's batches are a pure function of (seed, task, subset, epoch), so a position in the data is two integers.
"""

from __future__ import annotations

import numpy as np

# Rows are sorted by length within pools of this many batches: wide enough that padding nearly vanishes, narrow enough that the
# batches of an epoch stay random.
POOL_BATCHES = 50


def epoch_batches(lengths: np.ndarray, batch_size: int, rng: np.random.Generator) -> list[np.ndarray]:
    """All rows once, in random batches of rows of similar length; the last batch may be short.

    lengths: int64 [n]. Returns int64 arrays of positions.
    """
    order = rng.permutation(len(lengths))
    pool = batch_size * POOL_BATCHES
    chunks = [order[start : start + pool] for start in range(0, len(order), pool)]
    ordered = [chunk[np.argsort(lengths[chunk], kind="stable")] for chunk in chunks]
    batches = [chunk[i : i + batch_size] for chunk in ordered for i in range(0, len(chunk), batch_size)]
    return [batches[i] for i in rng.permutation(len(batches))]


def evaluation_batches(lengths: np.ndarray, batch_size: int) -> list[np.ndarray]:
    """All rows once, sorted by length: the least padding."""
    order = np.argsort(lengths, kind="stable")
    return [order[i : i + batch_size] for i in range(0, len(order), batch_size)]


class Stream:
    """A task's endless sequence of batches with a position that can be saved: (epoch, batches taken in it)."""

    def __init__(self, lengths: np.ndarray, positions: np.ndarray | None, batch_size: int, seed: int) -> None:
        """positions: the rows to use (a subset), or None for all. seed: a function of the learner's seed, task and subset."""
        self._lengths = lengths if positions is None else lengths[positions]
        self._positions = positions
        self._batch_size = batch_size
        self._seed = seed
        self.epoch = 0
        self.taken = 0
        self._batches: list[np.ndarray] | None = None

    @property
    def batches_per_epoch(self) -> int:
        return -(-len(self._lengths) // self._batch_size)

    def next(self) -> np.ndarray:
        """Positions of the next batch's rows."""
        if self.taken >= self.batches_per_epoch:
            self.seek(self.epoch + 1, 0)
        if self._batches is None:
            rng = np.random.default_rng([self._seed, self.epoch])
            self._batches = epoch_batches(self._lengths, self._batch_size, rng)
        batch = self._batches[self.taken]
        self.taken += 1
        return batch if self._positions is None else self._positions[batch]

    def seek(self, epoch: int, taken: int) -> None:
        if epoch != self.epoch:
            self._batches = None
        self.epoch, self.taken = epoch, taken
