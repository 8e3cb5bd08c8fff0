"""Quality against cost: what a choice is worth, and what it costs to make."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean

import plotly.graph_objects as go

from sidequest.records.standings import Standing
from sidequest.report.style import PALETTE, new_figure

SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "star", "x", "pentagon")


def regret_against_cost(standings: Sequence[Standing]) -> go.Figure:
    """One point per method: the mean over truth tables of its relative regret (0: the best subset, 1: the worst) against the
    mean cost of choosing in single-task runs; small points are the single tables. A method that was
    not judged by all tables says by how many.

    The cost axis is logarithmic in 1 + x, because the cheapest methods cost nothing.
    """
    figure = new_figure(
        "What a choice is worth, and what it costs",
        x="cost of choosing (x: single-task runs)",
        y="regret (best 0, worst 1)",
    )
    rows = [row for row in standings if math.isfinite(row.relative)]
    tables = list(dict.fromkeys(row.truth for row in rows))
    by_method = {
        name: [row for row in rows if row.method == name] for name in dict.fromkeys(row.method for row in rows)
    }
    means = {name: (fmean(row.x for row in own), fmean(row.relative for row in own)) for name, own in by_method.items()}
    sides = label_sides(means)
    if len(tables) > 1:
        figure.update_layout(
            title_text=f"What a choice is worth, and what it costs: means over {len(tables)} truth tables"
        )
    for number, (method, own) in enumerate(by_method.items()):
        colour, symbol = PALETTE[number % len(PALETTE)], SYMBOLS[number // len(PALETTE) % len(SYMBOLS)]
        figure.add_trace(
            go.Scatter(
                x=[1 + row.x for row in own],
                y=[row.relative for row in own],
                mode="markers",
                marker={"color": colour, "symbol": symbol, "size": 6, "opacity": 0.35},
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
                mode="markers+text",
                name=method + missing,
                text=[method + missing],
                textposition=sides[method],
                marker={"color": colour, "symbol": symbol, "size": 12},
                showlegend=False,
                hovertemplate=f"{method}{missing}: regret %{{y:.2f}}, {x:.1f}x<extra></extra>",
            )
        )
    ticks = [0, 1, 3, 10, 30, 100, 300]
    most = max([1.0, *(row.x for row in rows)])
    figure.update_xaxes(range=[-0.35, math.log10(1 + most) + 0.15])  # room for the labels on both sides
    figure.update_xaxes(type="log", tickvals=[1 + tick for tick in ticks], ticktext=[f"{tick}x" for tick in ticks])
    figure.update_yaxes(range=[-0.06, 1.06])
    figure.update_layout(height=520)
    return figure


def label_sides(means: Mapping[str, tuple[float, float]]) -> dict[str, str]:
    """On which side of each point (x, regret) its label stands: towards the middle of the axis, but on the other side where a
    neighbour at about the same height has taken that one."""
    places = {method: (math.log10(1 + x), y) for method, (x, y) in means.items()}
    middle = 0.6 * max([0.0, *(x for x, _ in places.values())])
    sides: dict[str, str] = {}
    for method, (x, y) in sorted(places.items(), key=lambda item: -item[1][1]):
        wanted, other = ("left", "right") if x > middle else ("right", "left")
        taken = [
            side for name, side in sides.items() if math.dist((x / 6, y), (places[name][0] / 6, places[name][1])) < 0.04
        ]
        sides[method] = f"middle {other}" if f"middle {wanted}" in taken else f"middle {wanted}"
    return sides
