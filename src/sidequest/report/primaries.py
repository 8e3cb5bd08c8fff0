"""The page of several primaries: a row for each method and a column for each primary."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import ClassVar
from urllib.parse import quote

import numpy as np
import plotly.graph_objects as go

from sidequest.formatting import UNKNOWN, fixed, plain, signed
from sidequest.records.comparisons import PrimariesTable, TableCell
from sidequest.report.evidence import Drawing, Sketch, draw
from sidequest.report.sections import Verdict
from sidequest.report.style import new_figure
from sidequest.report.tabulating import Cell, ShownColumn, ShownTable, number, text, with_minus

TONES = {"helps": "tag good", "hurts": "tag bad"}


@dataclass
class PrimariesPage:
    """The page of `table.json`. links: name, verdict, and where its own page is."""

    template: ClassVar[str] = "primaries.html.j2"

    title: str
    verdict: Verdict
    tables: dict[str, ShownTable]
    drawings: dict[str, Drawing]
    links: list[tuple[str, str, str]] = field(default_factory=list)

    @property
    def all_drawings(self) -> dict[str, Drawing]:
        return self.drawings


def primaries_page(directory: Path, table: PrimariesTable, page_name: str) -> PrimariesPage:
    """The page of a directory that holds a comparison for each primary."""
    primaries, rows = list(table.metrics), table.methods.values()
    helped = [
        name for name in primaries if any(name in row.cells and row.cells[name].verdict == "helps" for row in rows)
    ]
    caption = "Mean difference to the primary alone, over the same seeds. Blue is better, red is worse."
    links = [
        (
            name,
            table.verdicts[name],
            f"{quote(name)}/{page_name}" if (directory / name / page_name).is_file() else "",
        )
        for name in primaries
    ]
    sentence = f"Not shown that auxiliary tasks help any of {len(primaries)} primaries."
    if helped:
        sentence = f"Auxiliary tasks help {len(helped)} of {len(primaries)} primaries: {', '.join(helped)}."
    return PrimariesPage(
        title=f"{len(primaries)} primaries",
        verdict=Verdict(sentence, "good" if helped else "base"),
        tables={"primaries": _table(table)},
        drawings={"differences": draw(Sketch("differences", caption, partial(differences, table)))},
        links=links,
    )


def _table(table: PrimariesTable) -> ShownTable:
    columns = [ShownColumn("method")]
    columns += [
        ShownColumn(f"{name} ({metric})", numeric=True, csv=(name, f"{name} ± ", f"{name} verdict"))
        for name, metric in table.metrics.items()
    ]
    rows = [
        [text(method), *(_cell(row.cells.get(name)) for name in table.metrics), number(row.average)]
        for method, row in sorted(table.methods.items(), key=lambda item: -item[1].average)
    ]
    return ShownTable("primaries", [*columns, ShownColumn("average", numeric=True)], rows)


def _cell(cell: TableCell | None) -> Cell:
    if cell is None:
        return Cell(UNKNOWN, ("", "", ""))
    half = f" ± {fixed(cell.half_interval)}" if math.isfinite(cell.half_interval) else ""
    values = (plain(cell.mean), plain(cell.half_interval), cell.verdict)
    return Cell(with_minus(fixed(cell.mean)) + half, values, TONES.get(cell.verdict, ""))


def differences(table: PrimariesTable) -> go.Figure:
    """A cell for each method (row) and primary (column): the mean difference to the primary alone."""
    primaries = list(table.metrics)
    methods = sorted(table.methods, key=lambda method: table.methods[method].average)
    cells = [table.methods[method].cells for method in methods]
    values = np.array([[row[name].difference if name in row else np.nan for name in primaries] for row in cells])
    values = values + 0.0  # minus zero is zero
    figure = new_figure("Difference to the primary alone", "primary", "")
    reach = float(np.nanmax(np.abs(values))) or 1.0
    figure.add_heatmap(
        z=values,
        x=primaries,
        y=methods,
        colorscale="RdBu",
        zmin=-reach,
        zmax=reach,
        xgap=2,
        ygap=2,
        text=[["" if np.isnan(value) else with_minus(signed(value)) for value in row] for row in values.tolist()],
        texttemplate="%{text}",
        hovertemplate="%{y}, %{x}: %{z:+.4f}<extra></extra>",
    )
    figure.update_xaxes(type="category", showgrid=False)
    figure.update_yaxes(type="category", showgrid=False)
    figure.update_layout(height=140 + 34 * len(methods))
    return figure
