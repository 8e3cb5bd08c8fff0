"""Metrics: higher is better, always; a degenerate case gives 0, never NaN.

Classification and choice: int arrays [n]. Multi-label: 0/1 arrays [n, labels]. Regression: float arrays [n]. Tagging: an int
array per sentence (a list of arrays, or an Arrow list<int64>). A predicted index of -1 means "no prediction" and counts as wrong
(as `O` for spans).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from sidequest.errors import SettingsError, unknown
from sidequest.tasks.spans import is_iob, spans, split_tags
from sidequest.tasks.task import Objective

Values: TypeAlias = "np.ndarray | pa.Array | Sequence[Any]"


@dataclass(frozen=True)
class _Pair:
    """Predictions and targets, [n] (tagging: of all words) or bool [n, labels]; `first` marks words that begin a sentence."""

    predicted: np.ndarray
    target: np.ndarray
    first: np.ndarray
    labels: tuple[str, ...]


def compute(metric: str, predictions: Values, targets: Values, labels: Sequence[str] = ()) -> float:
    """The value of a metric by name; `labels` are the task's, in order."""
    if metric not in METRICS:
        raise unknown("metric", metric, METRICS)
    predicted, lengths = flatten_rows(predictions)
    target, expected = flatten_rows(targets)
    if predicted.shape != target.shape or not np.array_equal(lengths, expected):
        raise ValueError(
            f"{metric}: {len(lengths)} rows of predictions, shape {predicted.shape}, "
            f"for {len(expected)} rows of targets, shape {target.shape}"
        )
    if not len(target):
        return 0.0
    first = np.zeros(len(target), dtype=bool)
    starts = np.cumsum(expected) - expected
    first[starts[expected > 0]] = True
    return float(METRICS[metric].function(_Pair(predicted, target, first, tuple(labels))))


def compute_all(
    metrics: Sequence[str], predictions: Values, targets: Values, labels: Sequence[str] = ()
) -> dict[str, float]:
    """Every named metric."""
    return {metric: compute(metric, predictions, targets, labels) for metric in metrics}


def default_metrics(objective: Objective, labels: Sequence[str]) -> tuple[str, ...]:
    """The metrics of a task whose user named none."""
    if objective is Objective.REGRESSION:
        return ("pearson", "spearman", "r2")
    if objective is Objective.TAGGING:
        return ("span_f1", "token_accuracy") if labels and all(map(is_iob, labels)) else ("token_accuracy", "macro_f1")
    if objective is Objective.MULTILABEL:
        return ("micro_f1", "macro_f1", "subset_accuracy")
    return ("accuracy",)


def check_metric(metric: str, objective: Objective, labels: Sequence[str]) -> None:
    """Refuse a metric that means nothing for the task."""
    if metric not in METRICS:
        raise unknown("metric", metric, METRICS)
    if objective not in METRICS[metric].objectives:
        fitting = ", ".join(name for name, entry in METRICS.items() if objective in entry.objectives)
        raise SettingsError(f"metric {metric!r} does not fit the objective {objective}. Fitting: {fitting}")
    if metric == "f1" and len(labels) != 2:
        raise SettingsError(f"metric 'f1' is for two labels, found {len(labels)}. Use macro_f1 or weighted_f1")
    strange = [label for label in labels if not is_iob(label)]
    if metric == "span_f1" and strange:
        raise SettingsError(
            f"metric 'span_f1' needs tags like B-X, I-X and O, found {strange[0]!r}. Use token_accuracy"
        )


def flatten_rows(values: Values) -> tuple[np.ndarray, np.ndarray]:
    """One flat array, and the length of each row (of ones where a row is one value)."""
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        if isinstance(values, pa.ChunkedArray):
            values = values.combine_chunks()
        if not pa.types.is_list(values.type):
            return np.asarray(values), np.ones(len(values), dtype=np.int64)
        lengths = np.asarray(values.value_lengths(), dtype=np.int64)
        return np.asarray(values.flatten(), dtype=np.int64), lengths
    if isinstance(values, np.ndarray) and values.dtype != object:
        if values.ndim > 2:
            raise ValueError(
                f"metrics take one value, or one 0/1 per label, for each row; found the shape {values.shape}"
            )
        return values if values.ndim == 1 else values.astype(bool), np.ones(len(values), dtype=np.int64)
    if len(values) and np.ndim(values[0]) == 1:
        lengths = np.fromiter(map(len, values), dtype=np.int64, count=len(values))
        return np.concatenate([np.asarray(row) for row in values]), lengths
    return np.asarray(values), np.ones(len(values), dtype=np.int64)


# ---- classes ---------------------------------------------------------------------------------------------------------------


def _accuracy(pair: _Pair) -> float:
    return float(np.mean(pair.predicted == pair.target))


def _class_counts(pair: _Pair) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Hits, predictions and targets per class or label."""
    if pair.target.ndim == 2:
        both = pair.predicted & pair.target
        return both.sum(axis=0), pair.predicted.sum(axis=0), pair.target.sum(axis=0)
    classes = int(max(pair.target.max(), pair.predicted.max(), len(pair.labels) - 1)) + 1
    hits = np.bincount(pair.target[pair.predicted == pair.target], minlength=classes)
    predicted = np.bincount(pair.predicted[pair.predicted >= 0], minlength=classes)
    return hits, predicted, np.bincount(pair.target, minlength=classes)


def _f1_per_class(pair: _Pair) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """F1, whether the class occurs at all, and its targets."""
    hits, predicted, actual = _class_counts(pair)
    total = predicted + actual
    return 2 * hits / np.maximum(total, 1), total > 0, actual


def _f1(pair: _Pair) -> float:
    """F1 of the positive class, which is the second label."""
    scores = _f1_per_class(pair)[0]
    return float(scores[1]) if len(scores) > 1 else 0.0


def _macro_f1(pair: _Pair) -> float:
    """Mean over the classes or labels that occur in targets or predictions."""
    scores, occurs, _ = _f1_per_class(pair)
    return float(scores[occurs].mean()) if occurs.any() else 0.0


def _weighted_f1(pair: _Pair) -> float:
    scores, _, actual = _f1_per_class(pair)
    return float(scores @ actual / max(actual.sum(), 1))


def _micro_f1(pair: _Pair) -> float:
    """F1 over all decisions of all labels together."""
    hits, predicted, actual = _class_counts(pair)
    return float(2 * hits.sum() / max(predicted.sum() + actual.sum(), 1))


def _subset_accuracy(pair: _Pair) -> float:
    """The share of rows whose labels are all right."""
    return float((pair.predicted == pair.target).all(axis=1).mean())


def _matthews(pair: _Pair) -> float:
    """Gorodkin's multi-class correlation; for two classes it is Matthews'. "No prediction" is a class of its own."""
    hits, predicted, actual = _class_counts(pair)
    rows = len(pair.target)
    missed = rows - predicted.sum()
    covariance = hits.sum() * rows - predicted @ actual
    spread = np.sqrt(float(rows**2 - predicted @ predicted - missed**2)) * np.sqrt(float(rows**2 - actual @ actual))
    return float(covariance / spread) if spread > 0 else 0.0


# ---- tags ------------------------------------------------------------------------------------------------------------------


def _span_f1(pair: _Pair) -> float:
    """Micro F1 over spans, exact in place and type."""
    prefix, kind = split_tags(pair.labels)

    def keyed(index: np.ndarray) -> np.ndarray:
        begin, end, of = spans(prefix[index], kind[index], pair.first)
        return (begin * len(index) + end) * (len(pair.labels) + 1) + of

    predicted, actual = keyed(pair.predicted), keyed(pair.target)
    hits = len(np.intersect1d(predicted, actual, assume_unique=True))
    return 2 * hits / max(len(predicted) + len(actual), 1)


# ---- numbers ---------------------------------------------------------------------------------------------------------------


def _correlation(a: np.ndarray, b: np.ndarray) -> float:
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        return 0.0  # a diverged model knows nothing about the order of the targets
    # Scaling by the largest deviation keeps the squares from overflowing or vanishing.
    a, b = a - a.mean(), b - b.mean()
    tops = np.abs(a).max(), np.abs(b).max()
    if min(tops) == 0:
        return 0.0
    a, b = a / tops[0], b / tops[1]
    return float(np.clip(a @ b / np.sqrt((a @ a) * (b @ b)), -1, 1))


def _pearson(pair: _Pair) -> float:
    predicted = pair.predicted.astype(np.float64)
    if np.ptp(predicted) == 0 or np.ptp(pair.target) == 0:
        return 0.0  # before subtracting the mean, which may leave rounding errors to correlate
    return _correlation(predicted, pair.target.astype(np.float64))


def _spearman(pair: _Pair) -> float:
    from scipy.stats import rankdata  # here: scipy.stats takes half a second to import, and most metrics do without

    if not np.isfinite(pair.predicted).all():
        return 0.0
    return _correlation(rankdata(pair.predicted), rankdata(pair.target))


def _mean_square_error(pair: _Pair) -> float:
    if not np.isfinite(pair.predicted).all():
        return np.inf
    return float(np.mean((pair.predicted.astype(np.float64) - pair.target) ** 2))


def _neg_rmse(pair: _Pair) -> float:
    return -float(np.sqrt(_mean_square_error(pair)))


def _r2(pair: _Pair) -> float:
    """Share of variance explained; 0 where the targets have none, -inf where predictions are not finite."""
    variance = float(np.var(pair.target.astype(np.float64)))
    return 1.0 - _mean_square_error(pair) / variance if variance > 0 else 0.0


# ---- the list --------------------------------------------------------------------------------------------------------------

_CLASSES = (Objective.CLASSIFICATION, Objective.CHOICE, Objective.TAGGING)
_LABELS = (Objective.CLASSIFICATION, Objective.TAGGING, Objective.MULTILABEL)


@dataclass(frozen=True)
class Metric:
    function: Callable[[_Pair], float]
    objectives: tuple[Objective, ...]


METRICS: dict[str, Metric] = {
    "accuracy": Metric(_accuracy, _CLASSES),
    "f1": Metric(_f1, (Objective.CLASSIFICATION,)),
    "macro_f1": Metric(_macro_f1, _LABELS),
    "weighted_f1": Metric(_weighted_f1, _LABELS),
    "micro_f1": Metric(_micro_f1, (Objective.MULTILABEL,)),
    "subset_accuracy": Metric(_subset_accuracy, (Objective.MULTILABEL,)),
    "matthews": Metric(_matthews, (Objective.CLASSIFICATION,)),
    "span_f1": Metric(_span_f1, (Objective.TAGGING,)),
    "token_accuracy": Metric(_accuracy, (Objective.TAGGING,)),
    "pearson": Metric(_pearson, (Objective.REGRESSION,)),
    "spearman": Metric(_spearman, (Objective.REGRESSION,)),
    "neg_rmse": Metric(_neg_rmse, (Objective.REGRESSION,)),
    "r2": Metric(_r2, (Objective.REGRESSION,)),
}
