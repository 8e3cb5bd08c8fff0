"""Regularised linear models against scikit-learn, by their own definitions, and on rows that leave little to learn from."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from sklearn.linear_model import LogisticRegression, Ridge, RidgeCV

from sidequest.numerics import folds
from sidequest.numerics.likelihoods import Choice, Sigmoids, Softmax
from sidequest.numerics.linear_models import GRID, logistic, ridge

SHAPES = [(60, 12), (40, 90)]  # more rows than features, and fewer


def rows_of(n, d, classes=3, seed=0):
    """Correlated features of very different sizes, and labels that depend on them."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) / np.sqrt(d)
    logits = 2 * x @ rng.normal(size=(d, classes))
    labels = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    return x * np.exp(rng.normal(size=d)) + rng.normal(size=d), labels, logits[:, 0] + rng.normal(size=n)


def standardised(x):
    return (x - x.mean(axis=0)) / x.std(axis=0)


def objective(model, x, loss):
    return loss(model(x))[0] + 0.5 * model.strength * (model.weight**2).sum()


@pytest.mark.parametrize(("n", "d"), SHAPES)
def test_ridge_is_scikit_learns(n, d):
    x, _, y = rows_of(n, d)
    reference = Ridge(alpha=3.0).fit(standardised(x), y)
    model = ridge(x, y, 3.0)
    assert np.allclose(model(x)[:, 0], reference.predict(standardised(x)), atol=1e-9)
    assert np.allclose(model.weight[:, 0], reference.coef_, atol=1e-9)
    assert not np.allclose(ridge(x, y, 30.0).weight[:, 0], reference.coef_, atol=1e-3)


@pytest.mark.parametrize(("n", "d"), SHAPES)
def test_ridge_chooses_the_strength_that_scikit_learn_chooses(n, d):
    x, _, y = rows_of(n, d)
    z = standardised(x)
    reference = RidgeCV(alphas=GRID * d, store_cv_results=True).fit(z, y)
    model = ridge(x, y)
    assert model.strength == pytest.approx(reference.alpha_)
    errors = dict(zip(GRID * d, reference.cv_results_.reshape(n, -1).mean(axis=0), strict=True))
    for strength, error in errors.items():
        nearest = min(model.losses, key=lambda tried: abs(tried - strength))
        assert model.losses[nearest] == pytest.approx(error, rel=1e-6)


@pytest.mark.parametrize(("n", "d"), SHAPES)
@pytest.mark.parametrize("classes", [2, 3])
def test_softmax_is_scikit_learns(n, d, classes):
    x, labels, _ = rows_of(n, d, classes)
    z, strength = standardised(x), 5.0
    # Two classes have one column of weights there, two opposite ones here: the same logit costs half as much.
    reference = LogisticRegression(C=(2 if classes == 2 else 1) / strength, tol=1e-10, max_iter=10_000).fit(z, labels)
    model = logistic(x, Softmax(labels, classes), strength, tolerance=1e-7)
    assert np.allclose(Softmax(labels, classes).probabilities(model(x)), reference.predict_proba(z), atol=2e-4)
    assert not np.allclose(
        Softmax(labels, classes).probabilities(logistic(x, Softmax(labels, classes), 15.0, tolerance=1e-7)(x)),
        reference.predict_proba(z),
        atol=2e-2,
    )


def test_many_rows_give_the_solution_of_the_whole(monkeypatch):
    """More rows than the strength is chosen on: the second fit, in the coordinates of the first, ends where scikit-learn does."""
    monkeypatch.setattr(folds, "CHOOSING_ROWS", 50)
    x, labels, _ = rows_of(400, 80)
    reference = LogisticRegression(C=0.1, tol=1e-10, max_iter=10_000).fit(standardised(x), labels)
    model = logistic(x, Softmax(labels, 3), 10.0, tolerance=1e-7)
    assert np.allclose(Softmax(labels, 3).probabilities(model(x)), reference.predict_proba(standardised(x)), atol=2e-4)


def test_class_weights_are_scikit_learns():
    x, labels, _ = rows_of(80, 10)
    weights = len(labels) / (3 * np.bincount(labels))
    reference = LogisticRegression(C=0.5, tol=1e-10, max_iter=10_000, class_weight="balanced").fit(
        standardised(x), labels
    )
    model = logistic(x, Softmax(labels, 3, weights), 2.0, tolerance=1e-7)
    assert np.allclose(Softmax(labels, 3).probabilities(model(x)), reference.predict_proba(standardised(x)), atol=2e-4)


def test_labels_by_themselves_are_one_logistic_regression_each():
    x, _, _ = rows_of(80, 10)
    targets = np.random.default_rng(1).random((80, 3)) < 1 / (1 + np.exp(-standardised(x)[:, :3]))
    model = logistic(x, Sigmoids(targets), 4.0, tolerance=1e-7)
    for label in range(3):
        reference = LogisticRegression(C=1 / 4.0, tol=1e-10, max_iter=10_000).fit(standardised(x), targets[:, label])
        assert np.allclose(model(x)[:, label], reference.decision_function(standardised(x)), atol=2e-3)


def test_two_choices_are_a_logistic_regression_on_their_difference():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(100, 6))
    x = standardised(np.concatenate([x, -x]).reshape(2, 100, 6).transpose(1, 0, 2).reshape(200, 6))
    first = x[::2] @ rng.normal(size=6) > x[1::2] @ rng.normal(size=6)
    model = logistic(x, Choice(np.where(first, 0, 1), np.full(100, 2)), 2.0, tolerance=1e-7)
    reference = LogisticRegression(C=0.5, fit_intercept=False, tol=1e-10, max_iter=10_000).fit(x[::2] - x[1::2], first)
    assert np.allclose(model.weight[:, 0], reference.coef_[0], atol=1e-3)
    assert model.bias[0] == 0


@pytest.mark.parametrize(
    "loss",
    [
        Softmax(np.array([0, 2, 1, 2]), 3),
        Softmax(np.array([0, 2, 1, 2]), 3, np.array([0.5, 1.0, 3.0])),
        Sigmoids(np.array([[0, 1, 1], [1, 0, 0], [0, 0, 0], [1, 1, 1]])),
        Sigmoids(np.array([[0, 1], [1, 0], [0, 0], [1, 1]]), np.array([[1.0, 2.0], [0.5, 4.0]])),
        Choice(np.array([1, 0]), np.array([3, 1])),
    ],
)
def test_gradients_are_those_of_the_loss(loss):
    logits = np.random.default_rng(0).normal(size=(4, loss.outputs))
    numeric = approx_fprime(logits.ravel(), lambda flat: loss(flat.reshape(logits.shape))[0], 1e-7)
    assert np.allclose(loss(logits)[1].ravel(), numeric, atol=1e-5)
    assert np.abs(numeric).max() > 0.1


def test_the_chosen_strength_is_the_best_on_held_out_rows():
    """Labels of noise want all the strength there is, labels that depend on the features want little of it."""
    x, labels, _ = rows_of(200, 30)
    noise = np.random.default_rng(0).integers(0, 3, 200)
    assert logistic(x, Softmax(noise, 3)).strength > 100 * logistic(x, Softmax(labels, 3)).strength
    model = logistic(x, Softmax(labels, 3))
    assert model.losses[model.strength] == min(model.losses.values())


def test_words_of_a_sentence_are_held_out_together():
    """Copies of a row in one group would be memorised if the group were split, and little strength would seem best."""
    rng = np.random.default_rng(0)
    x = np.repeat(rng.normal(size=(40, 30)), 5, axis=0) + 0.01 * rng.normal(size=(200, 30))
    labels, groups = np.repeat(rng.integers(0, 2, 40), 5), np.repeat(np.arange(40), 5)
    together = logistic(x, Softmax(labels, 2), groups=groups)
    apart = logistic(x, Softmax(labels, 2))
    assert together.strength > 10 * apart.strength


def test_the_same_rows_give_the_same_bytes():
    x, labels, y = rows_of(100, 20)
    one, two = (logistic(x, Softmax(labels, 3)) for _ in range(2))
    assert one.weight.tobytes() == two.weight.tobytes()
    assert one.weight.tobytes() != logistic(x, Softmax(labels, 3), one.strength * 1.01).weight.tobytes()
    assert ridge(x, y).weight.tobytes() == ridge(x, y).weight.tobytes()


def test_a_class_with_one_row_and_classes_without_rows_do_no_harm():
    x, labels, _ = rows_of(60, 12, 2)
    model = logistic(x, Softmax(labels, 4))
    plain = logistic(x, Softmax(labels, 2), model.strength)
    assert (model(x).argmax(axis=1) < 2).all()
    assert np.allclose(model(x)[:, :2], plain(x))
    labels[0] = 3
    model = logistic(x, Softmax(labels, 4))
    assert np.isfinite(model(x)).all()
    assert (model(x).argmax(axis=1) != 2).all()


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_hardly_any_rows_give_finite_models(n):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 7))
    x[:, 2] = 3.0  # constant
    for labels in (np.zeros(n, dtype=np.int64), np.arange(n) % 2):
        model = logistic(x, Softmax(labels, 2))
        assert np.isfinite(model(x)).all()
        assert model(x).argmax(axis=1)[0] == labels[0]
    assert np.isfinite(logistic(x, Sigmoids(rng.random((n, 2)) < 0.5))(x)).all()
    assert np.isfinite(logistic(np.repeat(x, 2, axis=0), Choice(np.zeros(n, np.int64), np.full(n, 2)))(x)).all()
    y = rng.normal(size=n)
    model = ridge(x, y)
    assert model(x)[:, 0].mean() == pytest.approx(y.mean())
    assert model.weight[2, 0] == 0


def test_features_that_are_constant_up_to_rounding_get_no_weight():
    x, labels, _ = rows_of(50, 5)
    x[:, 1] = 1e4 + 1e-7 * np.random.default_rng(0).normal(size=50)
    model = logistic(x, Softmax(labels, 3))
    assert not model.weight[1].any()
    assert model.weight[0].any()


def test_a_feature_of_more_importance_costs_less():
    rng = np.random.default_rng(5)
    x = rng.normal(size=(60, 4))
    y = x.sum(axis=1)
    importance = np.array([10.0, 1.0, 1.0, 1.0])
    model = ridge(x, y, 100.0, importance=importance)
    by_hand = ridge(x, y, 100.0)
    weights, plain = model.weight[:, 0] / model.scale, by_hand.weight[:, 0] / by_hand.scale
    assert weights[0] > 2 * weights[1:].max()
    assert plain[0] < 1.5 * plain[1:].max()
    assert np.allclose(model.scale * importance, by_hand.scale)
