"""What a search for the best mixture is, and the two plain ones that a clever one must beat: a grid and chance.

Every search is a pure function of (seed, history): asked again after a crash, in another process, it gives the same answer.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from sidequest.numerics.mixtures import Mixture, MixtureSpace, grid


class Observation(NamedTuple):
    """A mixture that was tried, and its score."""

    mixture: Mixture
    score: float


History = tuple[Observation, ...]


@dataclass(frozen=True)
class Suggestion:
    """A mixture to try.

    source: `design`, `grid`, `random`, or the acquisition function that was followed. mean, deviation: what a process
    expected of the mixture, in units of the score. probabilities: of following each acquisition function. None where
    there is no process.
    """

    mixture: Mixture
    source: str
    mean: float | None = None
    deviation: float | None = None
    probabilities: dict[str, float] | None = None


@dataclass(frozen=True)
class MixtureSearch(ABC):
    """Tries up to `trials` mixtures of a space, no mixture twice."""

    space: MixtureSpace
    trials: int = 20
    seed: int = 0

    @property
    def budget(self) -> int:
        """How many mixtures will be tried: never more than there are, and none when there is nothing to mix."""
        return min(self.trials, len(self.space)) if self.space.n_auxiliaries else 0

    def suggest(self, history: History, n: int = 1, pending: Sequence[Mixture] = ()) -> list[Suggestion]:
        """Up to n mixtures to try now, all different, none tried before and none `pending` (asked for, score not yet known).

        Fewer when the budget ends, or when a search wants scores before it goes on.
        """
        room = self.budget - len(history) - len(pending)
        return self._suggest(history, min(n, room), pending) if room > 0 and n > 0 else []

    def seen(self, number: int, pending: int) -> int:
        """How many scores mixture `number` is decided by, where so many mixtures may be under way at once."""
        return max(0, number - pending + 1)

    @abstractmethod
    def _suggest(self, history: History, n: int, pending: Sequence[Mixture]) -> list[Suggestion]:
        """As `suggest`, with n at least 1 and within the budget."""

    def best(self, history: History) -> int:
        """Which trial of the history is recommended: here the highest score, of equal ones the first."""
        return int(np.argmax([observation.score for observation in history]))


@dataclass(frozen=True)
class _FixedOrder(MixtureSearch):
    """A search that knows from the start what it will try."""

    source: ClassVar[str]

    @abstractmethod
    def _positions(self) -> list[int]:
        """Positions in the space, in the order of trial."""

    @functools.cached_property
    def _order(self) -> list[Mixture]:
        return [self.space.at(position) for position in self._positions()]

    @property
    def budget(self) -> int:
        return len(self._order) if self.space.n_auxiliaries else 0

    def seen(self, number: int, pending: int) -> int:
        return 0  # scores decide nothing

    def _suggest(self, history: History, n: int, pending: Sequence[Mixture]) -> list[Suggestion]:
        known = {*pending, *[observation.mixture for observation in history]}
        return [Suggestion(mixture, self.source) for mixture in self._order if mixture not in known][:n]


@dataclass(frozen=True)
class GridSearch(_FixedOrder):
    """The finest full grid within the number of trials; its corner is the primary alone."""

    source = "grid"

    def _positions(self) -> list[int]:
        return grid(self.space, self.trials)


@dataclass(frozen=True)
class RandomSearch(_FixedOrder):
    """Distinct mixtures, uniformly from the space."""

    source = "random"

    def _positions(self) -> list[int]:
        rng = np.random.default_rng([self.seed, 3])
        return rng.choice(len(self.space), size=min(self.trials, len(self.space)), replace=False).tolist()
