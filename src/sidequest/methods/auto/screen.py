"""Which of very many candidates are tried: those whose labels know most of the primary's."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from sidequest.methods.auto.lengths import MOST_PROBED


def most_related(related: Mapping[str, float], seed: int) -> list[str]:
    """Those of which nothing can be said (NaN), but no more than leave half of the places to the most related; the last place
    goes to one of the others at random."""
    first = np.random.default_rng([seed, 1]).permutation([*related]).tolist()
    untold = [name for name in first if math.isnan(related[name])]
    told = sorted((name for name in first if name not in untold), key=lambda name: -related[name])
    places = MOST_PROBED - 1
    staying = untold[: places - min(len(told), places // 2)]
    staying += told[: places - len(staying)]
    others = [name for name in [*untold, *told] if name not in staying]
    rng = np.random.default_rng([seed, len(first)])
    return sorted([*staying, others[int(rng.integers(len(others)))]])
