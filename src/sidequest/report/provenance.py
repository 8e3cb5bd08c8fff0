"""What the page says about the data and how to repeat the run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sidequest.report.tabulating import Cell, Column, Table, number, text
from sidequest.tasks.task import SPLITS


def data_table(record: Mapping[str, Any], provenance: Mapping[str, Any], primary: str) -> Table:
    """A line per task and split; where the run recorded no facts, what its provenance says: rows and digests."""
    columns = [
        Column("task"),
        Column("objective"),
        Column("split"),
        Column("rows", numeric=True),
        Column("labels"),
        Column("words", numeric=True, hint="median, and the longest"),
        Column("content", hint="the first digits of a digest of the rows"),
    ]
    tasks, digests = record.get("data", {}).get("tasks", {}), provenance.get("data", {})
    out = []
    for name in sorted({*tasks, *digests}, key=lambda name: (name != primary, name)):
        facts = tasks.get(name, {})
        splits = facts.get("splits") or digests.get(name, {})
        for split in (split for split in SPLITS if split in splits):
            found = facts.get("splits", {}).get(split, {})
            rows = found.get("rows", provenance.get("rows", {}).get(name, {}).get(split))
            words = found.get("words") or {}
            out.append(
                [
                    text(name),
                    text(facts.get("objective", "")),
                    text(split),
                    number(rows, ",d"),
                    text(_labels(found)),
                    Cell(f"{words['median']} (max {words['max']})" if words else "", (words.get("median", ""),)),
                    Cell(digests.get(name, {}).get(split, "")[:12], (digests.get(name, {}).get(split, ""),), "code"),
                ]
            )
    return Table("data", columns, out)


def _labels(found: Mapping[str, Any]) -> str:
    if found.get("target"):
        return "{min:.3g} to {max:.3g}, mean {mean:.3g}".format(**found["target"])
    labels = found.get("labels", {})
    top = sorted(labels.items(), key=lambda item: -item[1])[:3]
    more = f", {len(labels) - 3} more" if len(labels) > 3 else ""
    return ", ".join(f"{label} {share:.0%}" for label, share in top) + more


def versions_table(versions: Mapping[str, str], machine: Mapping[str, Any]) -> Table:
    rows = [[text(name), text(value)] for name, value in sorted({**versions, **machine}.items())]
    return Table("versions", [Column("what"), Column("version")], rows)


def settings_text(provenance: Mapping[str, Any]) -> str:
    """Model, training and method settings, as in the recipe."""
    shown = {key: provenance[key] for key in ("seed", "goal", "model", "train", "method_settings") if key in provenance}
    return json.dumps(shown, indent=2, sort_keys=True, ensure_ascii=False)
