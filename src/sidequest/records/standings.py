"""Methods judged by truth tables."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from pydantic import Field

from sidequest.records.base import Known, Part, Record


class Judged(Part):
    """One method on one seed. x: cost of the selection. score: of its recipe, trained as it is, on *report*; alone: of the
    primary alone on the same seed; both only where recipes were trained."""

    truth: str
    method: str
    seed: int
    auxiliaries: list[str]
    regret: float
    rank: int
    subsets: int
    x: float
    score: Known = math.nan
    alone: Known = math.nan


class Standing(Part):
    """A method over seeds on one table.

    relative: mean regret where the best subset is 0 and the primary alone is 1; unknown where nothing helps the primary.
    delivered: the part of the oracle's gain over the primary alone that the trained recipes reach; unknown where nothing was
        trained or nothing helps. chosen: the part of the seeds on which it chose any auxiliary.
    """

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
    delivered: Known = math.nan
    chosen: Known = math.nan


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
