"""Losses with class weights, against plain arithmetic."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from sidequest.learning.torch.losses import row_losses, task_loss
from sidequest.models.base import IGNORE
from sidequest.tasks.class_weights import class_weights
from sidequest.tasks.suite import Suite
from sidequest.tasks.task import Form, Objective
from tests.helpers.sample_models import make_task
from tests.helpers.tiny import tiny_learner, tiny_task


def log_softmax(logits: np.ndarray) -> np.ndarray:
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


def test_a_row_counts_what_its_class_weighs() -> None:
    rng = np.random.default_rng(0)
    logits, labels, weights = rng.normal(size=(6, 3)), np.array([0, 0, 0, 1, 2, 0]), (0.4, 2.0, 5.0)
    task = replace(make_task("t"), class_weights=weights)
    expected = -log_softmax(logits)[np.arange(6), labels] * np.array(weights)[labels]
    given = torch.tensor(logits), torch.tensor(labels)
    assert row_losses(task, *given).numpy() == pytest.approx(expected)
    assert task_loss(task, *given).item() == pytest.approx(expected.sum() / 6)  # not by the sum of weights
    assert task_loss(make_task("t"), *given).item() != pytest.approx(expected.sum() / 6)


def test_words_count_what_their_tags_weigh() -> None:
    rng = np.random.default_rng(1)
    logits, labels = rng.normal(size=(2, 3, 3)), np.array([[0, 2, IGNORE], [IGNORE, 1, 1]])
    task = replace(make_task("t", Form.TOKENS), class_weights=(1.0, 0.5, 4.0))
    each = np.zeros((2, 3))
    for row, word in zip(*np.nonzero(labels != IGNORE), strict=True):
        tag = labels[row, word]
        each[row, word] = -log_softmax(logits)[row, word, tag] * task.class_weights[tag]
    given = torch.tensor(logits), torch.tensor(labels)
    assert row_losses(task, *given).numpy() == pytest.approx(each.sum(1))
    assert task_loss(task, *given).item() == pytest.approx(each.sum() / 4)


def test_labels_count_what_having_and_lacking_them_weighs() -> None:
    rng = np.random.default_rng(2)
    logits, marks, weights = rng.normal(size=(5, 2)), rng.integers(0, 2, (5, 2)), ((1.0, 1.0), (0.6, 9.0))
    task = replace(tiny_task("t", Objective.MULTILABEL), class_weights=weights)
    chance = 1 / (1 + np.exp(-logits))
    each = np.where(marks == 1, -np.log(chance), -np.log(1 - chance))
    expected = (each * np.where(marks == 1, [1.0, 9.0], [1.0, 0.6])).sum(1)
    given = torch.tensor(logits), torch.tensor(marks, dtype=torch.float64)
    assert row_losses(task, *given).numpy() == pytest.approx(expected)
    assert task_loss(task, *given).item() == pytest.approx(expected.mean())


def test_weights_met_first_in_inference_mode_can_be_trained_with() -> None:
    task = replace(make_task("t"), class_weights=(0.31, 0.32, 0.33))
    logits = torch.zeros(2, 3, requires_grad=True)
    with torch.inference_mode():
        task_loss(task, logits, torch.tensor([0, 1]))
    task_loss(task, logits, torch.tensor([0, 1])).backward()
    assert logits.grad is not None


def test_a_rare_class_is_predicted_once_it_weighs_more() -> None:
    """One row in twenty, hidden among frequent ones that look alike: cross-entropy alone never predicts it."""
    task = tiny_task("t", rows=200)
    target = np.where(np.random.default_rng(0).random(200) < 0.9, 0, task.train.target)
    rare = replace(task, splits={**task.splits, "train": replace(task.train, target=target)})
    recalls = []
    for weights in (None, class_weights("balanced", rare.objective, rare.labels, target)):
        learner = tiny_learner(Suite.of(replace(rare, class_weights=weights)))
        learner.train("t", 100)
        recalls.append(learner.predict("t", "train")[target == 1].mean())
    assert recalls[0] == 0
    assert recalls[1] > 0.7
