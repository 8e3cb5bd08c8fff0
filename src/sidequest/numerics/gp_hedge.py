"""Search for the best mixture: a Gaussian process with a portfolio of acquisition functions (AutoSeM, Sec. 3.4).

Everything here is a pure function of (seed, history): a search that is asked again after a crash, in another process,
gives the same answer. What is expensive (a fit per observation) a search object remembers, so that asking it one trial at a time
costs one fit each.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from sidequest.numerics import gp
from sidequest.numerics.acquisition import PORTFOLIO, acquisitions, hedge_probabilities
from sidequest.numerics.mixture_search import History, MixtureSearch, Suggestion
from sidequest.numerics.mixtures import Mixture, MixtureSpace, spread


@dataclass(frozen=True)
class _Posterior:
    """process: the fitted process; mean, deviation: of every mixture, in standardised units, float64 [m]."""

    process: gp.GP
    mean: np.ndarray
    deviation: np.ndarray


@dataclass
class _Memory:
    """What a search has computed, by the history that it was asked for (and the mixtures under way)."""

    posteriors: dict[History, _Posterior] = field(default_factory=dict)
    proposals: dict[tuple[History, tuple[Mixture, ...]], tuple[int, ...]] = field(default_factory=dict)
    gains: dict[History, tuple[float, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class HedgeSearch(MixtureSearch):
    """GP-Hedge over a finite space.

    initial: size of the first design. design: `spread` over the space, or `random`. choose: the recommended trial has the highest
    posterior `mean`, or the highest `score`. nu: smoothness of the Matérn kernel, 1.5 or 2.5.
    xi: the improvement that PI and EI look for at least, kappa: the deviations of UCB, both in standardised scores.
    eta: how sharply the portfolio follows its gains (Hoffman et al. 2011).
    """

    initial: int = 6
    design: Literal["spread", "random"] = "spread"
    choose: Literal["mean", "score"] = "mean"
    nu: float = 2.5
    xi: float = 0.01
    kappa: float = 1.96
    eta: float = 1.0

    def seen(self, number: int, pending: int) -> int:
        design = len(self._design)
        return 0 if number < design else max(design, super().seen(number, pending))

    def _suggest(self, history: History, n: int, pending: Sequence[Mixture]) -> list[Suggestion]:
        """While the design lasts, its next mixtures; nothing beyond it is suggested until all its scores are known. Then each
        mixture maximises an acquisition function over the whole set, exactly; for those that still run, the process
        believes its own mean (see `GP.believing`).
        """
        known = {*pending, *[observation.mixture for observation in history]}
        design = [self.space.at(position) for position in self._design]
        if len(history) < len(design):
            return [Suggestion(mixture, "design") for mixture in design if mixture not in known][:n]
        out: list[Suggestion] = []
        while len(out) < n:
            out.append(self._next(history, [*pending, *[suggestion.mixture for suggestion in out]]))
        return out

    def _next(self, history: History, under_way: list[Mixture]) -> Suggestion:
        posterior = self._posterior(history)
        proposals = self._proposals(history, tuple(under_way))
        chances = hedge_probabilities(np.array(self._gains(history)), self.eta)
        rng = np.random.default_rng([self.seed, 1, len(history), len(under_way)])
        chosen = int(rng.choice(len(PORTFOLIO), p=chances))
        position = proposals[chosen]
        process = posterior.process
        return Suggestion(
            self.space.at(position),
            PORTFOLIO[chosen],
            float(process.shift + process.scale * posterior.mean[position]),
            float(process.scale * posterior.deviation[position]),
            dict(zip(PORTFOLIO, chances.tolist(), strict=True)),
        )

    def process(self, history: History) -> gp.GP:
        """The process fitted to a history of at least two observations."""
        return self._posterior(history).process

    def expected(self, history: History) -> tuple[np.ndarray, np.ndarray]:
        """Mean and deviation of the score of every mixture tried, after all of them, in the order of the history."""
        return self.process(history).predict(_coordinates(self.space, history))

    def best(self, history: History) -> int:
        """The trial of highest posterior mean, not of highest score: the highest of twenty noisy scores owes its place
        partly to luck, and the mean pools it with its neighbours'."""
        if self.choose == "score" or len(history) < 2:
            return super().best(history)
        return int(self.expected(history)[0].argmax())

    @functools.cached_property
    def _design(self) -> tuple[int, ...]:
        """The first mixtures, by position."""
        size = min(self.initial, self.budget)
        if self.design == "spread":
            return tuple(spread(self.space, size, self.seed))
        rng = np.random.default_rng([self.seed, 4])
        return tuple(rng.choice(len(self.space), size=size, replace=False).tolist())

    @functools.cached_property
    def _remembered(self) -> _Memory:
        return _Memory()

    def _posterior(self, history: History) -> _Posterior:
        known = self._remembered.posteriors
        if history not in known:
            scores = np.array([observation.score for observation in history])
            process = gp.fit(_coordinates(self.space, history), scores, self.nu)
            known[history] = _Posterior(process, *_standardised(process, self.space))
        return known[history]

    def _proposals(self, history: History, under_way: tuple[Mixture, ...] = ()) -> tuple[int, ...]:
        """The mixture that each function of the portfolio would try next, by position."""
        known = self._remembered.proposals
        if (history, under_way) not in known:
            known[history, under_way] = self._propose(history, under_way)
        return known[history, under_way]

    def _propose(self, history: History, under_way: Sequence[Mixture]) -> tuple[int, ...]:
        posterior, positions = self._posterior(history), self.space.positions
        tried = [positions[observation.mixture] for observation in history]
        running = [positions[mixture] for mixture in under_way]
        mean, deviation = posterior.mean, posterior.deviation
        if running:
            deviation = _standardised(posterior.process.believing(self.space.coordinates[running]), self.space)[1]
        best = float(posterior.process.z.max())  # τ, the best score so far
        values = acquisitions(mean, deviation, best, xi=self.xi, kappa=self.kappa)
        for value in values.values():
            value[tried + running] = -np.inf
        return tuple(int(values[name].argmax()) for name in PORTFOLIO)

    def _gains(self, history: History) -> tuple[float, ...]:
        """Σ_t μ_t(x_t^j) for each function j (Hoffman et al. 2011, Algorithm 2): what the process, once it knows trial t,
        thinks of the mixture that j proposed for trial t. In standardised units, else scores that differ by a hundredth
        could never move η = 1.

        Defined on the history alone, as if trials had been told one by one; so it does not matter which ran at the same time.
        """
        gains, known = (0.0,) * len(PORTFOLIO), self._remembered.gains
        for end in range(len(self._design) + 1, len(history) + 1):
            now, before = history[:end], history[: end - 1]
            if now not in known:
                mean = self._posterior(now).mean
                proposed = zip(gains, self._proposals(before), strict=True)
                known[now] = tuple(gain + float(mean[position]) for gain, position in proposed)
            gains = known[now]
        return gains


def _coordinates(space: MixtureSpace, history: History) -> np.ndarray:
    return space.coordinates[[space.positions[observation.mixture] for observation in history]]


def _standardised(process: gp.GP, space: MixtureSpace) -> tuple[np.ndarray, np.ndarray]:
    mean, deviation = process.predict(space.coordinates)
    return (mean - process.shift) / process.scale, deviation / process.scale
