"""Whether one number ranks candidates as another does, over several primaries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

PERMUTATIONS = 2000
FEWEST = 3  # candidates of a primary: two have an order by luck


@dataclass(frozen=True)
class RankTest:
    """Spearman's correlation by primary, its mean, and the part of permutations within primaries with a mean as high."""

    by_primary: dict[str, float]
    mean: float
    p_value: float


def rank_test(pairs: Mapping[str, Mapping[str, tuple[float, float]]], seed: int = 0) -> RankTest | None:
    """pairs: by primary and candidate, the two numbers. None: no primary has enough candidates."""
    usable = {name: rankdata(list(each.values()), axis=0) for name, each in pairs.items() if len(each) >= FEWEST}
    if not usable:
        return None
    rng = np.random.default_rng(seed)
    found = {name: _correlation(*ranks.T) for name, ranks in usable.items()}
    mean = float(np.mean(list(found.values())))
    shuffled = [
        np.mean([_correlation(rng.permutation(ranks[:, 0]), ranks[:, 1]) for ranks in usable.values()])
        for _ in range(PERMUTATIONS)
    ]
    # The order that was seen is one of the permutations.
    p_value = (1 + sum(value >= mean - 1e-12 for value in shuffled)) / (1 + PERMUTATIONS)
    return RankTest(found, mean, float(p_value))


def _correlation(first: np.ndarray, second: np.ndarray) -> float:
    """Of ranks; 0 where one of them is constant."""
    if np.ptp(first) == 0 or np.ptp(second) == 0:
        return 0.0
    return float(np.corrcoef(first, second)[0, 1])
