"""A simulated learner with the `Deltas` power: what αVIL should find is known in closed form."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from sidequest.simulation.learner import SELECT_ROWS, SimulatedLearner, _count

ExposureDelta = tuple[str, float]  # a task, and its weighted batches


class SimulatedDeltaLearner(SimulatedLearner):
    """A delta is exposure: training task i for n batches with weight w adds w·n to its exposure, and α scales what is added.

    A task's loss at exposures e is exp(−skill(e)), so with e = e₀ + Σ αᵢΔᵢ its gradient is ∂L/∂αᵢ = −L · Tᵢ Δᵢ / (τ + eᵢ).
    Exposure that α makes negative counts as none.
    """

    def begin_deltas(self, totals: Mapping[str, int]) -> None:
        self.begin(sum(totals.values()))

    def collect_delta(
        self, task: str, n_batches: int, *, weight: float = 1.0, rate: float = 1.0, keep_optimizer: bool = True
    ) -> ExposureDelta:
        before = dict(self._at.exposures)
        self.train(task, n_batches, weight=weight * rate)
        added = self._at.exposures[task] - before.get(task, 0.0)
        self._at.exposures = before
        return task, added

    def merged_loss(
        self, task: str, deltas: Sequence[ExposureDelta], alphas: np.ndarray, rows: np.ndarray | None = None
    ) -> tuple[float, np.ndarray]:
        before = self._at.exposures
        self._at.exposures = self._merged(deltas, alphas)
        skill = self._skill(task)
        transfer, tau = self.simulation.transfer[self._index(task)], self.simulation.tau
        slopes = [
            transfer[self._index(name)] * added / (tau + self._at.exposures[name]) if self._at.exposures[name] else 0.0
            for name, added in deltas
        ]
        self._at.exposures = before
        with self.meter.timed(task) as count:
            _count(count, SELECT_ROWS if rows is None else len(rows))
        loss = math.exp(-skill)
        return loss, -loss * np.array(slopes)

    def apply_deltas(self, deltas: Sequence[ExposureDelta], alphas: np.ndarray) -> None:
        self._at.exposures = self._merged(deltas, alphas)

    def _merged(self, deltas: Sequence[ExposureDelta], alphas: np.ndarray) -> dict[str, float]:
        merged = dict(self._at.exposures)
        for (name, added), alpha in zip(deltas, alphas, strict=True):
            merged[name] = max(0.0, merged.get(name, 0.0) + float(alpha) * added)
        return merged
