"""Merge-to-Mix on a simulated learner whose merged losses are known in closed form."""

import numpy as np
import pytest

from sidequest.learning.fit import single_run_work
from sidequest.methods.surrogates.merge_to_mix import MergeToMix, MergeToMixSettings, grow, merged_alphas
from sidequest.runs.driver import run_method
from sidequest.search.trials import LocalTrials
from sidequest.settings import TrainSettings
from sidequest.simulation.deltas import SimulatedDeltaLearner
from sidequest.simulation.learner import helpful
from sidequest.testing import check_method
from sidequest.testing.check_method import CANDIDATES, simulated_learner

TRAIN = TrainSettings(epochs=10, patience=None)


def delta_learner(candidates=CANDIDATES, seed=0):
    return SimulatedDeltaLearner(simulated_learner(candidates, seed).simulation, seed=seed)


def chosen(simulation, **settings):
    learner, card = SimulatedDeltaLearner(simulation, seed=0), simulation.cards[0]
    work = single_run_work(card.rows, card.select_rows, TRAIN)
    method = MergeToMix(MergeToMixSettings(**settings))
    return run_method(method, learner, learner.pool(TRAIN), LocalTrials(learner, TRAIN), single_run_work=work)


def test_the_contract():
    check_method(MergeToMix, make_learner=delta_learner)


@pytest.mark.parametrize("exhaustive", [6, 0])
def test_the_helpers_are_found_by_merging_and_nothing_where_nothing_helps(exhaustive):
    recipe = chosen(helpful(1, 4, gain=0.4, harm=0.3, noise=0.0), exhaustive=exhaustive)
    assert recipe.auxiliaries == ("arm-1",)
    assert chosen(helpful(0, 4, harm=0.3, noise=0.0), exhaustive=exhaustive).auxiliaries == ()


def test_a_merged_loss_is_that_of_the_exposures_that_it_stands_for():
    simulation = helpful(1, 2, gain=0.4, harm=0.3, noise=0.0)
    recipe = chosen(simulation, warmup=0.3, scale=0.5)
    losses = {tuple(one["tasks"]): one["loss"] for one in recipe.evidence["merged"]}
    batches, before = 100, 30  # 320 rows by 32, ten epochs
    for tasks, weights in {(): (0, 0), ("arm-1",): (0.5, 0), ("arm-1", "arm-2"): (0.25, 0.25)}.items():
        exposures = np.array([batches, *(w * (batches - before) for w in weights)])
        assert losses[tasks] == pytest.approx(float(np.exp(-simulation.skills(exposures)[0])))
    assert len(losses) == 4


def test_alphas_leave_the_primary_whole():
    assert merged_alphas(["a", "b", "c"], ("a", "c"), 0.5).tolist() == [1.0, 0.25, 0.0, 0.25]
    assert merged_alphas(["a"], (), 0.5).tolist() == [1.0, 0.0]


def test_growing_stops_when_the_loss_no_longer_falls():
    values = {(): 1.0, ("a",): 0.9, ("b",): 0.8, ("c",): 1.2, ("a", "b"): 0.7, ("b", "c"): 0.9, ("a", "b", "c"): 0.75}
    looked: list[tuple[str, ...]] = []

    def loss(subset):
        looked.append(subset)
        return values[subset]

    grow(["a", "b", "c"], loss)
    assert min(looked, key=lambda one: values[one]) == ("a", "b")
    assert ("a", "b", "c") in looked
