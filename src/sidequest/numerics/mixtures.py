"""The finite set of distinct integer mixtures, where they lie for a Gaussian process, and designs over them.

A mixture is η₀ : η₁ : … : η_n, whole numbers with η₀ ≥ 1 for the primary and η_i ≥ 0 for the auxiliaries. Ratios that reduce to
the same fraction (2:2 and 1:1) are one mixture, so only those whose greatest common divisor is 1 are listed.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

Mixture = tuple[int, ...]

# Above this many mixtures a seeded subset stands for all of them. So many points are still evaluated in some 20 ms, and
# it is just more than the 24,951 mixtures of four auxiliaries within the default bounds.
LARGEST_SET = 25_000


def reduced(ratios: Mixture) -> Mixture:
    """The mixture in lowest terms: 4:2:0 → 2:1:0."""
    divisor = math.gcd(*ratios)
    return tuple(ratio // divisor for ratio in ratios)


@dataclass(frozen=True)
class MixtureSpace:
    """All distinct mixtures within bounds: η₀ in 1..max_primary, η_i in 0..max_auxiliary.

    When there are more than `largest`, a subset drawn with a fixed seed stands for them. It always has the primary
    alone, all tasks equally, and every pair of the primary with one auxiliary in equal parts.
    """

    n_auxiliaries: int
    max_primary: int
    max_auxiliary: int
    largest: int = LARGEST_SET

    def __len__(self) -> int:
        return len(self.mixtures)

    @functools.cached_property
    def mixtures(self) -> np.ndarray:
        """int64 [m, 1 + n] in lexicographic order; the first column is the primary."""
        tuples = self.max_primary * (self.max_auxiliary + 1) ** self.n_auxiliaries
        if tuples <= 4 * self.largest:
            axes = [np.arange(1, self.max_primary + 1), *[np.arange(self.max_auxiliary + 1)] * self.n_auxiliaries]
            listed = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(tuples, -1)
            listed = listed[np.gcd.reduce(listed, axis=1) == 1]
            if len(listed) <= self.largest:
                return listed
        return self._drawn()

    def _drawn(self) -> np.ndarray:
        """Drawn uniformly, a mixture of many tasks would almost never leave one out, though good mixtures use few
        tasks. So each draw first says how many auxiliaries take part, then which."""
        rng, n, draws = np.random.default_rng(0), self.n_auxiliaries, 2 * self.largest
        taking_part = rng.integers(1, n + 1, size=(draws, 1))
        rank = rng.permuted(np.tile(np.arange(n), (draws, 1)), axis=1)
        auxiliaries = np.where(rank < taking_part, rng.integers(1, self.max_auxiliary + 1, size=rank.shape), 0)
        drawn = np.concatenate([rng.integers(1, self.max_primary + 1, size=(draws, 1)), auxiliaries], axis=1)
        drawn = np.unique(drawn[np.gcd.reduce(drawn, axis=1) == 1], axis=0)
        simple = np.ones((n + 2, n + 1), dtype=np.int64)
        simple[0, 1:] = 0  # the primary alone; row 1 stays all ones
        simple[2:, 1:] = np.eye(n, dtype=np.int64)
        kept = rng.choice(len(drawn), size=min(self.largest - len(simple), len(drawn)), replace=False)
        return np.unique(np.concatenate([simple, drawn[kept]]), axis=0)

    @functools.cached_property
    def coordinates(self) -> np.ndarray:
        """Where the mixtures lie, float64 [m, n] in [0, 1]: see `coordinates_of`."""
        return self.coordinates_of(self.mixtures)

    def coordinates_of(self, mixtures: np.ndarray) -> np.ndarray:
        """log(1 + r·P) / log(1 + A·P) for each auxiliary's ratio r = η_i/η₀, with the bounds P of η₀ and A of η_i.

        Doubling a task's part moves it equally far wherever it is, and the smallest part, 1/P, is as far from none as
        it is from twice itself and a half.
        """
        ratios = mixtures[:, 1:] / mixtures[:, :1]
        return np.log1p(ratios * self.max_primary) / math.log1p(self.max_auxiliary * self.max_primary)

    @functools.cached_property
    def positions(self) -> dict[Mixture, int]:
        """Which row of `mixtures` a mixture is."""
        return {tuple(row): position for position, row in enumerate(self.mixtures.tolist())}

    @property
    def alone(self) -> int:
        """The position of the primary alone."""
        return self.positions[(1, *[0] * self.n_auxiliaries)]

    def at(self, position: int) -> Mixture:
        return tuple(self.mixtures[position].tolist())


def nearest_distinct(space: MixtureSpace, points: np.ndarray, taken: Iterable[int] = ()) -> list[int]:
    """For each point [k, n] the position of the nearest mixture that neither `taken` nor an earlier point has."""
    used = list(taken)
    found: list[int] = []
    for point in points:
        distance = ((space.coordinates - point) ** 2).sum(1)
        distance[used + found] = np.inf
        found.append(int(distance.argmin()))
    return found


def spread(space: MixtureSpace, count: int, seed: int) -> list[int]:
    """Positions of `count` mixtures that fill the space: the primary alone, then a Latin hypercube.

    The primary alone comes first because every verdict compares with it. Of many random Latin hypercubes, moved to the nearest
    mixtures, the one whose closest pair is farthest apart is taken: spread in each task and in all together.
    """
    count = min(count, len(space))
    rng = np.random.default_rng([seed, 0])
    strata = np.tile(np.arange(count - 1), (space.n_auxiliaries, 1))
    best, widest = [space.alone], -1.0
    for _ in range(20 if count > 1 else 0):
        cube = (rng.permuted(strata, axis=1).T + rng.random((count - 1, space.n_auxiliaries))) / (count - 1)
        chosen = [space.alone, *nearest_distinct(space, cube, [space.alone])]
        x = space.coordinates[chosen]
        gaps = ((x[:, None] - x[None]) ** 2).sum(-1)[np.triu_indices(count, 1)]
        if gaps.min() > widest:
            best, widest = chosen, float(gaps.min())
    return best


def grid(space: MixtureSpace, budget: int) -> list[int]:
    """Positions of the finest full grid of at most `budget` mixtures, even in the coordinates; the primary alone is its corner.

    Levels are added to one auxiliary after another while the product of all stays within the budget.
    """
    levels = [1] * space.n_auxiliaries
    while levels:
        fewest = levels.index(min(levels))
        finer = [level + (index == fewest) for index, level in enumerate(levels)]
        if math.prod(finer) > min(budget, len(space)):
            break
        levels = finer
    if not levels:
        return [space.alone]
    axes = [np.linspace(0, 1, level) if level > 1 else np.zeros(1) for level in levels]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, space.n_auxiliaries)
    return nearest_distinct(space, points)
