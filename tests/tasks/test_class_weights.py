"""Class weights: scikit-learn's where it has them, of mean 1, and part of what a task is."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from sklearn.utils.class_weight import compute_class_weight

from sidequest.errors import SidequestError
from sidequest.tasks import make_task
from sidequest.tasks.class_weights import class_weights
from sidequest.tasks.task import Objective

ROWS = {
    "text": [f"text {i}" for i in range(80)],
    "label": ["joy", "joy", "joy", "fear", "joy", "joy", "rage", "joy"] * 10,
}


def test_balanced_weights_are_those_of_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    target = rng.choice(3, 200, p=(0.7, 0.25, 0.05))
    expected = compute_class_weight("balanced", classes=np.arange(3), y=target)
    assert class_weights("balanced", Objective.CLASSIFICATION, ("a", "b", "c"), target) == pytest.approx(expected)
    tags = pa.array([target[:50].tolist(), target[50:].tolist()], type=pa.list_(pa.int64()))
    assert class_weights("balanced", Objective.TAGGING, ("a", "b", "c"), tags) == pytest.approx(expected)
    marks = (rng.random((200, 2)) < (0.5, 0.03)).astype(np.uint8)
    for label, pair in enumerate(class_weights("balanced", Objective.MULTILABEL, ("a", "b"), marks)):
        assert pair == pytest.approx(compute_class_weight("balanced", classes=np.arange(2), y=marks[:, label]))


def test_weights_by_label_keep_their_ratios_and_a_mean_of_one() -> None:
    target = np.array([0] * 90 + [1] * 9 + [2])
    weights = np.array(class_weights({"c": 8.0, "b": 2}, Objective.CLASSIFICATION, ("a", "b", "c"), target))
    assert weights / weights[0] == pytest.approx([1, 2, 8])
    assert weights[target].mean() == pytest.approx(1)
    marks = np.eye(3, dtype=np.uint8)[target]
    pairs = np.array(class_weights({"c": 8.0}, Objective.MULTILABEL, ("a", "b", "c"), marks))
    assert pairs[:, 1] / pairs[:, 0] == pytest.approx([1, 1, 8])
    assert np.take_along_axis(pairs[None].repeat(100, 0), marks[:, :, None], 2).mean(axis=0) == pytest.approx(1)


def test_a_class_without_rows_is_no_trouble() -> None:
    weights = class_weights("balanced", Objective.CLASSIFICATION, ("a", "b", "c"), np.array([0, 0, 2, 2]))
    assert np.isfinite(weights).all()
    assert (weights[0], weights[2]) == (1, 1)
    marks = np.array([[1, 0], [1, 0]], dtype=np.uint8)
    assert np.isfinite(class_weights("balanced", Objective.MULTILABEL, ("a", "b"), marks)).all()


def test_weights_come_from_train_and_change_the_task() -> None:
    plain = make_task("t", "classification", ROWS)
    weighed = make_task("t", "classification", ROWS, class_weights="balanced")
    counts = np.bincount(weighed.train.target)
    assert np.array(weighed.class_weights) == pytest.approx(counts.sum() / (3 * counts))
    assert plain.class_weights is None
    assert len({task.fingerprints["train"] for task in (plain, weighed)}) == 2
    assert weighed.fingerprints == make_task("t", "classification", ROWS, class_weights="balanced").fingerprints


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({"jo": 2}, "class_weights: no label is called 'jo'. Did you mean 'joy'?"),
        ({"joy": 0}, "greater than 0; found 0"),
        ({"joy": float("nan")}, "finite number"),
        ("even", "balanced"),
    ],
)
def test_bad_weights_are_refused(weights: object, message: str) -> None:
    with pytest.raises(SidequestError) as error:
        make_task("t", "classification", ROWS, class_weights=weights)
    assert message in str(error.value)


def test_a_regression_has_no_classes() -> None:
    with pytest.raises(SidequestError, match="`class_weights:` means nothing for a regression task"):
        make_task("t", "regression", {"text": list("abcd"), "label": [1, 2, 3, 4.0]}, class_weights="balanced")


def test_classes_count_equally_in_the_loss_where_the_score_is_their_mean():
    plain = make_task("t", "classification", ROWS)
    by_class = make_task("t", "classification", ROWS, metric="macro_f1")
    balanced = make_task("t", "classification", ROWS, class_weights="balanced")
    assert plain.loss_weights is None
    assert by_class.class_weights is None
    assert by_class.loss_weights == balanced.class_weights
    given = make_task("t", "classification", ROWS, metric="macro_f1", class_weights={"joy": 3.0})
    assert given.loss_weights == given.class_weights != balanced.class_weights
