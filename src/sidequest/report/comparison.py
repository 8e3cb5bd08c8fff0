"""Figures of a comparison: what each method scored, with intervals, and what it cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import plotly.graph_objects as go

from sidequest.report.style import PALETTE, new_figure

COLOURS = {"helps": PALETTE[2], "hurts": PALETTE[4], "baseline": PALETTE[0]}


def scores_with_intervals(comparison: Mapping[str, Any]) -> go.Figure:
    """One line per method: mean score on *report* with its 95 % interval, the scores of the single seeds behind it, and
    single-task training as the line to beat. comparison: `comparison.json` of a comparison's directory."""
    rows = list(reversed(comparison["rows"]))
    seeds = len(comparison["seeds"])
    title = f"{comparison['primary']}: {comparison['metric']} on report, {seeds} seeds"
    figure = new_figure(title, x=comparison["metric"])
    figure.update_layout(height=140 + 32 * len(rows))
    baseline = next(row for row in rows if row["verdict"] == "baseline")
    figure.add_vline(x=baseline["mean"], line={"color": COLOURS["baseline"], "dash": "dot", "width": 1})
    for row in rows:
        colour = COLOURS.get(row["verdict"], PALETTE[7])
        figure.add_trace(
            go.Scatter(
                x=row["scores"],
                y=[row["method"]] * seeds,
                mode="markers",
                marker={"color": colour, "size": 5, "opacity": 0.4},
                showlegend=False,
                hovertemplate="one seed: %{x:.3f}<extra></extra>",
            )
        )
        label = f"{row['method']}  ({row['x']:.1f}x, {row['verdict']})"
        figure.add_trace(
            go.Scatter(
                x=[row["mean"]],
                y=[row["method"]],
                error_x={"type": "data", "array": [row["high"] - row["mean"]], "color": colour, "thickness": 2},
                mode="markers",
                marker={"color": colour, "size": 10},
                showlegend=False,
                hovertemplate=f"{label}: %{{x:.3f}}<extra></extra>",
            )
        )
    figure.update_yaxes(
        tickmode="array",
        tickvals=[row["method"] for row in rows],
        ticktext=[f"{row['method']} ({row['x']:.1f}x)" for row in rows],
        automargin=True,
    )
    return figure
