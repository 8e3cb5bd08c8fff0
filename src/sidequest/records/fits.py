"""What `sidequest fit` learned from runs that were made elsewhere."""

from __future__ import annotations

from typing import ClassVar, Literal

from sidequest.records.base import Part, Record


class Estimate(Part):
    """A number with its 95 % interval."""

    value: float
    low: float
    high: float


class TaskEffect(Part):
    """What an auxiliary adds, and in how many runs it was used."""

    task: str
    effect: Estimate
    runs: int


class MixtureGain(Part):
    """A mixture: amounts relative to the primary, 0 where a task is left out. gain: over the primary alone, by the surface.
    chance: of being the best of all mixtures considered. runs: how often it was run."""

    amounts: dict[str, float]
    gain: Estimate
    chance: float
    runs: int

    @property
    def name(self) -> str:
        used = [task if amount == 1 else f"{amount:g} {task}" for task, amount in self.amounts.items() if amount > 0]
        return " + ".join(used) or "the primary alone"


class FitRecord(Record):
    """effects: by task. mixtures: the likeliest to be best first. best: the highest mean, its gain with a band over all mixtures.
    next: what to run next. lack_of_fit: p of the test that the surface misses something; None without repeated runs.
    effects_per_amount: whether effects are for each unit of log(1 + amount), or for being used at all. left_out: columns of the
    table that are no auxiliaries."""

    FILE: ClassVar[str] = "fit.json"
    MADE_BY: ClassVar[str] = "sidequest fit"

    source: str
    score: str
    form: Literal["additive", "log-linear", "pairwise", "separate"]
    runs: int
    blocks: int
    residual: float
    alone: Estimate
    effects: list[TaskEffect]
    best: MixtureGain
    mixtures: list[MixtureGain]
    next: list[MixtureGain]
    lack_of_fit: float | None = None
    verdict: str
    effects_per_amount: bool = False
    warnings: list[str] = []
    left_out: list[str] = []

    @property
    def effect_words(self) -> str:
        """What an effect of one auxiliary is."""
        if self.effects_per_amount:
            return "for each unit of log(1 + amount)"
        return "when it is used at all" + (
            "" if self.form == "additive" else ", averaged over the mixtures that were run"
        )
