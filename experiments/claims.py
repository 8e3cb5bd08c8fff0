"""A paper's claims, each a paired comparison over seeds, judged together; and whether a model has learned enough to judge by."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean
from typing import Any

from sidequest.numerics.statistics import holm, verdict


def judged(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Adds to each row (`mean`, `p_value`, `n`) its p-value corrected for all of them, and the verdict."""
    for row, adjusted in zip(rows, holm([row["p_value"] for row in rows]), strict=True):
        row["adjusted_p"] = float(adjusted)
        row["verdict"] = verdict(row["mean"], float(adjusted), row["n"])
    return rows


ABOVE_CONSTANT = 0.03  # of `single`, for anything to be judged


def has_learned(single: Mapping[int, float], constant: float | None, probe: Mapping[int, float]) -> bool:
    """Whether the primary alone has learned its task, by scores of seeds: clearly above the best constant answer, where there is
    one, and not below the read-out, where that is known. Below that a table would rank noise."""
    both = [seed for seed in single if seed in probe]
    above = constant is None or fmean(single.values()) >= constant + ABOVE_CONSTANT
    return above and (not both or fmean(single[seed] for seed in both) >= fmean(probe[seed] for seed in both))
