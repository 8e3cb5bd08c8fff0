"""What methods that are added to a finished comparison change of what was there before."""

from __future__ import annotations

from pathlib import Path

from sidequest.errors import SidequestError
from sidequest.records.comparisons import Comparison
from sidequest.records.controls import SINGLE_LONG


def comparison_before(directory: Path) -> Comparison | None:
    """The comparison that a new one in the same directory continues."""
    try:
        return Comparison.read_if_there(directory / Comparison.FILE)
    except SidequestError:  # damaged, and about to be written again
        return None


def changes_since(before: Comparison | None, longest: str, lengths: dict[int, int | None]) -> list[str]:
    """What was said of changes before, and whether `single-long` has another length now: that of the method `longest`."""
    if before is None:
        return []
    both = before.long_batches.keys() & lengths.keys()
    if all(before.long_batches[seed] == lengths[seed] for seed in both):
        return before.changes
    return [
        *before.changes,
        f"{longest} is now the best on select, so {SINGLE_LONG} trains as long as {longest}; before, as long as "
        f"{before.long_as}. What is said about the other methods may differ for this reason.",
    ]
