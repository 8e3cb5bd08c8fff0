"""Several primaries of one suite in one go: the papers' large table, a row per method and a column per primary."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sidequest.files import write_atomically, write_json
from sidequest.runs.comparing import Comparison


def write_table(comparisons: Mapping[str, Comparison], directory: Path) -> dict[str, Any]:
    """`table.json` and `table.csv`: mean, deviation of the interval, verdict and cost of every method on every primary."""
    methods = list(dict.fromkeys(row.method for comparison in comparisons.values() for row in comparison.rows))
    cells: dict[str, dict[str, Any]] = {
        method: {
            primary: {
                "mean": row.mean,
                "half_interval": row.mean - row.low,
                "difference": row.difference,
                "verdict": row.verdict,
                "x": row.x,
            }
            for primary, comparison in comparisons.items()
            for row in comparison.rows
            if row.method == method
        }
        for method in methods
    }
    for row in cells.values():
        row["average"] = {"mean": sum(cell["mean"] for cell in row.values()) / len(row)}
    table = {
        "metrics": {primary: comparison.metric for primary, comparison in comparisons.items()},
        "verdicts": {primary: comparison.verdict for primary, comparison in comparisons.items()},
        "methods": cells,
    }
    write_json(directory / "table.json", table)
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["method", *(f"{primary} ({comparisons[primary].metric})" for primary in comparisons), "average"])
    for method, row in cells.items():
        writer.writerow([method, *(f"{row[name]['mean']:.6g}" for name in (*comparisons, "average"))])
    write_atomically(directory / "table.csv", text.getvalue().encode())
    return table
