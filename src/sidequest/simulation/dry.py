"""A learner that only counts: a method can be run on it to see what it will ask for, in a second instead of hours."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from sidequest.recipe import Subset
from sidequest.simulation.deltas import SimulatedDeltaLearner
from sidequest.simulation.heads import SimulatedHeads
from sidequest.simulation.learner import Simulation
from sidequest.simulation.similarity import SimulatedSimilarity
from sidequest.tasks.pool import Pool

OWN, OTHERS, NOISE = 0.4, 0.1, 0.005  # every candidate helps a little: a search that goes on while it gains goes far


class DryLearner(SimulatedDeltaLearner, SimulatedHeads, SimulatedSimilarity):
    """A simulated learner of the sizes of a real suite, with every power; its meter counts as the real one's would."""

    @classmethod
    def of(cls, pool: Pool, seed: int = 0) -> Self:
        cards = tuple(pool.cards[name] for name in pool.names)
        transfer = np.full((len(cards), len(cards)), OTHERS) + np.diag(np.full(len(cards), OWN - OTHERS))
        ceilings = np.full(len(cards), 0.95)
        return cls(Simulation(cards, transfer, ceilings, noise=NOISE, batch_size=pool.train.batch_size), seed=seed)

    def fresh(self, seed: int) -> Self:
        return type(self)(self.simulation, seed=seed, meter=self.meter)

    def train(self, task: str, n_batches: int, *, weight: float = 1.0, subset: Subset | None = None) -> list[float]:
        """As the simulated learner does, but all batches at once: nobody looks at their losses one by one."""
        rows, size, epoch = self._rows(task, subset), self.simulation.batch_size, self.epoch_batches(task, subset)
        key = task if subset is None else f"{task}\t{subset.key}"
        start = self._at.positions.get(key, 0)
        last = rows - (epoch - 1) * size  # the last batch of an epoch holds what is left
        ends = (start + n_batches) // epoch - start // epoch
        loss = float(np.exp(-self._skill(task)))
        count = self.meter.of(task)
        count.batches += n_batches
        count.examples += n_batches * size - ends * (size - last)
        self._at.exposures[task] = self._at.exposures.get(task, 0.0) + weight * n_batches
        self._at.positions[key] = start + n_batches
        self._at.steps += n_batches
        return [loss] * n_batches

    def evaluate(self, task: str, split: str = "select") -> float:
        count = self.meter.of(task)
        before = count.evaluated_examples
        score = super().evaluate(task, split)
        count.evaluated_examples = before + self.simulation.cards[self._index(task)].select_rows
        return score

    def train_with_gain(self, task: str, *, target: str | None = None) -> tuple[float, float]:
        measured = task if target is None else target
        before = float(np.exp(-self._skill(measured)))
        self.train(task, 1)
        # One forward pass more than a step, or two over rows of the target.
        self.meter.of(measured).evaluated_examples += self.simulation.batch_size * (1 if target is None else 2)
        return before, float(np.exp(-self._skill(measured)))

    def head_importance(self, task: str, warmup: Any) -> np.ndarray:
        batches = round(warmup.epochs * self.epoch_batches(task))
        probe = self.fresh(warmup.seed)
        probe.train(task, batches if warmup.most_batches is None else min(batches, warmup.most_batches))
        probe.train(task, self.epoch_batches(task))
        return np.exp(self._pattern(task))
