"""Regularised linear models: ridge regression in closed form, logistic models by L-BFGS, the strength chosen by cross-validation.

Features are standardised, in float64. With α the strength, xᵢ a standardised row and n rows, the minimised functions are

    ridge:     Σᵢ ½ (yᵢ − w·xᵢ − b)²            + ½ α |w|²
    logistic:  Σᵢ −log p(yᵢ | xᵢ; W, b)          + ½ α |W|²

(scikit-learn's `Ridge(alpha=α)` and, for three classes and more, `LogisticRegression(C=1/α)`; two classes have two columns of
weights here, so that C=2/α is the same model). Biases are not penalised. Strengths are tried in proportion to the mean squared
length of a row, so that one grid fits ten features and three thousand.

With fewer rows than features the solution lies in the span of the rows, and everything is computed there. The same
eigenvectors precondition L-BFGS, which then needs some ten steps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from sidequest.numerics.folds import folds_of, sample_of
from sidequest.numerics.likelihoods import Choice, Loss, present_classes

# Strengths per mean squared length of a row, strong to weak. Weaker than the last, a model of hundreds of features and rows
# reproduces its training rows.
GRID = 10.0 ** np.arange(2.0, -4.01, -0.5)
# In coordinates of equal curvature a function with the gradient g is about ½|g|² above its least value. The coarse bound is for
# models that are only compared by their loss on held-out rows.
TOLERANCE, COARSE = 5e-3, 1e-1
LEAST_CURVATURE = 1e-4  # of a class without rows; it only has to be above 0
CONSTANT = 1e-6  # a feature whose standard deviation is below this part of its size is constant up to rounding


@dataclass(frozen=True)
class LinearModel:
    """x ↦ (x − mean) / scale · weight + bias.

    mean, scale: float64 [features]; weight: float64 [features, outputs]; bias: float64 [outputs].
    strength: the α it was fitted with. losses: the mean loss on held-out rows for each α that was tried.
    """

    mean: np.ndarray
    scale: np.ndarray
    weight: np.ndarray
    bias: np.ndarray
    strength: float
    losses: dict[float, float]

    def __call__(self, features: np.ndarray) -> np.ndarray:
        """float64 [n, outputs]."""
        weight = self.weight / self.scale[:, None]
        return np.asarray(features, dtype=np.float64) @ weight + (self.bias - self.mean @ weight)


def ridge(
    features: np.ndarray,
    targets: np.ndarray,
    strength: float | None = None,
    *,
    importance: np.ndarray | None = None,
    seed: int = 0,
) -> LinearModel:
    """Ridge regression. features [n, d], targets [n].

    strength: None chooses the one with the least squared error of leave-one-out predictions, which have a closed form.
    importance: float [d], factors on the standardised features: the larger, the less a feature's weight costs; None: ones.
    """
    x, mean, scale = _standardised(features, importance)
    y = np.asarray(targets, dtype=np.float64)
    losses: dict[float, float] = {}
    if strength is None:
        sample = sample_of(len(x), seed)
        basis = _Basis.of(x if len(sample) == len(x) else x[sample])
        strengths = GRID * basis.unit
        losses = _leave_one_out(basis, y[sample], strengths) if len(x) > 2 else {}
        strength = min(losses, key=losses.__getitem__) if losses else basis.unit
    intercept = y.mean()
    weight = _ridge_weights(x, y - intercept, strength)
    return LinearModel(mean, scale, _where_varied(weight[:, None], x), np.array([intercept]), strength, losses)


def logistic(
    features: np.ndarray,
    loss: Loss,
    strength: float | None = None,
    *,
    importance: np.ndarray | None = None,
    groups: np.ndarray | None = None,
    seed: int = 0,
    tolerance: float = TOLERANCE,
) -> LinearModel:
    """A logistic model with any of the losses of `likelihoods`. features [rows, d]. importance: see `ridge`.

    strength: None chooses the one with the least loss on held-out samples. groups: int64 [samples]; samples of one group (the
    words of a sentence) are held out together. tolerance: the largest part of the gradient, in coordinates of equal curvature,
    at which the search for the weights ends.
    """
    present, loss = present_classes(loss)
    x, mean, scale = _standardised(features, importance)
    samples = sample_of(len(loss), seed, groups)
    part = x if len(samples) == len(loss) else x[loss.rows(samples)]
    basis = _Basis.of(part)
    losses: dict[float, float] = {}
    if strength is None:
        folds = folds_of(loss.strata[samples], None if groups is None else groups[samples], seed)
        losses = _cross_validate(basis, loss.take(samples), folds)
        strength = min(losses, key=losses.__getitem__) if losses else basis.unit
    some = loss.take(samples)
    inner, bias = _minimise(basis.rows, some, strength, basis.scaling(strength, _curvatures(some)), tolerance)
    weight = basis.back @ inner
    if len(samples) < len(loss):
        curvatures = _curvatures(some, basis.rows @ inner + bias) * (len(x) / len(part))
        weight, bias = _minimise(x, loss, strength, basis.whole(strength, curvatures), tolerance, (weight, bias))
    if present is not None:
        weight, bias = _with_absent(weight, bias, present)
    return LinearModel(mean, scale, _where_varied(weight, x), bias, strength, losses)


@dataclass(frozen=True)
class _Basis:
    """Standardised rows in the coordinates of their principal components: rows = x · back, of at most n columns.

    variances: the components' sums of squares. unit: the mean squared length of a row, what strengths are measured by.
    """

    rows: np.ndarray
    back: np.ndarray
    variances: np.ndarray
    unit: float

    @classmethod
    def of(cls, x: np.ndarray) -> _Basis:
        unit = float(np.einsum("ij,ij->", x, x) / max(1, len(x))) or 1.0
        wide = len(x) < x.shape[1]
        variances, vectors = np.linalg.eigh(x @ x.T if wide else x.T @ x)
        kept = variances > len(variances) * np.finfo(np.float64).eps * max(variances[-1], 0.0)
        variances, vectors = variances[kept], vectors[:, kept]
        spread = np.sqrt(variances)
        if wide:
            return cls(vectors * spread, x.T @ (vectors / spread), variances, unit)
        return cls(x @ vectors, vectors, variances, unit)

    def scaling(self, strength: float, curvatures: np.ndarray) -> _Diagonal:
        """Coordinates in which the function is about equally curved in all directions."""
        return _Diagonal(1 / np.sqrt(np.outer(self.variances, curvatures) + strength))

    def whole(self, strength: float, curvatures: np.ndarray) -> _Rotated:
        """The same for weights of the features themselves."""
        return _Rotated(self.back, self.scaling(strength, curvatures).factors, 1 / np.sqrt(strength))


def _curvatures(loss: Loss, logits: np.ndarray | None = None) -> np.ndarray:
    """About the second derivative of a sample's loss with respect to each output, float64 [outputs]."""
    shares = loss.shares if logits is None else loss.probabilities(logits)
    spread = shares * (1 - shares)
    return np.maximum(spread if logits is None else spread.mean(axis=0), LEAST_CURVATURE)


@dataclass(frozen=True)
class _Diagonal:
    """weights = factors ⋆ coordinates, [columns, outputs] all of them."""

    factors: np.ndarray

    def __call__(self, weights: np.ndarray) -> np.ndarray:
        return weights * self.factors

    def inverse(self) -> _Diagonal:
        return _Diagonal(1 / self.factors)


@dataclass(frozen=True)
class _Rotated:
    """Per output, outside · I + back · diag(inside − outside) · backᵀ: symmetric, so it is its own transpose for gradients."""

    back: np.ndarray
    inside: np.ndarray
    outside: float

    def __call__(self, weights: np.ndarray) -> np.ndarray:
        within = (self.inside - self.outside) * (self.back.T @ weights)
        return self.outside * weights + self.back @ within

    def inverse(self) -> _Rotated:
        return _Rotated(self.back, 1 / self.inside, 1 / self.outside)


Solution = tuple[np.ndarray, np.ndarray]  # weights [columns, outputs], biases [outputs]


def _minimise(
    x: np.ndarray,
    loss: Loss,
    strength: float,
    change: _Diagonal | _Rotated,
    tolerance: float,
    start: Solution | None = None,
) -> Solution:
    """The weights and biases of the least regularised loss."""
    from scipy import optimize  # here: it takes a fifth of a second to import

    minimize: Any = optimize.minimize  # the stubs do not know that `options` are the method's own
    shape = (x.shape[1], loss.outputs)
    # A bias is to its coordinate what `change` is to the weights; the bias of a choice would cancel out and stays 0.
    unit = np.zeros(1) if isinstance(loss, Choice) else 1 / np.sqrt(_curvatures(loss) * len(loss))

    def value(flat: np.ndarray) -> tuple[float, np.ndarray]:
        weights = change(flat[loss.outputs :].reshape(shape))
        total, gradient = loss(x @ weights + unit * flat[: loss.outputs])
        to_weights = change(x.T @ gradient + strength * weights)
        penalty = 0.5 * strength * float((weights * weights).sum())
        return total + penalty, np.concatenate([unit * gradient.sum(axis=0), to_weights.ravel()])

    first = np.zeros(loss.outputs * (1 + shape[0]))
    if start is not None:
        first = np.concatenate([start[1] / np.where(unit > 0, unit, 1.0), change.inverse()(start[0]).ravel()])
    options: dict[str, Any] = {"maxiter": 1_000, "maxcor": 20, "ftol": 1e-5 * tolerance, "gtol": tolerance}
    solution = minimize(value, first, jac=True, method="L-BFGS-B", options=options).x
    return change(solution[loss.outputs :].reshape(shape)), unit * solution[: loss.outputs]


def _cross_validate(basis: _Basis, loss: Loss, folds: list[np.ndarray]) -> dict[float, float]:
    """The mean loss of held-out samples by strength."""
    if len(folds) < 2:
        return {}
    everything = np.arange(len(loss))
    parts = []
    for held_out in folds:
        kept = np.setdiff1d(everything, held_out)
        present, kept_loss = present_classes(loss.take(kept))
        test = held_out
        if present is not None:  # a class without a row to learn from says nothing about the strength
            test = held_out[present[loss.strata[held_out]]]
        test_loss = present_classes(loss.take(test), present)[1]
        parts.append((basis.rows[loss.rows(kept)], kept_loss, basis.rows[loss.rows(test)], test_loss))
    solutions: list[Solution | None] = [None] * len(parts)

    def held_out_loss(strength: float) -> float:
        total, count = 0.0, 0
        for number, (kept, kept_loss, test, test_loss) in enumerate(parts):
            change = basis.scaling(strength, _curvatures(kept_loss))
            solutions[number] = weight, bias = _minimise(kept, kept_loss, strength, change, COARSE, solutions[number])
            total += test_loss(test @ weight + bias)[0]
            count += len(test_loss)
        return total / max(count, 1)

    return _walk(held_out_loss, GRID * basis.unit)


def _walk(value: Callable[[float], float], grid: np.ndarray) -> dict[float, float]:
    """The values around the least one: from the middle of the grid in both directions, until they have risen twice in a row."""
    values: dict[float, float] = {}
    middle = len(grid) // 2
    for side in (grid[middle:], grid[:middle][::-1]):
        rises = 0
        for point in map(float, side):
            best = min(values.values(), default=np.inf)
            values[point] = value(point)
            rises = rises + 1 if values[point] > best else 0
            if rises == 2:
                break
    return dict(sorted(values.items()))


def _leave_one_out(basis: _Basis, y: np.ndarray, strengths: np.ndarray) -> dict[float, float]:
    n = len(y)
    left = basis.rows / np.sqrt(basis.variances)
    centred = y - y.mean()
    projected = left.T @ centred
    losses = {}
    for strength in strengths:
        shrink = basis.variances / (basis.variances + strength)
        leverage = 1 / n + (left * left) @ shrink
        residual = (centred - left @ (shrink * projected)) / np.maximum(1 - leverage, 1e-10)
        losses[float(strength)] = float(np.mean(residual * residual))
    return losses


def _ridge_weights(x: np.ndarray, y: np.ndarray, strength: float) -> np.ndarray:
    if len(x) < x.shape[1]:
        return x.T @ np.linalg.solve(x @ x.T + strength * np.eye(len(x)), y)
    return np.linalg.solve(x.T @ x + strength * np.eye(x.shape[1]), x.T @ y)


def _standardised(
    features: np.ndarray, importance: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features with mean 0 and deviation `importance`, float64, with the means and scales; constant features become 0."""
    x = np.array(features, dtype=np.float64)
    mean = x.mean(axis=0)
    x -= mean
    scale = np.sqrt(np.einsum("ij,ij->j", x, x) / max(1, len(x)))
    constant = scale <= CONSTANT * np.maximum(np.abs(mean), np.finfo(np.float64).tiny)
    x[:, constant] = 0.0
    scale[constant] = 1.0
    scale /= 1.0 if importance is None else importance
    x /= scale
    return x, mean, scale


def _where_varied(weight: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Exactly no weight for features that are constant here: what they are elsewhere must not count, not even by rounding."""
    varied = np.asarray(x.any(axis=0))
    return np.where(varied[:, None], weight, 0.0)


def _with_absent(weight: np.ndarray, bias: np.ndarray, present: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Columns for classes without a row: no weights, and a bias one below the lowest."""
    all_weights = np.zeros((len(weight), len(present)))
    all_weights[:, present] = weight
    all_biases = np.full(len(present), bias.min(initial=0.0) - 1.0)
    all_biases[present] = bias
    return all_weights, all_biases
