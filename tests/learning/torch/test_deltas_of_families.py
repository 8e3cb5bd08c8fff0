"""Deltas on every kind of text model that sidequest has: adapters, frozen states, recurrent layers, native heads."""

from dataclasses import replace

import numpy as np
import pytest

from sidequest.learning.protocol import Deltas
from sidequest.runs.selecting import select
from sidequest.runs.setup import Setup
from sidequest.tasks.suite import Suite
from sidequest.tasks.task import Form, Task
from tests.helpers.marks import slow_but
from tests.helpers.sample_models import make_encoder, make_task

KINDS = {
    "hf": {"kind": "hf"},
    "hf, first layers frozen": {"kind": "hf", "freeze": 2},
    "hf, mean": {"kind": "hf", "pooling": "mean"},
    "bilstm": {"kind": "bilstm", "hidden": 8},
    "pooled": {"kind": "pooled", "hidden": 8},
}


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return make_encoder(tmp_path_factory.mktemp("encoder") / "bert", "bert")


def task_with_select(name: str, form: Form) -> Task:
    task = make_task(name, form)
    rows = np.arange(len(task.train))
    return replace(task, splits={"train": task.train.take(rows[:-6]), "select": task.train.take(rows[-6:])})


@pytest.fixture(params=slow_but(KINDS, "hf, first layers frozen", "bilstm", "pooled"))
def setup(request, encoder) -> Setup:
    primary, *candidates = (
        task_with_select(name, form)
        for name, form in {"pairs": Form.PAIR, "choices": Form.CHOICES, "texts": Form.TEXT}.items()
    )
    suite = Suite.of(primary, candidates)
    model = KINDS[request.param] | {"encoder": str(encoder)}
    return Setup.of(suite, model, {"epochs": 2, "batch_size": 8, "learning_rate": 0.003})


def test_gradient_equals_finite_differences_in_single_precision(setup):
    learner = setup.learner(0)
    learner[Deltas].begin_deltas(dict.fromkeys(learner.tasks, 20))
    deltas = [learner[Deltas].collect_delta(task, 8, weight=1 / 3) for task in learner.tasks]
    alphas, step = np.ones(3), 0.002
    _, gradient = learner[Deltas].merged_loss("pairs", deltas, alphas)
    ends = [
        [learner[Deltas].merged_loss("pairs", deltas, alphas + sign * step * direction)[0] for sign in (1, -1)]
        for direction in np.eye(3)
    ]
    expected = np.array([(above - below) / (2 * step) for above, below in ends])
    np.testing.assert_allclose(gradient, expected, rtol=0.05, atol=2e-4)
    assert np.abs(gradient).max() > 1e-3


def test_alphavil_runs_and_its_best_model_is_kept(setup):
    recipe = select(setup, "alphavil", seed=0)
    assert len(recipe.evidence["epochs"]) == 2
    assert all(np.isfinite(epoch["alphas"]).all() for epoch in recipe.evidence["epochs"])
