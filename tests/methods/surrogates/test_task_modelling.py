"""Task modelling against an independent least-squares fit, and on simulated learners whose answer is known."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from sidequest.learning.fit import single_run_work
from sidequest.methods.surrogates.task_modelling import TaskModelling, TaskModellingSettings, coefficients
from sidequest.runs.driver import run_method
from sidequest.search.trials import LocalTrials
from sidequest.settings import TrainSettings
from sidequest.simulation.learner import SimulatedLearner, helpful
from sidequest.testing import check_method

TRAIN = TrainSettings(epochs=10, patience=None)


def chosen(simulation, seed, **settings):
    learner, card = SimulatedLearner(simulation, seed=seed), simulation.cards[0]
    method = TaskModelling(TaskModellingSettings(**settings), seed=seed)
    work = single_run_work(card.rows, card.select_rows, TRAIN)
    return run_method(method, learner, learner.pool(TRAIN), LocalTrials(learner, TRAIN), single_run_work=work)


def test_the_contract():
    check_method(TaskModelling)


def test_the_coefficients_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    names = list("abcde")
    subsets = [[name for name in names if rng.random() < 0.5] for _ in range(12)]
    scores = rng.normal(size=12).tolist()
    design = np.array([[float(name in subset) for name in names] for subset in subsets])
    theirs = Ridge(alpha=0.3 * 12).fit(design, scores).coef_
    ours = coefficients(subsets, scores, names, 0.3)
    assert list(ours.values()) == pytest.approx(theirs.tolist())
    assert list(coefficients(subsets, scores, names, 0.0).values()) != pytest.approx(theirs.tolist())


def test_an_additive_truth_is_recovered_from_random_subsets():
    recipe = chosen(helpful(2, 6, gain=0.3, harm=0.2, noise=0.0), 0)
    assert recipe.auxiliaries == ("arm-1", "arm-2")
    found = recipe.evidence["coefficients"]
    assert min(found["arm-1"], found["arm-2"]) > 0 > max(found[f"arm-{i}"] for i in range(3, 7))
    assert len(recipe.evidence["subsets"]) == 6 + 2 + 1
    assert chosen(helpful(0, 6, harm=0.2, noise=0.0), 0).auxiliaries == ()


def test_a_threshold_keeps_fewer_and_all_candidates_are_in_some_subset():
    simulation = helpful(2, 6, gain=0.3, harm=0.2, noise=0.0)
    assert chosen(simulation, 1, threshold=10.0).auxiliaries == ()
    drawn = TaskModelling(TaskModellingSettings(subsets=2, size=3))._drawn(
        [f"t{i}" for i in range(6)], np.random.default_rng(3)
    )
    assert sorted(name for subset in drawn for name in subset) == [f"t{i}" for i in range(6)]
    assert len(TaskModelling(TaskModellingSettings(subsets=99))._drawn(["a", "b"], np.random.default_rng(0))) == 2
