"""Several primaries of one suite in one go: the papers' large table, a row per method and a column per primary."""

from __future__ import annotations

import csv
import io
import math
import warnings
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean

from sidequest.files import write_atomically
from sidequest.formatting import plain
from sidequest.records.comparisons import Comparison, PrimariesTable, Row, TableCell, TableRow
from sidequest.runs.pages import write_run_page
from sidequest.tasks.suite import Suite


def write_table(
    comparisons: Mapping[str, Comparison], directory: Path, suite: Suite, command: str = ""
) -> PrimariesTable:
    """`table.json` and `table.csv`: mean, half of the interval, verdict and cost of every method on every primary; and the page.

    comparisons: by primary, each in `directory/PRIMARY`. suite: with any of them as its primary.
    """
    methods = list(dict.fromkeys(row.method for comparison in comparisons.values() for row in comparison.rows))
    rows: dict[str, TableRow] = {}
    for method in methods:
        cells = {
            primary: _cell(row)
            for primary, comparison in comparisons.items()
            if (row := comparison.row(method)) is not None
        }
        rows[method] = TableRow(cells=cells, average=fmean(cell.mean for cell in cells.values()))
    table = PrimariesTable(
        metrics={primary: comparison.metric for primary, comparison in comparisons.items()},
        verdicts={primary: comparison.verdict for primary, comparison in comparisons.items()},
        methods=rows,
    )
    table.write(directory)
    write_atomically(directory / "table.csv", to_csv(table).encode())
    if (problem := write_run_page(directory, suite, "compare", command).problem) is not None:
        warnings.warn(problem, stacklevel=2)
    return table


def _cell(row: Row) -> TableCell:
    difference = 0.0 if row.role == "baseline" else row.difference
    return TableCell(
        mean=row.mean, half_interval=row.mean - row.low, difference=difference, verdict=row.verdict, x=row.x
    )


def to_csv(table: PrimariesTable) -> str:
    """Means alone; a method that is missing on a primary leaves its cell empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["method", *(f"{primary} ({metric})" for primary, metric in table.metrics.items()), "average"])
    for method, row in table.methods.items():
        means = [row.cells[name].mean if name in row.cells else math.nan for name in table.metrics]
        writer.writerow([method, *(_short(mean) for mean in (*means, row.average))])
    return text.getvalue()


def _short(value: float) -> str:
    shown = plain(value)
    return "" if isinstance(shown, str) else f"{shown:.6g}"
