"""A simulated learner with the `GradientAlignment` power: a task that helps has a gradient that points the primary's way."""

from __future__ import annotations

import math

from sidequest.simulation.learner import SimulatedLearner


class SimulatedAlignmentLearner(SimulatedLearner):
    """The cosine is tanh of the transfer from a task to the target, relative to the target's own, with the simulation's noise."""

    def train_aligned(self, task: str, target: str) -> float:
        row = self.simulation.transfer[self._index(target)]
        relative = float(row[self._index(task)] / row[self._index(target)])
        cosine = math.tanh(relative) + self._noise("cosine", task, self._at.steps)
        self.train(task, 1)
        self.train(target, 1)
        return min(1.0, max(-1.0, cosine))
