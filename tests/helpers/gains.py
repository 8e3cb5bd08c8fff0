"""A simulated learner that measures its steps, in a module that imports no torch: a fresh process begins at once."""

from __future__ import annotations

import math

from sidequest.simulation.learner import SimulatedLearner
from sidequest.testing.check_method import simulated_learner


class GainSimulated(SimulatedLearner):
    """A simulated learner that can measure its steps."""

    def train_with_gain(self, task, *, target=None):
        measured = target or task
        before = math.exp(-self._skill(measured))
        self.train(task, 1)
        return before, math.exp(-self._skill(measured))

    def fresh(self, seed):
        return GainSimulated(self.simulation, seed=seed, meter=self.meter)


def gain_simulated(candidates, seed):
    return GainSimulated(simulated_learner(candidates).simulation, seed=seed)
