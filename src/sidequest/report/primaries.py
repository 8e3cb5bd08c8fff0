"""The page of several primaries: a row for each method and a column for each primary."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import quote

import numpy as np
import plotly.graph_objects as go

from sidequest.report.evidence import Drawing, Sketch, draw
from sidequest.report.style import new_figure
from sidequest.report.tabulating import Cell, Column, Table, number, signed, text

TONES = {"helps": "tag good", "hurts": "tag bad"}


@dataclass
class PrimariesPage:
    """table: `table.json` of a comparison over several primaries. links: name, verdict, and where its own page is."""

    template: ClassVar[str] = "primaries.html.j2"

    title: str
    verdict: dict[str, Any]
    tables: dict[str, Table]
    drawings: dict[str, Drawing]
    links: list[tuple[str, str, str]] = field(default_factory=list)

    @property
    def all_drawings(self) -> dict[str, Drawing]:
        return self.drawings


def primaries_page(directory: Path, table: dict[str, Any], page_name: str) -> PrimariesPage:
    """The page of a directory that holds a comparison for each primary."""
    primaries, methods = list(table["metrics"]), table["methods"]
    helped = [name for name in primaries if any(row[name]["verdict"] == "helps" for row in methods.values())]
    some = f"{len(helped) or 'none'} of {len(primaries)} primaries" + (f": {', '.join(helped)}" if helped else "")
    caption = "Mean difference to the primary alone, over the same seeds. Blue is better, red is worse."
    links = [
        (
            name,
            table["verdicts"][name],
            f"{quote(name)}/{page_name}" if (directory / name / page_name).is_file() else "",
        )
        for name in primaries
    ]
    return PrimariesPage(
        title=f"{len(primaries)} primaries",
        verdict={
            "headline": f"Auxiliary tasks help {some}.",
            "tone": "good" if helped else "base",
            "sentences": [],
            "warnings": [],
        },
        tables={"primaries": _table(table, primaries)},
        drawings={"differences": draw(Sketch("differences", caption, partial(differences, table)))},
        links=links,
    )


def _table(table: dict[str, Any], primaries: list[str]) -> Table:
    columns = [Column("method")]
    columns += [
        Column(f"{name} ({table['metrics'][name]})", numeric=True, csv=(name, f"{name} ± ", f"{name} verdict"))
        for name in primaries
    ]
    rows = []
    for method, cells in sorted(table["methods"].items(), key=lambda item: -item[1]["average"]["mean"]):
        row = [text(method)]
        for name in primaries:
            cell = cells[name]
            half = cell["half_interval"]
            shown = f"{cell['mean']:.3f}" + (f" ± {half:.3f}" if np.isfinite(half) else "")
            values = (cell["mean"], half if np.isfinite(half) else "", cell["verdict"])
            row.append(Cell(signed(shown), values, TONES.get(cell["verdict"], "")))
        rows.append([*row, number(cells["average"]["mean"])])
    return Table("primaries", [*columns, Column("average", numeric=True)], rows)


def differences(table: dict[str, Any]) -> go.Figure:
    """A cell for each method (row) and primary (column): the mean difference to the primary alone."""
    primaries = list(table["metrics"])
    methods = sorted(table["methods"], key=lambda method: table["methods"][method]["average"]["mean"])
    values = np.array([[table["methods"][method][name]["difference"] for name in primaries] for method in methods])
    figure = new_figure("Difference to the primary alone", "primary", "")
    reach = float(np.abs(values).max()) or 1.0
    figure.add_heatmap(
        z=values,
        x=primaries,
        y=methods,
        colorscale="RdBu",
        zmin=-reach,
        zmax=reach,
        xgap=2,
        ygap=2,
        texttemplate="%{z:+.3f}",
        hovertemplate="%{y}, %{x}: %{z:+.4f}<extra></extra>",
    )
    figure.update_xaxes(type="category", showgrid=False)
    figure.update_yaxes(type="category", showgrid=False)
    figure.update_layout(height=140 + 34 * len(methods))
    return figure
