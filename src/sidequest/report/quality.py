"""Quality against cost: what a choice is worth, and what it costs to make."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean

import plotly.graph_objects as go

from sidequest.records.standings import Standing
from sidequest.report.style import cost_axis, mark, new_figure


def regret_against_cost(standings: Sequence[Standing]) -> go.Figure:
    """One point per method: the mean over truth tables of its relative regret (0: the best subset, 1: the primary alone) against
    the mean cost of choosing in single-task runs; small points are the single tables. A method that was not judged by all
    tables says by how many.
    """
    figure = new_figure(
        "What a choice is worth, and what it costs",
        x="cost of choosing (x: single-task runs)",
        y="regret (best 0, primary alone 1)",
    )
    rows = [row for row in standings if math.isfinite(row.relative)]
    tables = list(dict.fromkeys(row.truth for row in rows))
    by_method = {
        name: [row for row in rows if row.method == name] for name in dict.fromkeys(row.method for row in rows)
    }
    means = {name: (fmean(row.x for row in own), fmean(row.relative for row in own)) for name, own in by_method.items()}
    if len(tables) > 1:
        figure.update_layout(
            title_text=f"What a choice is worth, and what it costs: means over {len(tables)} truth tables"
        )
    for number, (method, own) in enumerate(by_method.items()):
        look = mark(number)
        figure.add_trace(
            go.Scatter(
                x=[1 + row.x for row in own],
                y=[row.relative for row in own],
                mode="markers",
                marker={**look, "size": 6, "opacity": 0.35},
                showlegend=False,
                text=[row.truth for row in own],
                hovertemplate=f"{method} on %{{text}}: regret %{{y:.2f}}<extra></extra>",
            )
        )
        x, y = means[method]
        missing = "" if len(own) == len(tables) else f" ({len(own)}/{len(tables)})"
        figure.add_trace(
            go.Scatter(
                x=[1 + x],
                y=[y],
                mode="markers",
                name=method + missing,
                marker={**look, "size": 12},
                hovertemplate=f"{method}{missing}: regret %{{y:.2f}}, {x:.1f}x<extra></extra>",
            )
        )
    cost_axis(figure, max([1.0, *(row.x for row in rows)]))
    figure.update_yaxes(range=[-0.06, max(1.06, 1.06 * min(2.5, max([1.0, *(y for _, y in means.values())])))])
    figure.update_layout(height=520)
    return figure
