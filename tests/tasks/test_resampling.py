"""Metrics of resampled rows are the metrics of the rows drawn, for every metric and objective."""

import numpy as np
import pyarrow as pa
import pytest

from sidequest.tasks import resampling
from sidequest.tasks.metrics import METRICS, compute
from sidequest.tasks.resampling import RowStatistics, draws, resampler, row_interval
from sidequest.tasks.task import Objective

TAGS = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC")
CLASSES = ("a", "b", "c", "d")


def sample(objective: Objective, metric: str, rng: np.random.Generator, rows: int = 40):
    """Predictions, targets and labels of some rows, with ties, rare classes and missing predictions."""
    if objective is Objective.REGRESSION:
        target = rng.integers(0, 6, rows).astype(float)
        return np.round(target + rng.normal(0, 2, rows), 1), target, ()
    if objective is Objective.MULTILABEL:
        return rng.random((rows, 4)) < 0.3, (rng.random((rows, 4)) < 0.3).astype(np.uint8), CLASSES
    if objective is Objective.TAGGING:
        lengths = rng.integers(0, 7, rows)
        target = [rng.integers(0, 5, n) for n in lengths]
        predicted = [np.where(rng.random(len(t)) < 0.7, t, rng.integers(-1, 5, len(t))) for t in target]
        return predicted, pa.array([t.tolist() for t in target], type=pa.list_(pa.int64())), TAGS
    labels = CLASSES[:2] if metric == "f1" else CLASSES
    target = rng.choice(len(labels), rows, p=[0.9, 0.1] if len(labels) == 2 else [0.6, 0.3, 0.08, 0.02])
    return np.where(rng.random(rows) < 0.6, target, rng.integers(-1, len(labels), rows)), target, labels


def drawn_scores(metric, predictions, targets, labels, weights) -> list[float]:
    """The reference: the rows themselves, and the metric of them."""
    index = [np.repeat(np.arange(len(draw)), draw.astype(int)) for draw in weights]
    plain = [np.array(row, dtype=np.int64) for row in targets.to_pylist()] if isinstance(targets, pa.Array) else targets
    pick = {True: lambda values, rows: [values[i] for i in rows], False: lambda values, rows: values[rows]}
    is_list = isinstance(predictions, list)
    return [compute(metric, pick[is_list](predictions, rows), pick[is_list](plain, rows), labels) for rows in index]


CASES = [(metric, objective) for metric, entry in METRICS.items() for objective in entry.objectives]


@pytest.mark.parametrize(("metric", "objective"), CASES, ids=lambda value: str(value))
def test_a_metric_of_draws_is_the_metric_of_the_rows_drawn(metric, objective):
    rng = np.random.default_rng(7)
    for rows in (40, 3):
        given = sample(objective, metric, rng, rows)
        weights = draws(rows, 60, rng)
        found = resampler(metric, *given).scores(weights)
        np.testing.assert_allclose(found, drawn_scores(metric, *given, weights), atol=1e-9)
        whole = resampler(metric, *given).scores(np.ones((1, rows)))
        np.testing.assert_allclose(whole, [compute(metric, *given)], atol=1e-9)


def test_every_metric_but_a_strangers_is_computed_for_all_draws_at_once(monkeypatch):
    rng = np.random.default_rng(0)
    slow = [m for m, o in CASES if isinstance(resampler(m, *sample(o, m, rng)), resampling._DrawByDraw)]
    assert slow == []
    given = sample(Objective.TAGGING, "accuracy", rng)
    monkeypatch.setitem(METRICS, "of a stranger", METRICS["accuracy"])
    weights = draws(40, 20, rng)
    by_hand = resampler("of a stranger", *given)
    assert not isinstance(by_hand, RowStatistics)
    np.testing.assert_allclose(by_hand.scores(weights), resampler("accuracy", *given).scores(weights))


@pytest.mark.parametrize("metric", ["pearson", "spearman", "neg_rmse", "r2"])
@pytest.mark.parametrize(
    "predicted", [np.full(30, 0.3), np.array([np.nan] + [1.0] * 29), np.linspace(0, 1, 30) * 1e200]
)
def test_predictions_without_any_sense_score_as_they_do_in_the_metric(metric, predicted):
    rng = np.random.default_rng(1)
    target = rng.normal(size=30)
    weights = np.ones((2, 30))
    with np.errstate(over="ignore"):
        found = resampler(metric, predicted, target).scores(weights)
        np.testing.assert_allclose(found, [compute(metric, predicted, target)] * 2, atol=1e-9)


def test_draws_have_as_many_rows_as_there_are_and_are_seeded():
    weights = draws(50, 200, np.random.default_rng(3))
    assert (weights.sum(axis=1) == 50).all()
    assert weights.mean() == pytest.approx(1)
    assert np.var(weights) == pytest.approx(1 - 1 / 50, abs=0.05)
    np.testing.assert_array_equal(weights, draws(50, 200, np.random.default_rng(3)))
    assert not np.array_equal(weights, draws(50, 200, np.random.default_rng(4)))


def test_rows_that_are_all_right_have_no_interval():
    target = np.array([0, 1, 1, 0, 1, 0, 1, 1])
    assert row_interval("accuracy", target, target, ["a", "b"]) is None
    wrong = target.copy()
    wrong[0] = 1
    low, high = row_interval("accuracy", wrong, target, ["a", "b"])
    assert low < 1 == high
