"""Learning several labels per row: the loss is a likelihood, and every power of a learner takes such a task."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from sidequest.learning.fit import fit
from sidequest.learning.torch.losses import predictions, row_losses, task_loss
from sidequest.recipe import Phase
from sidequest.tasks.suite import Suite
from sidequest.tasks.task import Objective
from sidequest.testing import check_learner
from tests.helpers.tiny import tiny_learner, tiny_task


def test_the_loss_is_the_negative_log_likelihood_of_the_label_set() -> None:
    task = tiny_task("t", Objective.MULTILABEL)
    rng = np.random.default_rng(0)
    logits, marks = rng.normal(size=(6, 3)) * 3, rng.integers(0, 2, (6, 3))
    chance = 1 / (1 + np.exp(-logits))
    of_rows = -np.log(np.where(marks == 1, chance, 1 - chance)).sum(axis=1)
    given = torch.tensor(logits), torch.tensor(marks, dtype=torch.float64)
    assert row_losses(task, *given).numpy() == pytest.approx(of_rows)
    assert task_loss(task, *given).item() == pytest.approx(of_rows.mean())
    half = task_loss(task, given[0].half(), given[1].float())
    assert half.dtype == torch.float32
    assert half.item() == pytest.approx(of_rows.mean(), rel=1e-3)
    assert np.array_equal(predictions(task, given[0], None).numpy(), chance > 0.5)


def test_a_learner_with_such_tasks_keeps_the_contract() -> None:
    suite = Suite.of(
        tiny_task("main-one", Objective.MULTILABEL),
        [tiny_task("helper", rows=150, seed=1), tiny_task("more", Objective.MULTILABEL, rows=50, seed=2)],
    )
    check_learner(
        lambda seed: tiny_learner(suite, seed),
        make_with=lambda names, seed: tiny_learner(suite.subset(names), seed),
        fresh_process=False,
    )


def test_training_learns_the_labels() -> None:
    learner = tiny_learner(Suite.of(tiny_task("main-one", Objective.MULTILABEL)), patience=None)
    before = learner.evaluate_all("main-one", "report")
    fit(learner, [Phase(shares={"main-one": 1.0}, epochs=25)], learner.settings, 0)
    after = learner.evaluate_all("main-one", "report")
    assert list(after) == ["micro_f1", "macro_f1", "subset_accuracy"]
    assert after["micro_f1"] > 0.8 > before["micro_f1"]
    marks = learner.predict("main-one", "report")
    assert marks.shape == (40, 3)
    assert after["subset_accuracy"] == np.mean((marks == learner.suite["main-one"].splits["report"].target).all(1))
