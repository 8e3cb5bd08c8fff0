"""The model that alphavil and diw train is the one that `train` exports and `compare` scores."""

import numpy as np
import pytest

from sidequest.methods.baselines import Single
from sidequest.models import load
from sidequest.runs.cells import Job, run_job
from sidequest.runs.selecting import select
from sidequest.runs.setup import Setup
from sidequest.runs.training import own_weights, train_recipe
from sidequest.tasks.digits import digits_suite
from tests.helpers.marks import slow_but

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def setup() -> Setup:
    rows = {"top-left": 100, "parity": 100, "large": 0, "bottom-right": 0, "ink": 0, "shuffled": 0}
    suite = digits_suite(0, rows=rows, select_rows=50, report_rows=60)
    return Setup.of(suite, train={"epochs": 5, "learning_rate": 0.003, "evaluations": 5})


@pytest.mark.parametrize("method", slow_but(("alphavil", "diw"), "alphavil"))
def test_train_exports_the_methods_own_model(tmp_path, setup, method):
    recipe = select(setup, method, seed=1, directory=tmp_path)
    own = own_weights(tmp_path, recipe, seed=1)
    assert own is not None
    trained = train_recipe(setup, recipe, 1, directory=tmp_path, trained=own)
    assert trained.select["accuracy"] == recipe.evidence["best_score"]
    assert trained.history == []
    assert trained.meter.work == 0  # its cost is the selection's
    report = setup.suite["top-left"].splits["report"]
    found = load(tmp_path / "model").predict(report)
    assert np.mean(found.indices == report.target) == pytest.approx(trained.report["accuracy"])


def test_another_seed_or_a_recipe_alone_is_trained_anew(tmp_path, setup):
    recipe = select(setup, "alphavil", seed=1, directory=tmp_path)
    assert own_weights(tmp_path, recipe, seed=2) is None
    assert own_weights(tmp_path / "recipe.json", recipe, seed=1) is None
    anew = train_recipe(setup, recipe, 2)
    assert len(anew.history) == 1 + 5


def test_compare_scores_the_methods_own_model(tmp_path, setup):
    outcome = run_job(setup, Job("alphavil", {}, 1, tmp_path / "alphavil"))
    learner = setup.learner(1)
    learner.load(tmp_path / "alphavil" / "trained")
    assert outcome.score == learner.evaluate("top-left", "report")
    assert outcome.training.x == 0
    assert outcome.selection.x > 1
    assert not Single.trains_model
