"""FLAD: its policies against the paper's formulas written out, and its draws on a simulated learner."""

import math

import numpy as np
import pytest

from sidequest.learning.fit import single_run_work
from sidequest.methods.flad.flad import Flad, FladSettings, exp3_policy, ucb1_arm
from sidequest.runs.driver import run_method
from sidequest.search.trials import LocalTrials
from sidequest.settings import TrainSettings
from sidequest.simulation.alignment import SimulatedAlignmentLearner
from sidequest.simulation.learner import helpful
from sidequest.testing import check_method
from sidequest.testing.check_method import CANDIDATES, simulated_learner

TRAIN = TrainSettings(epochs=40, patience=None)


def aligned_learner(candidates=CANDIDATES, seed=0):
    return SimulatedAlignmentLearner(simulated_learner(candidates, seed).simulation, seed=seed)


def drawn(simulation, seed=0, **settings):
    learner, card = SimulatedAlignmentLearner(simulation, seed=seed), simulation.cards[0]
    work = single_run_work(card.rows, card.select_rows, TRAIN)
    method = Flad(FladSettings(**settings), seed=seed)
    return run_method(method, learner, learner.pool(TRAIN), LocalTrials(learner, TRAIN), single_run_work=work)


@pytest.mark.parametrize("bandit", ["exp3", "ucb1"])
def test_the_contract(bandit):
    check_method(Flad, settings={"bandit": bandit}, make_learner=aligned_learner, fresh_process=bandit == "exp3")


def test_exp3_draws_from_the_formula_of_the_paper():
    totals, turn, arms = np.array([3.0, -2.0, 0.5, 1.0]), 50, 4
    now, before = (min(1 / arms, math.sqrt(math.log(arms) / (arms * t))) for t in (turn, turn - 1))
    weights = [math.exp(before * value) for value in totals]
    expected = [(1 - arms * now) * weight / sum(weights) + now for weight in weights]
    assert exp3_policy(totals, turn) == pytest.approx(expected)
    assert exp3_policy(totals, 1) == pytest.approx(np.full(4, 0.25))  # nothing is known at the first turn
    assert exp3_policy(np.array([5.0]), 7) == pytest.approx([1.0])


def test_ucb1_takes_the_highest_bound():
    means, counts = np.array([0.5, 0.4, 0.1]), np.array([20, 2, 20])
    bounds = means + np.sqrt(2 * np.log(42) / counts)
    assert ucb1_arm(means, counts, 42) == int(np.argmax(bounds)) == 1
    assert ucb1_arm(means, np.array([20, 200, 20]), 240) == 0
    assert ucb1_arm(means, np.array([1, 1, 0]), 3) == 2


@pytest.mark.parametrize("bandit", ["exp3", "ucb1"])
def test_what_is_aligned_is_drawn_more_and_it_costs_two_runs_however_many_there_are(bandit):
    few = drawn(helpful(1, 3, gain=0.5, harm=0.3), bandit=bandit)
    many = drawn(helpful(1, 12, gain=0.5, harm=0.3), bandit=bandit)
    for recipe in (few, many):
        shares = dict(recipe.phases[0].shares)
        assert shares.pop("primary") == pytest.approx(sum(shares.values()), rel=1e-4)
        assert max(shares, key=shares.get) == "arm-1"
        assert recipe.cost.x == pytest.approx(2.0, abs=0.3)
    assert few.evidence["mean_alignment"]["arm-1"] > 0.5 > few.evidence["mean_alignment"]["arm-2"]
