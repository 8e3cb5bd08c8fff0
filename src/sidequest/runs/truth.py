"""A truth table: what every subset of the candidates is worth, so that a method's choice can be judged without training it again.

Numbers and settings only, no data. Subsets are trained one batch of each task in turn, the common mixture of a chosen set.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from scipy import special

from sidequest.errors import SettingsError
from sidequest.files import read_json, write_atomically

# A table whose subsets differ with less certainty than this is noise.
LARGEST_P = 0.01


class SubsetScores(BaseModel):
    """One subset, over seeds. report: scores to judge by. select: what a method could have seen. x: cost of one training."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    auxiliaries: tuple[str, ...]
    report: tuple[float, ...]
    select: tuple[float, ...]
    x: float


@dataclass(frozen=True)
class Signal:
    """Whether the choice matters, by a two-way analysis of variance (subsets × seeds).

    between: variance of the subsets' true means. within: variance over seeds, without what all subsets have in common on a seed.
    ratio: between / within. p_value: of the F test that all subsets are equal.
    """

    between: float
    within: float
    ratio: float
    p_value: float

    @property
    def words(self) -> str:
        verdict = "the choice matters" if self.p_value <= LARGEST_P else "noise: the choice does not show"
        return (
            f"signal {self.ratio:.2f} (deviation {self.between**0.5:.4f} between subsets, {self.within**0.5:.4f} between seeds; "
            f"F test p = {self.p_value:.1g}): {verdict}"
        )


class TruthTable(BaseModel):
    """The scores of subsets. complete: whether every subset is there, or a seeded sample of them.

    suite: an embedded suite's name, or a suite file's path relative to the table. data: fingerprints of all splits, so that a
    changed suite is refused.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    version: Literal[1] = 1
    command: str
    suite: str
    primary: str
    metric: str
    candidates: tuple[str, ...]
    seeds: tuple[int, ...]
    complete: bool
    model: dict[str, Any]
    train: dict[str, Any]
    data: dict[str, dict[str, str]]
    rows: dict[str, dict[str, int]]
    subsets: tuple[SubsetScores, ...] = Field(min_length=1)

    @property
    def scores(self) -> np.ndarray:
        """float64 [subsets, seeds] on *report*."""
        return np.array([subset.report for subset in self.subsets])

    @property
    def means(self) -> dict[tuple[str, ...], float]:
        return {subset.auxiliaries: float(np.mean(subset.report)) for subset in self.subsets}

    @property
    def best(self) -> tuple[str, ...]:
        return max(self.means, key=lambda auxiliaries: self.means[auxiliaries])

    @property
    def signal(self) -> Signal:
        return signal(self.scores)

    def regret(self, auxiliaries: tuple[str, ...]) -> float:
        """How far a choice is below the best subset of the table, in the metric. The best of many noisy means is a little too
        good, by the same amount for every method."""
        return self.means[self.best] - self.mean_of(auxiliaries)

    def rank(self, auxiliaries: tuple[str, ...]) -> int:
        """1 for the best subset; ties share the better rank."""
        mine = self.mean_of(auxiliaries)
        return 1 + sum(mean > mine for mean in self.means.values())

    def mean_of(self, auxiliaries: tuple[str, ...]) -> float:
        key = tuple(sorted(auxiliaries))
        if key not in self.means:
            raise SettingsError(f"the truth table has no subset {{{', '.join(key)}}}; make a complete one")
        return self.means[key]

    def write(self, path: Path) -> None:
        write_atomically(path, (self.model_dump_json(indent=1) + "\n").encode())

    @classmethod
    def read(cls, path: Path) -> TruthTable:
        if not path.is_file():
            raise SettingsError(f"{path}: no such truth table; `sidequest oracle` makes one")
        try:
            return cls.model_validate(read_json(path))
        except ValueError as error:
            first = error.errors()[0] if isinstance(error, ValidationError) else {"loc": (), "msg": str(error)}
            raise SettingsError(
                f"{path}: not a truth table: {'.'.join(map(str, first['loc']))} {first['msg']}"
            ) from None


def signal(scores: np.ndarray) -> Signal:
    """scores: [subsets, seeds], both at least 2; the seeds are the same for all subsets."""
    subsets, seeds = scores.shape
    if subsets < 2 or seeds < 2:
        raise ValueError(f"a signal needs at least two subsets and two seeds, found {subsets} and {seeds}")
    residual = scores - scores.mean(1, keepdims=True) - scores.mean(0, keepdims=True) + scores.mean()
    degrees = (subsets - 1) * (seeds - 1)
    within = float((residual**2).sum() / degrees)
    of_subsets = float(seeds * scores.mean(1).var(ddof=1))  # its expectation: within + seeds · between
    between = max(0.0, (of_subsets - within) / seeds)
    if within == 0:
        return Signal(between, within, np.inf if between else 0.0, 0.0 if between else 1.0)
    p_value = float(special.fdtrc(subsets - 1, degrees, of_subsets / within))
    return Signal(between, within, between / within, p_value)
