"""Simulated mixture surfaces with a known optimum: what a search for mixing ratios is judged on.

Four kinds, of different geometry, so that no search wins by sharing the coordinates of the truth. Scores are differences in
accuracy: single-task training is about 0, the best mixture some hundredths above it, and a training's noise (between seeds, on a
*select* split of some hundred rows) is about half a hundredth, as in the paper's Table 3.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sidequest.numerics.mixtures import Mixture, MixtureSpace
from sidequest.simulation.learner import Simulation, simulated_card

NOISE = 0.006

Truth = Callable[[np.ndarray], np.ndarray]  # mixtures [m, 1 + n] → noise-free scores [m]


@dataclass(frozen=True)
class KnownSurface:
    """kind: which of `KINDS`. scores: noise-free, of every mixture of the space, float64 [m]."""

    kind: str
    space: MixtureSpace
    scores: np.ndarray
    noise: float
    seed: int

    @property
    def best(self) -> float:
        return float(self.scores.max())

    def truth(self, mixture: Mixture) -> float:
        return float(self.scores[self.space.positions[mixture]])

    def trial(self, mixture: Mixture) -> float:
        """A noisy score: the same again for the same mixture, as a training with the same seed would be."""
        rng = np.random.default_rng([self.seed, 1, self.space.positions[mixture]])
        return self.truth(mixture) + self.noise * float(rng.normal())

    def regret(self, mixture: Mixture) -> float:
        """How much worse than the best a mixture is, without noise."""
        return self.best - self.truth(mixture)


def surface(space: MixtureSpace, seed: int, kind: str | None = None, noise: float = NOISE) -> KnownSurface:
    """A random surface over a space; kinds take turns with the seed unless one is named."""
    kind = kind if kind is not None else sorted(KINDS)[seed % len(KINDS)]
    truth = KINDS[kind](np.random.default_rng([seed, 0]), space.n_auxiliaries)
    return KnownSurface(kind, space, truth(space.mixtures.astype(np.float64)), noise, seed)


def dosed(rng: np.random.Generator, n: int) -> Truth:
    """Each auxiliary has a dose at which it helps most and beyond which it drowns the primary; some harm in any dose."""
    sort = rng.choice(["helps", "nothing", "harms"], size=n, p=[0.45, 0.25, 0.3])
    sort[0] = "helps"
    effect, dose = rng.uniform(0.01, 0.05, size=n), np.exp(rng.uniform(np.log(0.1), np.log(3), size=n))
    crowd = rng.uniform(0, 0.01)

    def truth(mixtures: np.ndarray) -> np.ndarray:
        ratios = mixtures[:, 1:] / mixtures[:, :1]
        taken = ratios / dose
        each = np.where(sort == "helps", taken * np.exp(1 - taken), np.where(sort == "harms", np.expm1(-taken), 0.0))
        return (effect * each).sum(1) - crowd * np.log1p(ratios.sum(1))

    return truth


def peaked(rng: np.random.Generator, n: int) -> Truth:
    """A bell around the best shares of the batches, some of which are 0."""
    shares = rng.dirichlet(np.ones(n + 1))
    shares[1:][rng.random(n) < 0.3] = 0
    shares[0] = max(shares[0], 0.1)
    shares /= shares.sum()
    width = rng.uniform(0.25, 0.5)

    def truth(mixtures: np.ndarray) -> np.ndarray:
        found = mixtures / mixtures.sum(1, keepdims=True)
        return 0.05 * np.exp(-((found[:, 1:] - shares[1:]) ** 2).sum(1) / width**2)

    return truth


def pooled(rng: np.random.Generator, n: int) -> Truth:
    """A learning curve over effective data, to which each auxiliary adds or from which it takes, up to a limit."""
    worth = np.where(rng.random(n) < 0.6, rng.uniform(0.05, 1, size=n), rng.uniform(-0.3, 0, size=n))
    power, limit = rng.uniform(0.1, 0.4), rng.uniform(0.5, 4)

    def truth(mixtures: np.ndarray) -> np.ndarray:
        ratios = mixtures[:, 1:] / mixtures[:, :1]
        useful, beyond = np.minimum(ratios, limit), np.maximum(ratios - limit, 0)
        data = np.maximum(1 + (worth * useful).sum(1) - 0.06 * beyond.sum(1), 0.3)
        return 0.25 * (1 - data**-power)

    return truth


def budgeted(rng: np.random.Generator, n: int) -> Truth:
    """The simulated learner with a fixed number of batches to share out: what one task gets the others lack."""
    transfer = np.diag(np.full(n + 1, 0.4))
    transfer[0, 1:] = rng.choice([-0.1, 0.0, 0.1, 0.3], size=n) * rng.uniform(0.5, 1.5, size=n)
    cards = tuple(simulated_card(name) for name in ("primary", *(f"arm-{i}" for i in range(n))))
    simulation = Simulation(cards, transfer, np.full(n + 1, 0.3))
    batches = rng.uniform(100, 400)

    def truth(mixtures: np.ndarray) -> np.ndarray:
        exposures = batches * mixtures / mixtures.sum(1, keepdims=True)
        return np.array([simulation.scores(row)[0] for row in exposures])

    return truth


KINDS: dict[str, Callable[[np.random.Generator, int], Truth]] = {
    "budgeted": budgeted,
    "dosed": dosed,
    "peaked": peaked,
    "pooled": pooled,
}
