"""Figures of a comparison: what each method scored, with intervals, and what it cost."""

from __future__ import annotations

import math
from collections.abc import Sequence

import plotly.graph_objects as go

from sidequest.formatting import fixed, seeds_of
from sidequest.records.comparisons import Comparison
from sidequest.report.style import PALETTE, new_figure

COLOURS = {"helps": PALETTE[2], "hurts": PALETTE[4], "baseline": PALETTE[0], "control": PALETTE[5]}


def scores_with_intervals(comparison: Comparison) -> go.Figure:
    """One line per method, the highest mean at the top: mean score on *report* with its 95 % interval, the scores of the single
    seeds behind it, and the baseline as the line to beat."""
    rows = sorted(comparison.rows, key=lambda row: row.mean)
    title = f"{comparison.primary}: {comparison.metric} on report, {seeds_of(len(comparison.seeds))}"
    figure = new_figure(title, x=comparison.metric)
    figure.update_layout(height=140 + 32 * len(rows))
    if (baseline := comparison.row(comparison.baseline)) is not None:
        figure.add_vline(x=baseline.mean, line={"color": COLOURS["baseline"], "dash": "dot", "width": 1})
    for row in rows:
        colour = COLOURS.get(row.verdict, PALETTE[7])
        figure.add_trace(
            go.Scatter(
                x=row.scores,
                y=[row.method] * len(row.scores),
                mode="markers",
                marker={"color": colour, "size": 5, "opacity": 0.4},
                showlegend=False,
                hovertemplate="one seed: %{x:.3f}<extra></extra>",
            )
        )
        label = f"{row.method}  ({fixed(row.x, 1)}x, {row.verdict})"
        figure.add_trace(
            go.Scatter(
                x=[row.mean],
                y=[row.method],
                error_x={"type": "data", "array": [row.high - row.mean], "color": colour, "thickness": 2},
                mode="markers",
                marker={"color": colour, "size": 10},
                showlegend=False,
                hovertemplate=f"{label}: %{{x:.3f}}<extra></extra>",
            )
        )
    figure.update_yaxes(
        tickmode="array",
        tickvals=[row.method for row in rows],
        ticktext=[f"{row.method} ({fixed(row.x, 1)}x)" for row in rows],
        automargin=True,
    )
    return figure


def cost_against_quality(comparison: Comparison) -> go.Figure:
    """One point per method: what it cost, selection and training together, and its mean score with the 95 % interval. The stepped
    line joins the methods that no cheaper one beats."""
    rows = sorted(comparison.rows, key=lambda row: (row.x, -row.mean))
    figure = new_figure("Score against cost", "cost in single-task training runs (x)", comparison.metric)
    front = [row for index, row in enumerate(rows) if all(row.mean > cheaper.mean for cheaper in rows[:index])]
    most = max(row.x for row in rows)
    figure.add_scatter(
        x=[*(row.x for row in front), most],
        y=[*(row.mean for row in front), front[-1].mean],
        mode="lines",
        line={"color": PALETTE[7], "dash": "dot", "width": 1, "shape": "hv"},
        hoverinfo="skip",
        showlegend=False,
    )
    logarithmic = rows[0].x > 0 and most / rows[0].x > 10
    places = _label_places([(math.log(row.x) if logarithmic else row.x, row.mean) for row in rows])
    for row, place in zip(rows, places, strict=True):
        colour = COLOURS.get(row.verdict, PALETTE[7])
        figure.add_scatter(
            x=[row.x],
            y=[row.mean],
            error_y={"type": "data", "array": [row.high - row.mean], "color": colour, "thickness": 1, "width": 3},
            mode="markers+text",
            text=[row.method],
            textposition=place,
            marker={"color": colour, "size": 10},
            hovertemplate=f"{row.method}: %{{y:.3f}} for %{{x:.1f}}x ({row.verdict})<extra></extra>",
            showlegend=False,
        )
    if logarithmic:
        figure.update_xaxes(type="log", dtick=1)
    return figure


def _label_places(points: Sequence[tuple[float, float]]) -> list[str]:
    """Where the label of each point goes, in plotly's words: to the side that has room, above or below a close neighbour.

    points: sorted by x. Labels are wide and flat, so that neighbours within a quarter of the width and 5 % of the height collide.
    """
    width = (points[-1][0] - points[0][0]) or 1.0
    heights = [y for _, y in points]
    height = (max(heights) - min(heights)) or 1.0
    out = []
    for index, (x, y) in enumerate(points):
        near = [
            other
            for number, other in enumerate(points)
            if number != index and abs(other[0] - x) < width / 4 and abs(other[1] - y) < height / 20
        ]
        higher = [other for other in near if (other[1], other[0]) > (y, x)]
        level = "middle" if not near else "bottom" if len(higher) * 2 > len(near) - 1 else "top"
        out.append(f"{level} {'left' if x > points[0][0] + 0.8 * width else 'right'}")
    return out
