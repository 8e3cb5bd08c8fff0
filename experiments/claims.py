"""A paper's claims, each a paired comparison over seeds, judged together."""

from __future__ import annotations

from typing import Any

from sidequest.numerics.statistics import holm, verdict


def judged(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Adds to each row (`mean`, `p_value`, `n`) its p-value corrected for all of them, and the verdict."""
    for row, adjusted in zip(rows, holm([row["p_value"] for row in rows]), strict=True):
        row["adjusted_p"] = float(adjusted)
        row["verdict"] = verdict(row["mean"], float(adjusted), row["n"])
    return rows
