"""Figures of a comparison: what each method scored, with intervals, and what it cost."""

from __future__ import annotations

import plotly.graph_objects as go

from sidequest.formatting import fixed, seeds_of
from sidequest.records.comparisons import Comparison
from sidequest.report.style import PALETTE, cost_axis, mark, near_scores, new_figure

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
    near_scores(figure, "x")
    return figure


def cost_against_quality(comparison: Comparison) -> go.Figure:
    """One point per method: what it cost, selection and training together, and its mean score with the 95 % interval. The stepped
    line joins the methods that no cheaper one beats."""
    rows = sorted(comparison.rows, key=lambda row: (row.x, -row.mean))
    figure = new_figure("Score against cost", "cost in single-task training runs (x)", comparison.metric)
    front = [row for index, row in enumerate(rows) if all(row.mean > cheaper.mean for cheaper in rows[:index])]
    most = max(row.x for row in rows)
    figure.add_scatter(
        x=[1 + x for x in (*(row.x for row in front), most)],
        y=[*(row.mean for row in front), front[-1].mean],
        mode="lines",
        line={"color": PALETTE[7], "dash": "dot", "width": 1, "shape": "hv"},
        hoverinfo="skip",
        showlegend=False,
    )
    for number, row in enumerate(comparison.rows):
        look = mark(number)
        figure.add_scatter(
            x=[1 + row.x],
            y=[row.mean],
            error_y={
                "type": "data",
                "array": [row.high - row.mean],
                "color": look["color"],
                "thickness": 1,
                "width": 3,
            },
            mode="markers",
            marker={**look, "size": 11},
            name=row.method,
            hovertemplate=f"{row.method}: %{{y:.3f}} for {fixed(row.x, 1)}x ({row.verdict})<extra></extra>",
        )
    cost_axis(figure, most)
    near_scores(figure, "y")
    return figure
