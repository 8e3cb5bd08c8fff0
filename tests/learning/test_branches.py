"""Branches of one trunk: each goes on from where the trunk ended, whatever was trained before it."""

import numpy as np

from sidequest.learning.probing import probe, probe_branches
from sidequest.recipe import Phase
from sidequest.settings import TrainSettings
from sidequest.simulation.learner import SimulatedLearner, helpful

TRAIN = TrainSettings(epochs=10, patience=None)


def test_a_branch_knows_nothing_of_the_others_and_starts_from_the_trunk():
    simulation = helpful(1, 2, gain=0.3, harm=0.3)
    primary, good, bad = (card.name for card in simulation.cards)
    trunk = [Phase(shares={primary: 1}, epochs=4, stop_early=False)]
    beside = {name: [Phase(shares={primary: 1, name: 1}, epochs=2, stop_early=False)] for name in (good, bad)}

    def branches(*names, trunk=trunk):
        return probe_branches(
            SimulatedLearner(simulation, seed=0), trunk, [beside[name] for name in names], TRAIN, seed=0
        )

    alone = branches(bad)
    both = branches(good, bad)
    assert np.array_equal(both[1], alone[0])
    assert not np.array_equal(both[0], both[1])
    assert not np.array_equal(branches(bad, trunk=[])[0], alone[0])
    fresh = probe(SimulatedLearner(simulation, seed=0), beside[bad], TRAIN, seed=0)
    assert np.array_equal(branches(bad, trunk=[])[0], fresh)
