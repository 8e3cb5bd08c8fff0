"""A small Gaussian process: ARD Matérn kernel, fitted noise, targets standardised. For tens of points and a finite set
of candidates.

With so few observations the marginal likelihood alone is happy to explain everything as noise, or nothing; a weak log-normal
prior on every hyper-parameter keeps it sensible (maximum a posteriori). The gradient is analytic, so that a fit takes
milliseconds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import optimize
from scipy.linalg import cho_solve, cholesky, solve_triangular

JITTER = 1e-10  # on the diagonal, relative to targets of unit variance: only against rounding


@dataclass(frozen=True)
class Prior:
    """Of the logarithm of a hyper-parameter: centre and deviation; values are searched within five deviations."""

    centre: float
    deviation: float

    @property
    def bounds(self) -> tuple[float, float]:
        return self.centre - 5 * self.deviation, self.centre + 5 * self.deviation


# Inputs lie in [0, 1] and targets have unit variance, so these say: the signal is about as large as the spread of the
# scores, the noise probably smaller, and a score changes over a fair part of the range. Length scales grow with √d as
# distances do (Hvarfner et al. 2024), else every point of a space of many tasks is far from every other.
SIGNAL = Prior(0.0, 0.5)
NOISE = Prior(math.log(0.1), 1.0)


def length_prior(dimensions: int) -> Prior:
    return Prior(math.log(0.5 * math.sqrt(dimensions)), 0.75)


@dataclass(frozen=True)
class Hyper:
    """signal and noise: variances in units of standardised targets. lengths: one scale per input dimension."""

    signal: float
    noise: float
    lengths: tuple[float, ...]

    def to_log(self) -> np.ndarray:
        return np.log([self.signal, self.noise, *self.lengths])

    @classmethod
    def from_log(cls, theta: np.ndarray) -> Hyper:
        signal, noise, *lengths = np.exp(theta).tolist()
        return cls(signal, noise, tuple(lengths))


def matern(a: np.ndarray, b: np.ndarray, lengths: np.ndarray, nu: float) -> np.ndarray:
    """The Matérn correlation of every row of a [n, d] with every row of b [m, d]: [n, m]. nu: 1.5 or 2.5."""
    scaled = math.sqrt(2 * nu) * _distance(a / lengths, b / lengths)
    if nu == 1.5:
        return (1 + scaled) * np.exp(-scaled)
    if nu == 2.5:
        return (1 + scaled + scaled**2 / 3) * np.exp(-scaled)
    raise ValueError(f"nu is 1.5 or 2.5, found {nu}")


def _distance(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    # Column by column: exact differences (no cancellation near zero) without an [n, m, d] array.
    squared = np.zeros((len(a), len(b)))
    for i in range(a.shape[1]):
        squared += np.subtract.outer(a[:, i], b[:, i]) ** 2
    return np.sqrt(squared)


@dataclass(frozen=True)
class GP:
    """A process conditioned on observations.

    x: [n, d]; z: standardised targets [n]; factor: lower Cholesky factor of K + σ²I; weights: (K + σ²I)⁻¹ z.
    """

    x: np.ndarray
    z: np.ndarray
    shift: float
    scale: float
    hyper: Hyper
    nu: float
    factor: np.ndarray
    weights: np.ndarray

    @classmethod
    def condition(cls, x: np.ndarray, y: np.ndarray, hyper: Hyper, nu: float = 2.5) -> GP:
        """The process with given hyper-parameters, after observations y [n] at x [n, d]."""
        shift, scale = float(y.mean()), float(y.std()) or 1.0
        return cls._conditioned(x, (y - shift) / scale, shift, scale, hyper, nu)

    @classmethod
    def _conditioned(cls, x: np.ndarray, z: np.ndarray, shift: float, scale: float, hyper: Hyper, nu: float) -> GP:
        K = hyper.signal * matern(x, x, np.array(hyper.lengths), nu)
        K[np.diag_indices_from(K)] += hyper.noise + JITTER
        factor = cholesky(K, lower=True)
        return cls(x, z, shift, scale, hyper, nu, factor, cho_solve((factor, True), z))

    def predict(self, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and deviation of the noise-free function at rows of `at` [m, d], in the units of y."""
        k = self.hyper.signal * matern(at, self.x, np.array(self.hyper.lengths), self.nu)
        mean = k @ self.weights
        reduced = solve_triangular(self.factor, k.T, lower=True)
        variance = np.maximum(self.hyper.signal - np.einsum("nm,nm->m", reduced, reduced), 1e-12)
        return self.shift + self.scale * mean, self.scale * np.sqrt(variance)

    def believing(self, at: np.ndarray) -> GP:
        """The process as if its own mean had been observed at rows of `at`: trials that still run.

        The kriging believer with hyper-parameters and standardisation held. The mean stays where it is and the variance
        shrinks near what is under way, as a UCB over batches asks for (Desautels et al. 2014, GP-BUCB): no score is made up.
        """
        if not len(at):
            return self
        mean, _ = self.predict(at)
        z = np.concatenate([self.z, (mean - self.shift) / self.scale])
        return self._conditioned(np.concatenate([self.x, at]), z, self.shift, self.scale, self.hyper, self.nu)

    def log_likelihood(self) -> float:
        """log p(z | x, hyper), of the standardised targets."""
        n = len(self.z)
        return float(
            -0.5 * self.z @ self.weights - np.log(np.diag(self.factor)).sum() - 0.5 * n * math.log(2 * math.pi)
        )


def fit(x: np.ndarray, y: np.ndarray, nu: float = 2.5) -> GP:
    """The process with the hyper-parameters of largest posterior density, from two fixed starts."""
    dimensions = x.shape[1]
    priors = [SIGNAL, NOISE, *[length_prior(dimensions)] * dimensions]
    centre = np.array([prior.centre for prior in priors])
    # The second start explains more by detail and less by noise; the better optimum wins.
    wiggly = centre + np.array([0.0, -2.0, *[-1.0] * dimensions])
    shift, scale = float(y.mean()), float(y.std()) or 1.0
    objective = _Objective(x, (y - shift) / scale, nu, priors)
    bounds = [prior.bounds for prior in priors]
    found = [
        optimize.minimize(objective, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 60})
        for start in (centre, wiggly)
    ]
    best = min(found, key=lambda result: float(result.fun))
    return GP.condition(x, y, Hyper.from_log(best.x), nu)


class _Objective:
    """Minus the log posterior of the log hyper-parameters, with its gradient. Differences are computed once."""

    def __init__(self, x: np.ndarray, z: np.ndarray, nu: float, priors: list[Prior]) -> None:
        self._squared = (x[:, None, :] - x[None, :, :]) ** 2  # [n, n, d]
        self._z = z
        self._nu = nu
        self._centre = np.array([prior.centre for prior in priors])
        self._deviation = np.array([prior.deviation for prior in priors])

    def __call__(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        signal, noise, lengths = np.exp(theta[0]), np.exp(theta[1]), np.exp(theta[2:])
        parts = self._squared / lengths**2
        scaled = np.sqrt(2 * self._nu * parts.sum(-1))
        decay = np.exp(-scaled)
        if self._nu == 2.5:
            correlation = (1 + scaled + scaled**2 / 3) * decay
            slope = 5 / 3 * (1 + scaled) * decay  # ∂M/∂log l_i = slope · (Δ_i / l_i)²
        else:
            correlation = (1 + scaled) * decay
            slope = 3 * decay
        n = len(self._z)
        K = signal * correlation
        K[np.diag_indices(n)] += noise + JITTER
        factor = cholesky(K, lower=True, check_finite=False)
        weights = cho_solve((factor, True), self._z, check_finite=False)
        inverse = cho_solve((factor, True), np.eye(n), check_finite=False)
        value = 0.5 * self._z @ weights + np.log(np.diag(factor)).sum()
        # ∂/∂θ = ½ tr((K⁻¹ − wwᵀ) ∂K/∂θ)
        A = inverse - np.outer(weights, weights)
        gradient = np.empty_like(theta)
        gradient[0] = 0.5 * signal * np.sum(A * correlation)
        gradient[1] = 0.5 * noise * np.trace(A)
        gradient[2:] = 0.5 * signal * np.einsum("ab,abi->i", A * slope, parts)
        off = (theta - self._centre) / self._deviation
        return float(value + 0.5 * off @ off), gradient + off / self._deviation
