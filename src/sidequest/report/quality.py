"""Quality against cost: what a choice is worth, and what it costs to make."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from statistics import fmean

import plotly.graph_objects as go

from sidequest.formatting import plain
from sidequest.records.standings import Standing
from sidequest.report.style import cost_axis, mark, new_figure

HIGHEST = 2.5  # on the axes: a method that is worse than that is at the edge
COLUMNS = (
    *("truth", "method", "seeds", "x", "regret", "low", "high", "relative", "rank", "subsets", "chosen"),
    *("trained", "delivered", "delivered_low", "delivered_high", "gained", "gained_low", "gained_high", "failed"),
)


def figures_of(standings: Sequence[Standing]) -> dict[str, go.Figure]:
    """By file name; the gain delivered only where recipes were trained."""
    figures = {"regret-against-cost": regret_against_cost(standings)}
    if any(math.isfinite(row.delivered) for row in standings):
        figures["gain-against-cost"] = gain_against_cost(standings)
    return figures


def standings_csv(standings: Sequence[Standing]) -> str:
    """A row for each method and table; what is unknown is empty."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in standings:
        values = [getattr(row, name) for name in COLUMNS]
        writer.writerow([plain(value) if isinstance(value, float) else value for value in values])
    return file.getvalue()


def regret_against_cost(standings: Sequence[Standing]) -> go.Figure:
    """The mean over truth tables of relative regret (0: the best subset, 1: the primary alone)."""
    figure, most, _ = _against_cost(
        {(row.truth, row.method): row.relative for row in standings},
        standings,
        "What a choice is worth, and what it costs",
        "regret (best 0, primary alone 1)",
        "regret",
    )
    figure.update_yaxes(range=[-0.06, max(1.06, 1.06 * min(HIGHEST, most))])
    return figure


def gain_against_cost(standings: Sequence[Standing]) -> go.Figure:
    """The mean over truth tables of the part of the best subset's gain that the trained recipes deliver."""
    figure, most, least = _against_cost(
        {(row.truth, row.method): row.delivered for row in standings},
        standings,
        "What a trained recipe delivers, and what choosing it costs",
        "gain delivered (primary alone 0, best 1)",
        "delivers",
    )
    figure.update_yaxes(range=[max(-HIGHEST, min(0.0, least)) - 0.1, 1.06 * min(HIGHEST, max(1.0, most))])
    return figure


def _against_cost(
    values: Mapping[tuple[str, str], float], standings: Sequence[Standing], title: str, y: str, says: str
) -> tuple[go.Figure, float, float]:
    """One point per method: the mean over truth tables against the mean cost of choosing in single-task runs; small points are
    the single tables. A method that was not judged by all tables says by how many. Beside the figure the highest and the lowest
    mean."""
    figure = new_figure(title, x="cost of choosing (x: single-task runs)", y=y)
    rows = [row for row in standings if math.isfinite(values[row.truth, row.method])]
    tables = list(dict.fromkeys(row.truth for row in rows))
    by_method = {
        name: [row for row in rows if row.method == name] for name in dict.fromkeys(row.method for row in rows)
    }
    means = {
        name: (fmean(row.x for row in own), fmean(values[row.truth, name] for row in own))
        for name, own in by_method.items()
    }
    if len(tables) > 1:
        figure.update_layout(title_text=f"{title}: means over {len(tables)} truth tables")
    for number, (method, own) in enumerate(by_method.items()):
        look = mark(number)
        figure.add_trace(
            go.Scatter(
                x=[1 + row.x for row in own],
                y=[values[row.truth, method] for row in own],
                mode="markers",
                marker={**look, "size": 6, "opacity": 0.35},
                showlegend=False,
                text=[row.truth for row in own],
                hovertemplate=f"{method} on %{{text}}: {says} %{{y:.2f}}<extra></extra>",
            )
        )
        cost, level = means[method]
        missing = "" if len(own) == len(tables) else f" ({len(own)}/{len(tables)})"
        figure.add_trace(
            go.Scatter(
                x=[1 + cost],
                y=[level],
                mode="markers",
                name=method + missing,
                marker={**look, "size": 12},
                hovertemplate=f"{method}{missing}: {says} %{{y:.2f}}, {cost:.1f}x<extra></extra>",
            )
        )
    cost_axis(figure, max([1.0, *(row.x for row in rows)]))
    figure.update_layout(height=520)
    levels = [level for _, level in means.values()] or [0.0]
    return figure, max(levels), min(levels)
