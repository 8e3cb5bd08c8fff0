"""Metrics of resampled rows: what a score would have been on other rows of the same kind, for thousands of draws at once.

A draw is a weight per row, how often the row was drawn. Nearly every metric is a function of sums over rows (hits, counts,
moments): the sums of all draws are one product of matrices, and the metric itself is computed from them, not an average of its
values per row. Spearman's ranks change with the draw and are computed for each. A metric that is unknown here is computed draw by
draw.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sidequest.tasks.metrics import Values, compute, flatten_rows
from sidequest.tasks.spans import spans, split_tags

RESAMPLES = 2000
MOST_WEIGHTS = 4_000_000  # in memory at once: 32 MB

Finish = Callable[[np.ndarray], np.ndarray]  # sums [draws, statistics] → scores [draws]


@dataclass(frozen=True)
class RowStatistics:
    """What a metric needs of each row. sums: float64 [rows, statistics]; finish: from their weighted sums to the metric."""

    sums: np.ndarray
    finish: Finish

    def scores(self, weights: np.ndarray) -> np.ndarray:
        """float64 [draws] for weights [draws, rows]."""
        return self.finish(weights @ self.sums)


@dataclass(frozen=True)
class _Ranked:
    """Spearman: a row's rank depends on which rows were drawn."""

    predicted: np.ndarray
    target: np.ndarray

    def scores(self, weights: np.ndarray) -> np.ndarray:
        if not np.isfinite(self.predicted).all():
            return np.zeros(len(weights))
        return _correlations(_ranks(self.predicted, weights), _ranks(self.target, weights), weights)


@dataclass(frozen=True)
class _DrawByDraw:
    metric: str
    predictions: Values
    targets: Values
    labels: tuple[str, ...]

    def scores(self, weights: np.ndarray) -> np.ndarray:
        rows = [np.repeat(np.arange(len(draw)), draw.astype(np.int64)) for draw in weights]
        drawn = ((_take(self.predictions, index), _take(self.targets, index)) for index in rows)
        return np.array([compute(self.metric, *pair, self.labels) for pair in drawn])


def resampler(
    metric: str, predictions: Values, targets: Values, labels: Sequence[str] = ()
) -> RowStatistics | _Ranked | _DrawByDraw:
    """An object whose `scores(weights)` are the metric's values on draws of the rows."""
    predicted, _ = flatten_rows(predictions)
    target, lengths = flatten_rows(targets)
    if metric in ("accuracy", "token_accuracy"):
        return RowStatistics(_by_row(np.stack([predicted == target, np.ones(len(target))], axis=1), lengths), _share)
    if metric == "subset_accuracy":
        right = (predicted == target).all(axis=1)
        return RowStatistics(np.stack([right, np.ones(len(target))], axis=1).astype(np.float64), _share)
    if metric in _OF_CLASSES:
        counts, classes = _class_counts(predicted, target, len(labels))
        return RowStatistics(_by_row(counts, lengths), lambda sums: _OF_CLASSES[metric](*_thirds(sums, classes)))
    if metric == "span_f1":
        return RowStatistics(_span_counts(predicted, target, lengths, labels), _span_f1)
    if metric in _OF_MOMENTS and np.isfinite(predicted).all():
        return RowStatistics(_moments(predicted, target), _OF_MOMENTS[metric])
    if metric == "spearman":
        return _Ranked(predicted.astype(np.float64), target.astype(np.float64))
    return _DrawByDraw(metric, predictions, targets, tuple(labels))


def draws(rows: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """Weights float64 [count, rows]: how often each row is among as many rows drawn with replacement."""
    drawn = rng.integers(0, rows, (count, rows)) + rows * np.arange(count)[:, None]
    return np.bincount(drawn.ravel(), minlength=count * rows).reshape(count, rows).astype(np.float64)


def row_interval(
    metric: str, predictions: Values, targets: Values, labels: Sequence[str] = ()
) -> tuple[float, float] | None:
    """The 95 % percentile interval of a score for other rows of the same kind; None where it is not a number, or where rows
    that are all right, or all wrong, say nothing about others."""
    each, rows = resampler(metric, predictions, targets, labels), len(targets)
    rng = np.random.default_rng([0, rows])
    chunk = max(1, MOST_WEIGHTS // max(1, rows))
    sizes = [min(chunk, RESAMPLES - start) for start in range(0, RESAMPLES, chunk)]
    low, high = np.quantile(np.concatenate([each.scores(draws(rows, size, rng)) for size in sizes]), [0.025, 0.975])
    return (float(low), float(high)) if np.isfinite([low, high]).all() and low < high else None


# ---- classes ---------------------------------------------------------------------------------------------------------------


def _share(sums: np.ndarray) -> np.ndarray:
    return sums[:, 0] / np.maximum(sums[:, 1], 1)


def _class_counts(predicted: np.ndarray, target: np.ndarray, labels: int) -> tuple[np.ndarray, int]:
    """Hits, predictions and targets of each class, side by side: [values, 3 · classes]; and the number of classes."""
    if target.ndim == 2:
        classes = target.shape[1]
        parts = [predicted & target, predicted, target]
    else:
        classes = int(max(target.max(initial=-1), predicted.max(initial=-1), labels - 1)) + 1
        of_predicted = predicted[:, None] == np.arange(classes)
        of_target = target[:, None] == np.arange(classes)
        parts = [of_predicted & of_target, of_predicted, of_target]
    return np.concatenate(parts, axis=1).astype(np.float64), classes


def _thirds(sums: np.ndarray, classes: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return sums[:, :classes], sums[:, classes : 2 * classes], sums[:, 2 * classes :]


def _f1s(hits: np.ndarray, predicted: np.ndarray, actual: np.ndarray) -> np.ndarray:
    return 2 * hits / np.maximum(predicted + actual, 1)


def _f1(hits: np.ndarray, predicted: np.ndarray, actual: np.ndarray) -> np.ndarray:
    return _f1s(hits, predicted, actual)[:, 1] if hits.shape[1] > 1 else np.zeros(len(hits))


def _macro_f1(hits: np.ndarray, predicted: np.ndarray, actual: np.ndarray) -> np.ndarray:
    occurring = (predicted + actual > 0).sum(axis=1)
    return _f1s(hits, predicted, actual).sum(axis=1) / np.maximum(occurring, 1)


def _weighted_f1(hits: np.ndarray, predicted: np.ndarray, actual: np.ndarray) -> np.ndarray:
    return (_f1s(hits, predicted, actual) * actual).sum(axis=1) / np.maximum(actual.sum(axis=1), 1)


def _micro_f1(hits: np.ndarray, predicted: np.ndarray, actual: np.ndarray) -> np.ndarray:
    return 2 * hits.sum(axis=1) / np.maximum((predicted + actual).sum(axis=1), 1)


def _matthews(hits: np.ndarray, predicted: np.ndarray, actual: np.ndarray) -> np.ndarray:
    rows = actual.sum(axis=1)
    missed = rows - predicted.sum(axis=1)
    covariance = hits.sum(axis=1) * rows - (predicted * actual).sum(axis=1)
    of_predicted = rows**2 - (predicted**2).sum(axis=1) - missed**2
    spread = np.sqrt(np.maximum(of_predicted, 0)) * np.sqrt(np.maximum(rows**2 - (actual**2).sum(axis=1), 0))
    return np.divide(covariance, spread, out=np.zeros(len(rows)), where=spread > 0)


_OF_CLASSES: dict[str, Callable[..., np.ndarray]] = {
    "f1": _f1,
    "macro_f1": _macro_f1,
    "weighted_f1": _weighted_f1,
    "micro_f1": _micro_f1,
    "matthews": _matthews,
}


# ---- tags ------------------------------------------------------------------------------------------------------------------


def _span_counts(predicted: np.ndarray, target: np.ndarray, lengths: np.ndarray, labels: Sequence[str]) -> np.ndarray:
    """Hits, predicted and actual spans of each sentence, [rows, 3]."""
    prefix, kind = split_tags(labels)
    row_of = np.repeat(np.arange(len(lengths)), lengths)
    first = np.concatenate([[True], row_of[1:] != row_of[:-1]]) if len(row_of) else np.zeros(0, dtype=bool)

    def keyed(index: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        begin, end, of = spans(prefix[index], kind[index], first)
        return (begin * len(index) + end) * (len(labels) + 1) + of, row_of[begin]

    (of_predicted, predicted_rows), (of_target, target_rows) = keyed(predicted), keyed(target)
    hits = np.isin(of_predicted, of_target, assume_unique=True)
    counted = (predicted_rows[hits], predicted_rows, target_rows)
    return np.stack([np.bincount(rows, minlength=len(lengths)) for rows in counted], axis=1).astype(np.float64)


def _span_f1(sums: np.ndarray) -> np.ndarray:
    return 2 * sums[:, 0] / np.maximum(sums[:, 1] + sums[:, 2], 1)


def _by_row(values: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Sums over the values of each row: [values, k] → [rows, k]; a row may be empty."""
    cumulated = np.concatenate([np.zeros((1, values.shape[1])), np.cumsum(values, axis=0, dtype=np.float64)])
    ends = np.cumsum(lengths)
    return cumulated[ends] - cumulated[ends - lengths]


# ---- numbers ---------------------------------------------------------------------------------------------------------------


def _moments(predicted: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Of each row 1, p, t, p², t² and pt; then (p − t)², and t and t² around the mean, in the target's own units.

    The first p and t are centred and scaled, so that squares neither overflow nor vanish; correlations do not see it.
    """
    p, t = _scaled(predicted.astype(np.float64)), _scaled(target.astype(np.float64))
    error = (predicted.astype(np.float64) - target) ** 2
    centred = target - np.mean(target)
    return np.stack([np.ones(len(p)), p, t, p * p, t * t, p * t, error, centred, centred**2], axis=1)


def _scaled(values: np.ndarray) -> np.ndarray:
    if np.ptp(values) == 0:
        return np.zeros(len(values))  # a model that says the same of every row correlates with nothing
    centred = values - values.mean()
    return centred / np.abs(centred).max()


def _pearson(sums: np.ndarray) -> np.ndarray:
    n, p, t, pp, tt, pt = sums[:, :6].T
    return _correlation_of_moments(n, p, t, pp, tt, pt)


def _correlation_of_moments(*moments: np.ndarray) -> np.ndarray:
    n, p, t, pp, tt, pt = moments
    spread = np.maximum(n * pp - p * p, 0) * np.maximum(n * tt - t * t, 0)
    # A draw of equal values leaves rounding errors, which are far below this share of what a varied draw has.
    varied = (n * pp - p * p > 1e-12 * n * pp) & (n * tt - t * t > 1e-12 * n * tt)
    return np.clip(np.divide(n * pt - p * t, np.sqrt(spread), out=np.zeros(len(n)), where=varied), -1, 1)


def _neg_rmse(sums: np.ndarray) -> np.ndarray:
    return -np.sqrt(sums[:, 6] / np.maximum(sums[:, 0], 1))


def _r2(sums: np.ndarray) -> np.ndarray:
    n, error, t, tt = sums[:, 0], sums[:, 6], sums[:, 7], sums[:, 8]
    variance = tt - t * t / np.maximum(n, 1)
    varied = variance > 1e-12 * tt
    return np.where(varied, 1 - np.divide(error, variance, out=np.zeros(len(n)), where=varied), 0.0)


_OF_MOMENTS: dict[str, Finish] = {"pearson": _pearson, "neg_rmse": _neg_rmse, "r2": _r2}


def _ranks(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Average ranks [draws, rows] that each row's value has among the drawn ones; equal values share theirs."""
    _, group = np.unique(values, return_inverse=True)
    order = np.argsort(group, kind="stable")
    starts = np.flatnonzero(np.concatenate([[True], np.diff(group[order]) > 0]))
    counts = np.add.reduceat(weights[:, order], starts, axis=1)  # [draws, different values]
    return (np.cumsum(counts, axis=1) - (counts - 1) / 2)[:, group]


def _correlations(a: np.ndarray, b: np.ndarray, weights: np.ndarray) -> np.ndarray:
    n = weights.sum(axis=1)
    a, b = (each - ((weights * each).sum(axis=1) / n)[:, None] for each in (a, b))
    moments = [(weights * product).sum(axis=1) for product in (a, b, a * a, b * b, a * b)]
    return _correlation_of_moments(n, *moments)


def _take(values: Any, index: np.ndarray) -> Any:
    if isinstance(values, list | tuple):
        return [values[i] for i in index]
    return values.take(index) if hasattr(values, "combine_chunks") or hasattr(values, "type") else values[index]
