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

    @property
    def gained(self) -> float:
        """By its recipe, trained; unknown where nothing was trained."""
        return self.score - self.alone


class TableFacts(Part):
    """What a standing needs of a truth table. gap: between the best subset and the primary alone; unknown where nothing helps.
    content: the table's digest; tables of one name in two files must be the same. Files of version 1 have none."""

    subsets: int
    gap: Known
    content: str = ""


class Standing(Part):
    """A method over seeds on one table.

    relative: mean regret where the best subset is 0 and the primary alone is 1; unknown where nothing helps the primary.
    delivered: the part of the oracle's gain over the primary alone that the trained recipes reach, with its 95 % interval over
        seeds; unknown where nothing was trained or nothing helps. trained: the seeds that it is of.
    gained: the same gain in the metric itself, known wherever recipes were trained: below 0 where a choice did harm.
    chosen: the part of the seeds on which it chose any auxiliary. failed: why it did not select, at least on some seeds.
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
    delivered_low: Known = math.nan
    delivered_high: Known = math.nan
    gained: Known = math.nan
    gained_low: Known = math.nan
    gained_high: Known = math.nan
    trained: int = 0
    chosen: Known = math.nan


class StandingsRecord(Record):
    """standings follow from judged and tables. noise: the tables in which the choice does not show; a standing in one of them
    says nothing."""

    FILE: ClassVar[str] = "standings.json"
    MADE_BY: ClassVar[str] = "sidequest score"
    VERSION: ClassVar[int] = 2

    version: int = 2
    standings: list[Standing]
    judged: list[Judged] = Field(default_factory=list)
    tables: dict[str, TableFacts] = Field(default_factory=dict)
    noise: list[str] = Field(default_factory=list)

    @classmethod
    def upgraded(cls, data: Any, version: int) -> Any:
        kept = {key: data[key] for key in ("standings", "judged", "noise") if key in data}
        # Relative regret of version 0 was of another gap.
        return kept | {"tables": _tables_of_version_1(data["standings"], gaps=version > 0)}


def _tables_of_version_1(standings: list[dict[str, Any]], *, gaps: bool) -> dict[str, dict[str, Any]]:
    """A gap is a regret over the same, relative to the gap; a standing without regret says nothing of it."""
    tables: dict[str, dict[str, Any]] = {}
    for row in standings:
        facts = tables.setdefault(row["truth"], {"subsets": row["subsets"], "gap": None})
        if gaps and row["regret"] and row["relative"]:
            facts["gap"] = row["regret"] / row["relative"]
    return tables
