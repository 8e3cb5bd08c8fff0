"""αVIL and DIW keep the contract of methods, and on a simulation they find what helps."""

import functools

import numpy as np
import pytest

from sidequest.learning.protocol import Deltas
from sidequest.methods.alphavil.alphavil import AlphaVIL, AlphaVILSettings
from sidequest.methods.alphavil.diw import DIW, DIWSettings
from sidequest.runs.driver import run_method
from sidequest.search.trials import LocalTrials
from sidequest.settings import TrainSettings
from sidequest.simulation.deltas import SimulatedDeltaLearner
from sidequest.simulation.learner import helpful
from sidequest.testing import check_learner, check_method
from sidequest.testing.check_method import CANDIDATES, simulated_learner

TRAIN = TrainSettings(epochs=15)


def delta_learner(candidates=CANDIDATES, seed=0):
    return SimulatedDeltaLearner(simulated_learner(candidates, seed).simulation, seed=seed)


def test_the_simulated_learner_keeps_its_contract_and_has_the_power():
    check_learner(functools.partial(delta_learner, CANDIDATES))
    assert isinstance(delta_learner(), Deltas)


def test_the_simulated_gradient_equals_finite_differences():
    learner = delta_learner()
    learner.begin_deltas(dict.fromkeys(learner.tasks, 100))
    learner.train("far", 3)
    deltas = [learner.collect_delta(task, 4, weight=0.3) for task in learner.tasks]
    alphas = np.array([1.1, 0.2, 0.9, 1.4, 0.7])
    _, gradient = learner.merged_loss("primary", deltas, alphas)
    for index, direction in enumerate(np.eye(5)):
        above, below = (learner.merged_loss("primary", deltas, alphas + h * direction)[0] for h in (1e-5, -1e-5))
        assert gradient[index] == pytest.approx((above - below) / 2e-5, rel=1e-6, abs=1e-12)


def test_alphavil_keeps_the_contract():
    check_method("alphavil", settings={"epochs": 4, "tuning_rows": 30}, make_learner=delta_learner, budget_x=30)


def test_diw_keeps_the_contract():
    check_method("diw", settings={"epochs": 3, "patience": 2}, budget_x=60)


def simulate(method, seed):
    learner = SimulatedDeltaLearner(helpful(1, 2, noise=0.005), seed=seed)
    pool = learner.pool(TRAIN)
    return run_method(method, learner, pool, LocalTrials(learner, TRAIN), single_run_work=100).evidence["weights"]


def test_alphavil_orders_the_candidates_as_the_simulation_does():
    learned = simulate(AlphaVIL(AlphaVILSettings(alpha_rate=0.05, weight_on="loss", rescale=False)), seed=0)
    assert learned["arm-1"] > 1.2
    assert learned["arm-2"] < 0.9


@pytest.mark.statistical
@pytest.mark.parametrize("seed", range(5))
def test_diw_orders_the_candidates_as_the_simulation_does(seed):
    """Over 30 seeds the gap is 1.29 with a deviation of 0.03: a false alarm at 0.3 is not to be expected."""
    learned = simulate(DIW(DIWSettings(rate=1.0), seed=seed), seed)
    assert learned["arm-1"] > learned["arm-2"] + 0.3
