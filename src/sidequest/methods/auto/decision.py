"""From the numbers of a round to a judgement of each arm. Pure functions: how arms were trained is not known here.

A short run beside *any* other task often looks better than the primary alone, because it is longer, or because a little noise
regularises. So gains are measured against controls, and two kinds of noise are in every error: between rows of *select* (paired,
row by row) and between runs, which only the spread of the controls and repetitions can show.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class JudgedArm:
    """gain: mean probability of the truth over the mean of the controls. error: its standard error, rows and runs. above: whether
    it is above every single control."""

    gain: float
    error: float
    above: bool

    @property
    def z(self) -> float:
        return self.gain / self.error if self.error > 0 else math.copysign(math.inf, self.gain) if self.gain else 0.0


@dataclass(frozen=True)
class Spread:
    """What is known about differences between runs: a sum of squares of the controls' means, and its degrees of freedom."""

    squares: float = 0.0
    degrees: int = 0

    @property
    def variance(self) -> float:
        return self.squares / self.degrees if self.degrees else 0.0

    def __add__(self, other: Spread) -> Spread:
        return Spread(self.squares + other.squares, self.degrees + other.degrees)


def judge(
    truth: Mapping[str, Sequence[np.ndarray]], controls: Sequence[str], known: Spread | None = None
) -> dict[str, JudgedArm]:
    """truth: for each arm one array [rows] for each repetition, the same repetitions for all arms. controls: names of arms.
    known: the spread of earlier rounds, which have few controls each."""
    repeats = min(len(runs) for runs in truth.values())
    means = {name: np.array([runs[r].mean() for r in range(repeats)]) for name, runs in truth.items()}
    base = np.mean([np.stack(truth[name][:repeats]) for name in controls], axis=0)  # [repeats, rows]
    between = (spread_of(truth, controls) + (known or Spread())).variance
    judged = {}
    for name, runs in truth.items():
        difference = np.stack(runs[:repeats]) - base
        over_rows = difference.mean(axis=0)
        of_rows = over_rows.var(ddof=1) / len(over_rows) if len(over_rows) > 1 else 0.0
        others = [control for control in controls if control != name]
        spread = between * (1 + 1 / len(controls)) / repeats
        above = all(means[name].mean() > means[control].mean() for control in others)
        judged[name] = JudgedArm(float(difference.mean()), math.sqrt(spread + of_rows), above)
    return judged


def spread_of(truth: Mapping[str, Sequence[np.ndarray]], controls: Sequence[str]) -> Spread:
    """Of the controls' means around the mean control of the same repetition."""
    repeats = min(len(truth[name]) for name in controls)
    means = np.array([[truth[name][r].mean() for r in range(repeats)] for name in controls])
    centred = means - means.mean(axis=0)
    return Spread(float((centred**2).sum()), (len(controls) - 1) * repeats)


def survivors(judged: Mapping[str, JudgedArm], keep: float, least_z: float, most: int) -> list[str]:
    """The arms that stand out from the controls and gain at least `keep` of the best gain, best first."""
    standing = {name: one for name, one in judged.items() if one.above and one.gain > 0 and one.z >= least_z}
    if not standing:
        return []
    best = max(one.gain for one in standing.values())
    ranked = sorted(standing, key=lambda name: (-standing[name].gain, name))
    return [name for name in ranked if standing[name].gain >= keep * best][:most]
