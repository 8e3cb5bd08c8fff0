"""Methods judged by truth tables."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import Field

from sidequest.records.base import Known, Part, Record


class Judged(Part):
    """One method on one seed. x: cost of the selection."""

    truth: str
    method: str
    seed: int
    auxiliaries: list[str]
    regret: float
    rank: int
    subsets: int
    x: float


class Standing(Part):
    """A method over seeds on one table. relative: mean regret where choosing the worst subset is 1 and the best 0."""

    truth: str
    method: str
    regret: Known
    low: Known
    high: Known
    relative: Known
    rank: Known
    subsets: int
    x: Known
    seeds: int
    failed: str = ""


class StandingsRecord(Record):
    """noise: the tables in which the choice does not show; a standing in one of them says nothing."""

    FILE: ClassVar[str] = "standings.json"
    MADE_BY: ClassVar[str] = "sidequest score"

    standings: list[Standing]
    judged: list[Judged] = Field(default_factory=list)
    noise: list[str] = Field(default_factory=list)

    @classmethod
    def upgraded(cls, data: Any, version: int) -> Any:
        return {key: data[key] for key in ("standings", "judged")}
