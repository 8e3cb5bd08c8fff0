"""A response surface over sets or mixtures: what each auxiliary adds to a score, with intervals, from runs made anywhere.

All forms are linear in their coefficients and so fitted by ordinary least squares. Two have a coefficient for each task:

- `additive`: y = β₀ + Σ βⱼ·[task j is used], for sets;
- `log-linear`: y = β₀ + Σ βⱼ·log(1 + aⱼ), aⱼ the amount of task j relative to the primary, for mixtures: more of a task helps
  less and less.

Tasks often help only in each other's absence, which neither can say. Where repeated runs show that (the test of lack of fit),
the next form is taken:

- `pairwise`: the additive one with Σ βⱼₖ·[tasks j and k are used];
- `separate`: a mean of its own for every mixture that was run.

Runs that share a seed (or any other block) share an effect of their own, which is fitted and belongs to no set.

Intervals of single coefficients and of the mean of one given set are Student's. The best set is chosen by looking at all of them,
so what is said about it uses a band that covers all sets at once: Scheffé's or Bonferroni's, whichever is narrower.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from scipy import stats

Form = Literal["additive", "log-linear", "pairwise", "separate"]
SAME = 1e-9  # amounts that differ by less are equal
BENT = 0.5  # p of lack of fit below which a richer form is taken: a missed interaction costs more than a wide interval


@dataclass(frozen=True)
class Interval:
    """An estimate with its bounds."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Surface:
    """coefficients: β [1 + terms], the intercept first; covariance: of β; residual: the standard deviation of a run around the
    surface; freedom: its degrees of freedom. lack_of_fit: p of the test that the surface misses something beyond the noise
    between repeats, None without repeats. cells [mixtures, tasks]: of the form `separate`, those besides the primary alone."""

    tasks: tuple[str, ...]
    form: Form
    coefficients: np.ndarray
    covariance: np.ndarray
    residual: float
    freedom: int
    lack_of_fit: float | None = None
    cells: np.ndarray | None = None

    def features(self, amounts: np.ndarray) -> np.ndarray:
        """amounts [n, tasks] → design [n, 1 + terms]."""
        return design(amounts, self.form, self.cells)

    def coefficient(self, index: int, level: float = 0.95) -> Interval:
        """What task `index` adds: used at all (additive), or per unit of log(1 + amount)."""
        error = math.sqrt(self.covariance[index + 1, index + 1])
        return self._interval(self.coefficients[index + 1], error, level)

    def mean(self, amounts: Sequence[float] | np.ndarray, level: float = 0.95) -> Interval:
        """The mean score of one mixture."""
        return self._of(self.features(np.atleast_2d(amounts))[0], level)

    def gain(self, amounts: Sequence[float] | np.ndarray, level: float = 0.95) -> Interval:
        """The mean score of one mixture that was fixed beforehand, over that of the primary alone."""
        return self._of(self._contrast(amounts), level)

    def gain_of_best(self, amounts: Sequence[float] | np.ndarray, among: int, level: float = 0.95) -> Interval:
        """The same for a mixture that was chosen by looking at so many others: a band over all of them."""
        contrast = self._contrast(amounts)
        error = math.sqrt(max(0.0, contrast @ self.covariance @ contrast))
        terms = len(self.coefficients) - 1
        scheffe = math.sqrt(terms * stats.f.ppf(level, terms, self.freedom)) if terms else 0.0
        bonferroni = float(stats.t.ppf(1 - (1 - level) / (2 * max(1, among)), self.freedom))
        width = min(scheffe, bonferroni) * error
        value = float(contrast @ self.coefficients)
        return Interval(value, value - width, value + width)

    def _contrast(self, amounts: Sequence[float] | np.ndarray) -> np.ndarray:
        row = self.features(np.atleast_2d(amounts))[0].copy()
        row[0] = 0.0
        return row

    def with_noise_of(self, other: Surface) -> Surface:
        """The same estimates, judged by the noise around another surface: what this one misses is no noise of theirs."""
        scale = (other.residual / self.residual) ** 2 if self.residual else 1.0
        return replace(self, covariance=scale * self.covariance, residual=other.residual, freedom=other.freedom)

    def _of(self, row: np.ndarray, level: float) -> Interval:
        return self._interval(float(row @ self.coefficients), math.sqrt(max(0.0, row @ self.covariance @ row)), level)

    def _interval(self, value: float, error: float, level: float) -> Interval:
        width = stats.t.ppf(0.5 + level / 2, self.freedom) * error
        return Interval(float(value), float(value - width), float(value + width))


def design(amounts: np.ndarray, form: Form, cells: np.ndarray | None = None) -> np.ndarray:
    ones = np.ones(len(amounts))
    if form == "separate":
        assert cells is not None
        return np.column_stack([ones, (np.abs(amounts[:, None, :] - cells) < SAME).all(axis=2)])
    values = np.log1p(amounts) if form == "log-linear" else (amounts > 0).astype(np.float64)
    if form == "pairwise":
        pairs = itertools.combinations(range(values.shape[1]), 2)
        products = [values[:, one] * values[:, other] for one, other in pairs]
        return np.column_stack([ones, values, *products])
    return np.column_stack([ones, values])


def fit_surface(
    tasks: Sequence[str], amounts: np.ndarray, scores: np.ndarray, form: Form, blocks: Sequence[object] | None = None
) -> Surface:
    """Least squares. amounts [n, tasks], scores [n]; blocks: what else runs have in common, one value per run.

    Raises ValueError, with the reason, where the runs cannot tell the tasks apart or leave nothing to judge the noise by.
    """
    cells = other_mixtures(amounts) if form == "separate" else None
    main = design(amounts, form, cells)
    indicators = _block_columns(blocks, len(scores))
    matrix = np.column_stack([main, indicators])
    rank = int(np.linalg.matrix_rank(matrix))
    if rank < matrix.shape[1]:
        raise ValueError(_confounded(tasks, main, matrix, rank))
    freedom = len(scores) - matrix.shape[1]
    if freedom < 1:
        raise ValueError(
            f"{len(scores)} runs for {matrix.shape[1]} unknowns leave nothing to judge the noise by; "
            "repeat some runs with other seeds"
        )
    inverse = np.linalg.inv(matrix.T @ matrix)
    beta = inverse @ matrix.T @ scores
    residuals = scores - matrix @ beta
    variance = float(residuals @ residuals) / freedom
    # With blocks the intercept is that of the first block; the mean over blocks is what a user means by "the primary alone".
    beta, covariance = _centred(beta, variance * inverse, indicators, main.shape[1])
    return Surface(
        tuple(tasks),
        form,
        beta,
        covariance,
        math.sqrt(variance),
        freedom,
        _lack_of_fit(amounts, indicators, scores, float(residuals @ residuals), freedom),
        cells,
    )


def best_surface(
    tasks: Sequence[str], amounts: np.ndarray, scores: np.ndarray, blocks: Sequence[object] | None = None
) -> tuple[Surface, Surface]:
    """The plainest surface that does not miss what repeated runs show, and the one with a coefficient for each task, judged by
    the same noise. Where the runs cannot tell more apart, both are the latter."""
    plain = fit_surface(tasks, amounts, scores, choose_form(tasks, amounts, scores, blocks), blocks)
    richer: tuple[Form, ...] = ("pairwise", "separate") if plain.form == "additive" else ("separate",)
    chosen = plain
    for form in richer:
        if chosen.lack_of_fit is None or chosen.lack_of_fit >= BENT or not (amounts < SAME).all(axis=1).any():
            break
        with suppress(ValueError):  # these runs cannot tell so much apart
            chosen = fit_surface(tasks, amounts, scores, form, blocks)
    return chosen, plain.with_noise_of(chosen)


def other_mixtures(amounts: np.ndarray) -> np.ndarray:
    """The different mixtures that were run, but for the primary alone."""
    different = np.unique(amounts, axis=0)
    return different[(different > SAME).any(axis=1)]


def choose_form(
    tasks: Sequence[str], amounts: np.ndarray, scores: np.ndarray, blocks: Sequence[object] | None = None
) -> Form:
    """The form that leaves less unexplained; sets of equal amounts are additive. Both have as many coefficients."""
    used = amounts[amounts > 0]
    if not len(used) or np.allclose(used, used[0]):
        return "additive"
    forms: tuple[Form, ...] = ("additive", "log-linear")
    return min(forms, key=lambda form: fit_surface(tasks, amounts, scores, form, blocks).residual)


def probability_best(surface: Surface, mixtures: np.ndarray, rng: np.random.Generator, draws: int = 4000) -> np.ndarray:
    """How likely each mixture [m, tasks] is to be the best of them, [m], by draws of the coefficients from their distribution."""
    rows = surface.features(mixtures)
    factor = np.linalg.cholesky(surface.covariance + 1e-18 * np.eye(len(surface.coefficients)))
    scale = np.sqrt(surface.freedom / rng.chisquare(surface.freedom, size=draws))
    drawn = surface.coefficients + (rng.normal(size=(draws, len(factor))) @ factor.T) * scale[:, None]
    best = (drawn @ rows.T).argmax(axis=1)
    return np.bincount(best, minlength=len(mixtures)) / draws


def _block_columns(blocks: Sequence[object] | None, n: int) -> np.ndarray:
    if blocks is None:
        return np.zeros((n, 0))
    names = list(dict.fromkeys(blocks))
    return np.array([[float(block == name) for name in names[1:]] for block in blocks]).reshape(n, len(names) - 1)


def _centred(
    beta: np.ndarray, covariance: np.ndarray, indicators: np.ndarray, size: int
) -> tuple[np.ndarray, np.ndarray]:
    blocks = indicators.shape[1] + 1
    change = np.zeros((size, len(beta)))
    change[:, :size] = np.eye(size)
    change[0, size:] = 1 / blocks
    return change @ beta, change @ covariance @ change.T


def _lack_of_fit(
    amounts: np.ndarray, indicators: np.ndarray, scores: np.ndarray, unexplained: float, freedom: int
) -> float | None:
    """The F test of the surface against a mean of its own for every mixture; None where no mixture was repeated."""
    _, group = np.unique(amounts, axis=0, return_inverse=True)
    cells = np.eye(int(group.max()) + 1)[group.reshape(-1)]
    saturated = np.column_stack([cells, indicators])
    beta, *_ = np.linalg.lstsq(saturated, scores, rcond=None)
    pure_freedom = len(scores) - int(np.linalg.matrix_rank(saturated))
    missing_freedom = freedom - pure_freedom
    if pure_freedom < 1 or missing_freedom < 1:
        return None
    pure = float(((scores - saturated @ beta) ** 2).sum())
    missing = max(0.0, unexplained - pure)
    if pure <= 1e-12 * max(unexplained, 1e-300):
        return 0.0 if missing > 0 else 1.0
    return float(stats.f.sf((missing / missing_freedom) / (pure / pure_freedom), missing_freedom, pure_freedom))


def _confounded(tasks: Sequence[str], main: np.ndarray, matrix: np.ndarray, rank: int) -> str:
    if main.shape[1] != 1 + len(tasks):
        return "the runs cannot tell so many terms apart"
    never = [task for j, task in enumerate(tasks) if not main[:, j + 1].any()]
    always = [task for j, task in enumerate(tasks) if np.ptp(main[:, j + 1]) == 0 and main[:, j + 1].any()]
    if never:
        return f"{', '.join(never)}: no run uses it, so nothing can be said about it; leave its column out"
    if always:
        return f"{', '.join(always)}: every run uses it alike, so its effect cannot be told; add runs without it"
    return (
        f"the runs cannot tell the tasks apart: {matrix.shape[1]} unknowns, but only {rank} independent kinds of run; "
        "add runs in which tasks appear without each other"
    )
