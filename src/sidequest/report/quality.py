"""Quality against cost: what a choice is worth, and what it costs to make."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go

from sidequest.report.style import PALETTE, new_figure

SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "star", "x", "pentagon")


def regret_against_cost(standings: Sequence[Mapping[str, Any]]) -> go.Figure:
    """One point per method: the mean over truth tables of its relative regret (0: the best subset, 1: the worst) against the
    mean cost of choosing in single-task runs; small points are the single tables. standings: rows of `Standing`.

    The cost axis is logarithmic in 1 + x, because the cheapest methods cost nothing.
    """
    figure = new_figure(
        "What a choice is worth, and what it costs",
        x="cost of choosing (x: single-task runs)",
        y="regret (best 0, worst 1)",
    )
    rows = [row for row in standings if math.isfinite(row["relative"])]
    tables = list(dict.fromkeys(row["truth"] for row in rows))
    for number, method in enumerate(dict.fromkeys(row["method"] for row in rows)):
        mine = [row for row in rows if row["method"] == method]
        colour, symbol = PALETTE[number % len(PALETTE)], SYMBOLS[number // len(PALETTE) % len(SYMBOLS)]
        figure.add_trace(
            go.Scatter(
                x=[1 + row["x"] for row in mine],
                y=[row["relative"] for row in mine],
                mode="markers",
                marker={"color": colour, "symbol": symbol, "size": 6, "opacity": 0.35},
                showlegend=False,
                text=[row["truth"] for row in mine],
                hovertemplate=f"{method} on %{{text}}: regret %{{y:.2f}}<extra></extra>",
            )
        )
        x, y = (sum(row[key] for row in mine) / len(mine) for key in ("x", "relative"))
        missing = "" if len(mine) == len(tables) else f" ({len(mine)} of {len(tables)} tables)"
        figure.add_trace(
            go.Scatter(
                x=[1 + x],
                y=[y],
                mode="markers+text",
                name=method + missing,
                text=[method],
                textposition="top center",
                marker={"color": colour, "symbol": symbol, "size": 12},
                showlegend=False,
                hovertemplate=f"{method}{missing}: regret %{{y:.2f}}, {x:.1f}x<extra></extra>",
            )
        )
    ticks = [0, 1, 3, 10, 30, 100, 300]
    figure.update_xaxes(type="log", tickvals=[1 + tick for tick in ticks], ticktext=[f"{tick}x" for tick in ticks])
    figure.update_yaxes(rangemode="tozero")
    figure.update_layout(height=520)
    return figure
