"""Metrics against scikit-learn, scipy and seqeval, on random and on degenerate input."""

from __future__ import annotations

import warnings

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats
from sklearn import metrics as reference

from sidequest.errors import SidequestError
from sidequest.tasks.metrics import METRICS, check_metric, compute, compute_all, default_metrics
from sidequest.tasks.spans import iob1_to_iob2, is_iob
from sidequest.tasks.task import Objective

TAGS = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC", "E-LOC", "S-PER", "I-A-B", "B-A-B")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.mark.parametrize("classes", [2, 3, 7])
@pytest.mark.parametrize("rows", [1, 5, 200])
def test_class_metrics_agree_with_scikit_learn(rng: np.random.Generator, classes: int, rows: int) -> None:
    labels = tuple(map(str, range(classes)))
    for _ in range(20):
        target, predicted = rng.integers(0, classes, (2, rows))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = {
                "accuracy": reference.accuracy_score(target, predicted),
                "macro_f1": reference.f1_score(target, predicted, average="macro"),
                "weighted_f1": reference.f1_score(target, predicted, average="weighted"),
                "matthews": reference.matthews_corrcoef(target, predicted),
            }
            if classes == 2:
                expected["f1"] = reference.f1_score(target, predicted, zero_division=0)
        found = compute_all(list(expected), predicted, target, labels)
        assert found == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("labels", [2, 5, 30])
@pytest.mark.parametrize("rows", [1, 7, 200])
def test_multi_label_metrics_agree_with_scikit_learn(rng: np.random.Generator, labels: int, rows: int) -> None:
    for _ in range(20):
        shares = rng.random(labels) ** 3
        target, predicted = (rng.random((2, rows, labels)) < shares).astype(int)
        if not target.any():
            continue
        expected = {
            "micro_f1": reference.f1_score(target, predicted, average="micro", zero_division=0),
            # A label that is neither there nor predicted is left out of the mean, as a class is.
            "macro_f1": reference.f1_score(target, predicted, average="macro", zero_division=np.nan),
            "weighted_f1": reference.f1_score(target, predicted, average="weighted", zero_division=0),
            "subset_accuracy": reference.accuracy_score(target, predicted),
        }
        assert compute_all(list(expected), predicted.astype(bool), target) == pytest.approx(expected, abs=1e-12)


def test_a_missing_prediction_counts_as_wrong(rng: np.random.Generator) -> None:
    target = rng.integers(0, 3, 100)
    predicted = np.where(rng.random(100) < 0.3, -1, target)
    labels = ("a", "b", "c")
    assert compute("accuracy", predicted, target, labels) == pytest.approx(np.mean(predicted >= 0))
    assert compute("matthews", predicted, target, labels) == pytest.approx(
        reference.matthews_corrcoef(target, predicted)
    )
    assert compute("macro_f1", predicted, target, labels) == pytest.approx(
        reference.f1_score(target, predicted, average="macro", labels=[0, 1, 2])
    )


def test_number_metrics_agree_with_scipy_and_scikit_learn(rng: np.random.Generator) -> None:
    for scale in (1.0, 1e-12, 1e12):
        target = rng.normal(size=50) * scale
        predicted = np.round(target / scale + rng.normal(size=50), 1) * scale  # rounding makes ties
        assert compute("pearson", predicted, target) == pytest.approx(stats.pearsonr(predicted, target)[0])
        assert compute("spearman", predicted, target) == pytest.approx(stats.spearmanr(predicted, target)[0])
        assert compute("r2", predicted, target) == pytest.approx(reference.r2_score(target, predicted))
        rmse = reference.root_mean_squared_error(target, predicted)
        assert compute("neg_rmse", predicted, target) == pytest.approx(-rmse)


@pytest.mark.parametrize("metric", sorted(METRICS))
def test_degenerate_input_gives_no_nan(metric: str) -> None:
    objective = METRICS[metric].objectives[0]
    if objective is Objective.TAGGING:
        rows = [np.zeros(3, dtype=int), np.zeros(0, dtype=int)]
        cases = [(rows, rows), ([], []), ([np.full(3, -1)], [np.zeros(3, dtype=int)])]
    elif objective is Objective.REGRESSION:
        flat = np.full(7, 0.1)
        broken = np.array([np.nan] * 6 + [1.0])
        cases = [
            (flat, flat),
            (flat, np.arange(7.0)),
            (np.arange(7.0), flat),
            (broken, np.arange(7.0)),
            (flat[:0], flat[:0]),
        ]
    elif objective is Objective.MULTILABEL:
        none, every = np.zeros((5, 2), dtype=np.uint8), np.ones((5, 2), dtype=np.uint8)
        cases = [(none, none), (none, every), (every, none), (none[:0], none[:0])]
    else:
        same = np.zeros(5, dtype=int)
        cases = [
            (same, same),
            (same, np.arange(5) % 2),
            (np.arange(5) % 2, same),
            (same - 1, same),
            (same[:0], same[:0]),
        ]
    for predicted, target in cases:
        assert not np.isnan(compute(metric, predicted, target, ("O", "B-X")))


def test_constant_predictions_score_zero() -> None:
    assert compute("pearson", np.full(5, 0.1), np.arange(5.0)) == 0.0
    assert compute("spearman", np.full(5, 0.1), np.arange(5.0)) == 0.0
    assert compute("matthews", np.zeros(4, dtype=int), np.array([0, 1, 0, 1]), ("a", "b")) == 0.0


def test_span_f1_agrees_with_seqeval_on_random_tags(rng: np.random.Generator) -> None:
    seqeval = pytest.importorskip("seqeval.metrics")
    for trial in range(150):
        tags = TAGS[: rng.integers(2, len(TAGS) + 1)]
        lengths = rng.integers(1, 9, size=rng.integers(1, 6))
        noise = rng.choice([0.1, 0.9])
        target = [rng.integers(0, len(tags), n) for n in lengths]
        predicted = [
            np.where(rng.random(len(row)) < noise, rng.integers(0, len(tags), len(row)), row) for row in target
        ]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = seqeval.f1_score(
                [[tags[i] for i in row] for row in target], [[tags[i] for i in row] for row in predicted]
            )
        assert compute("span_f1", predicted, target, tags) == pytest.approx(expected, abs=1e-12), trial


def test_span_f1_takes_arrow_targets_and_reads_no_prediction_as_outside() -> None:
    labels = ("O", "B-X", "I-X")
    target = pa.array([[1, 2, 0], [1]], type=pa.list_(pa.int64()))
    assert compute("span_f1", [np.array([1, 2, 0]), np.array([1])], target, labels) == 1.0
    assert compute("span_f1", [np.array([1, 2, -1]), np.array([-1])], target, labels) == pytest.approx(2 / 3)
    assert compute("token_accuracy", [np.array([1, 2, -1]), np.array([-1])], target, labels) == 0.5


def test_a_span_does_not_cross_sentences() -> None:
    labels = ("O", "B-X", "I-X")
    one = [np.array([1, 2])]
    two = [np.array([1]), np.array([2])]
    assert compute("span_f1", one, one, labels) == 1.0
    assert compute("span_f1", two, two, labels) == 1.0
    with pytest.raises(ValueError, match=r"1 rows of predictions, .* for 2 rows of targets"):
        compute("span_f1", one, two, labels)


def test_iob1_becomes_iob2() -> None:
    tags = np.array(["I-PER", "I-PER", "B-PER", "O", "I-LOC", "I-PER", "I-PER", "O"], dtype=object)
    first = np.array([True, False, False, False, False, False, True, False])
    converted, changed = iob1_to_iob2(tags, first)
    assert converted.tolist() == ["B-PER", "I-PER", "B-PER", "O", "B-LOC", "B-PER", "B-PER", "O"]
    assert changed == 4
    again, unchanged = iob1_to_iob2(converted, first)
    assert unchanged == 0
    assert again.tolist() == converted.tolist()


@pytest.mark.parametrize("tag", ["O", "B", "I-X", "E-X", "S-A-B"])
def test_iob_tags_are_recognised(tag: str) -> None:
    assert is_iob(tag)


@pytest.mark.parametrize("tag", ["", "NOUN", "INTJ", "I_X", "BX", "O-X"])
def test_plain_tags_are_not_iob(tag: str) -> None:
    assert not is_iob(tag)


def test_metrics_that_do_not_fit_are_refused() -> None:
    with pytest.raises(SidequestError, match=r"unknown metric 'acuracy'. Did you mean 'accuracy'"):
        check_metric("acuracy", Objective.CLASSIFICATION, ("a", "b"))
    with pytest.raises(SidequestError, match=r"does not fit the objective regression. Fitting: pearson"):
        check_metric("accuracy", Objective.REGRESSION, ())
    with pytest.raises(SidequestError, match="two labels, found 3"):
        check_metric("f1", Objective.CLASSIFICATION, ("a", "b", "c"))
    with pytest.raises(SidequestError, match="found 'NOUN'"):
        check_metric("span_f1", Objective.TAGGING, ("O", "NOUN"))


@pytest.mark.parametrize("labels", [("NOUN", "VERB"), ("O", "B-X", "I-X")])
def test_default_metrics_fit_their_objective(labels: tuple[str, ...]) -> None:
    for objective in Objective:
        for metric in default_metrics(objective, labels):
            check_metric(metric, objective, labels)
