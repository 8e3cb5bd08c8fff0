"""A truth table: what every subset of the candidates is worth, so that a method's choice can be judged without training it again.

Numbers and settings only, no data. Subsets are trained one batch of each task in turn, the common mixture of a chosen set; a
table of shares has other mixtures, too. A mixture is the sorted tuple of its auxiliaries, each as often as it has batches in
a turn.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from scipy import special

from sidequest.errors import SettingsError, unknown
from sidequest.files import read_json, sealed, write_atomically
from sidequest.recipe import Recipe
from sidequest.settings import brief

SHIPPED = Path(__file__).parents[1] / "truth"  # tables that come with sidequest
# A table whose subsets differ with less certainty than this is noise.
LARGEST_P = 0.01
CHANCE = 0.1
MOST_UNTRAINED = 0.25


def find_table(name: str | Path) -> Path:
    """A table by its path, or one that comes with sidequest by its name."""
    path = Path(name)
    if path.exists():
        return path
    shipped = {each.stem: each for each in sorted(SHIPPED.glob("*.json"))}
    if path.name == str(name) and not path.suffix:
        if str(name) in shipped:
            return shipped[str(name)]
        raise unknown("truth table", str(name), shipped)
    raise SettingsError(f"{path}: no such file; `sidequest oracle` makes it. Tables by name: {', '.join(shipped)}")


class SubsetScores(BaseModel):
    """One mixture, over seeds. auxiliaries: each as often as it has batches for one of the primary. report: scores to judge by.
    select: what a method could have seen. x: cost of one training."""

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
    """The scores of subsets. complete: whether every subset is there, or a seeded sample of them. shares: the batches that an
    auxiliary may have for one of the primary; 0 and 1 are sets.

    untrained: trainings whose best model on *select* was the one before any training; None in tables that did not count them.
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
    shares: tuple[int, ...] = (0, 1)
    untrained: int | None = None
    subsets: tuple[SubsetScores, ...] = Field(min_length=2)

    @model_validator(mode="after")
    def _scores_of_every_seed(self) -> TruthTable:
        if len(self.seeds) < 2 or len({*self.seeds}) < len(self.seeds):
            raise ValueError(f"seeds: at least two different ones, found {brief(self.seeds)}")
        if len({subset.auxiliaries for subset in self.subsets}) < len(self.subsets):
            raise ValueError("subsets: one is there twice")
        for number, subset in enumerate(self.subsets):
            for name, scores in (("report", subset.report), ("select", subset.select)):
                if len(scores) != len(self.seeds) or not np.isfinite(scores).all():
                    raise ValueError(f"subsets.{number}.{name}: a finite score for each of {len(self.seeds)} seeds")
            if strange := [name for name in subset.auxiliaries if name not in self.candidates]:
                raise ValueError(f"subsets.{number}.auxiliaries: {strange[0]!r} is no candidate")
        return self

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

    @property
    def gap(self) -> float:
        """How far the best subset is above the primary alone; the best of many noisy means is a little too good (`held_out`)."""
        return self.means[self.best] - self.means[()]

    @property
    def held_out(self) -> tuple[float, float]:
        """The gain over the primary alone of the subset that is best on the *other* seeds, and its standard error: without the
        luck of being the best of many on the same seeds."""
        scores, alone = self.scores, [subset.auxiliaries for subset in self.subsets].index(())
        gains = []
        for seed in range(len(self.seeds)):
            others = np.delete(scores, seed, axis=1).mean(axis=1)
            gains.append(scores[others.argmax(), seed] - scores[alone, seed])
        return float(np.mean(gains)), float(np.std(gains, ddof=1) / len(gains) ** 0.5)

    @property
    def oracle_error(self) -> float:
        """One standard error of the best subset's mean."""
        best = next(subset for subset in self.subsets if subset.auxiliaries == self.best)
        return float(np.std(best.report, ddof=1) / len(best.report) ** 0.5)

    @property
    def something_helps(self) -> bool:
        """Whether the subset that is best on the other seeds is above the primary alone by more than chance (one-sided t)."""
        gain, error = self.held_out
        return gain > error * float(special.stdtrit(len(self.seeds) - 1, 1 - CHANCE))

    @property
    def mostly_untrained(self) -> bool:
        """Whether so many trainings left the model as it was that differences between subsets are not about auxiliaries."""
        return (self.untrained or 0) > MOST_UNTRAINED * self.scores.size

    def mixture_of(self, recipe: Recipe) -> tuple[str, ...]:
        """The table's mixture that is nearest to a recipe's: the first phase with auxiliaries counts, and one that is used at all
        is not rounded to nothing."""
        phase = next((each for each in recipe.phases if {*each.tasks} - {self.primary}), recipe.phases[-1])
        own = phase.shares.get(self.primary, 0.0)
        used = [share for share in self.shares if share]
        chosen = []
        for name in recipe.auxiliaries:
            ratio = phase.shares.get(name, 0.0) / own if own else max(used)
            chosen += [name] * min(used, key=lambda share: abs(np.log(max(ratio, 1e-9) / share)))
        return tuple(sorted(chosen))

    def regret(self, auxiliaries: tuple[str, ...]) -> float:
        """How far a choice is below the best subset of the table, in the metric. The best of many noisy means is a little too
        good, by the same amount for every method."""
        return self.means[self.best] - self.mean_of(auxiliaries)

    def rank(self, auxiliaries: tuple[str, ...]) -> int:
        """1 for the best subset; ties share the better rank."""
        chosen = self.mean_of(auxiliaries)
        return 1 + sum(mean > chosen for mean in self.means.values())

    def mean_of(self, auxiliaries: tuple[str, ...]) -> float:
        key = tuple(sorted(auxiliaries))
        if key not in self.means:
            raise SettingsError(f"the truth table has no subset {{{named(key)}}}; make a complete one")
        return self.means[key]

    def write(self, path: Path) -> None:
        text = json.dumps(sealed(self.model_dump(mode="json")), indent=1, ensure_ascii=False)
        write_atomically(path, (text + "\n").encode())

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


def named(auxiliaries: Sequence[str]) -> str:
    """A mixture for people: `ink, 3 parity`."""
    counts = Counter(auxiliaries)
    return ", ".join(name if count == 1 else f"{count} {name}" for name, count in counts.items())


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
