"""What the page says about the data and how to repeat the run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sidequest.records.runs import FactsRecord, RecordedTask, SplitFacts
from sidequest.report.tabulating import Cell, ShownColumn, ShownTable, number, text
from sidequest.tasks.task import SPLITS


def data_table(record: FactsRecord, provenance: Mapping[str, Any], primary: str) -> ShownTable:
    """A line per task and split; where the run recorded no facts, what its provenance says: rows and digests."""
    columns = [
        ShownColumn("task"),
        ShownColumn("objective"),
        ShownColumn("split"),
        ShownColumn("rows", numeric=True),
        ShownColumn("labels"),
        ShownColumn("words", numeric=True, hint="median, and the longest"),
        ShownColumn("content", hint="the first digits of a digest of the rows"),
    ]
    tasks = {} if record.data is None else record.data.tasks
    digests = provenance.get("data", {})
    out = []
    for name in sorted({*tasks, *digests}, key=lambda name: (name != primary, name)):
        facts = tasks.get(name, RecordedTask())
        splits = facts.splits or digests.get(name, {})
        for split in (split for split in SPLITS if split in splits):
            known = facts.splits.get(split, SplitFacts())
            rows = known.rows if known.rows is not None else provenance.get("rows", {}).get(name, {}).get(split)
            words = known.words
            out.append(
                [
                    text(name),
                    text(facts.objective),
                    text(split),
                    number(rows, ",d"),
                    text(_labels(known)),
                    Cell(f"{words.median:g} (max {words.max:g})", (words.median,))
                    if words is not None and words.median is not None and words.max is not None
                    else text(""),
                    Cell(digests.get(name, {}).get(split, "")[:12], (digests.get(name, {}).get(split, ""),), "code"),
                ]
            )
    return ShownTable("data", columns, out)


def _labels(split: SplitFacts) -> str:
    if (target := split.target) is not None and None not in (target.min, target.max, target.mean):
        return f"{target.min:.3g} to {target.max:.3g}, mean {target.mean:.3g}"
    top = sorted(split.labels.items(), key=lambda item: -item[1])[:3]
    more = f", {len(split.labels) - 3} more" if len(split.labels) > 3 else ""
    return ", ".join(f"{label} {share:.0%}" for label, share in top) + more


def versions_table(versions: Mapping[str, str], machine: Mapping[str, Any]) -> ShownTable:
    rows = [[text(name), text(value)] for name, value in sorted({**versions, **machine}.items())]
    return ShownTable("versions", [ShownColumn("what"), ShownColumn("version")], rows)


def settings_text(provenance: Mapping[str, Any]) -> str:
    """Model, training and method settings, as in the recipe."""
    shown = {key: provenance[key] for key in ("seed", "goal", "model", "train", "method_settings") if key in provenance}
    return json.dumps(shown, indent=2, sort_keys=True, ensure_ascii=False)
