"""One figure for each kind of evidence of `sidequest.evidence`, whichever method left it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import plotly.graph_objects as go

from sidequest.evidence import Additions, Bars, Curves, Histograms, Matrix, Points, Shown
from sidequest.report.style import PALETTE, PRIMARY, near_scores, new_figure

DOTTED = {"dash": "dot", "color": "#7F7F7F"}


def additions(shown: Additions, primary: str) -> go.Figure:
    figure = new_figure(shown.title, "", "score on select")
    scores = shown.scores
    best = max(range(len(scores)), key=lambda index: (scores[index], -index))
    figure.add_scatter(
        x=[primary, *(f"+ {name}" for name in shown.steps[: len(scores) - 1])],
        y=list(scores),
        mode="lines+markers",
        line={"color": PRIMARY},
        marker={"size": 11, "symbol": ["circle" if i == best else "circle-open" for i in range(len(scores))]},
        hovertemplate="%{x}: %{y:.4f}<extra></extra>",
        showlegend=False,
    )
    figure.update_xaxes(type="category")
    near_scores(figure, "y")
    return figure


def curves(shown: Curves, primary: str) -> go.Figure:
    figure = new_figure(shown.title, shown.x_label, shown.y_label)
    for name, values in shown.lines.items():
        figure.add_scatter(x=shown.x, y=values, name=name, line={"color": _colour(name, shown.lines, primary)})
    if shown.level is not None:
        figure.add_hline(y=shown.level, line=DOTTED)
    if shown.mark is not None:
        figure.add_vline(x=shown.mark, line=DOTTED)
    return figure


def bars(shown: Bars, primary: str) -> go.Figure:
    figure = new_figure(shown.title, "", shown.y_label)
    for index, (group, values) in enumerate(shown.groups.items()):
        figure.add_bar(
            x=list(values), y=list(values.values()), name=group, marker={"color": PALETTE[index % len(PALETTE)]}
        )
    figure.update_layout(barmode="group", showlegend=len(shown.groups) > 1)
    figure.update_xaxes(type="category")
    return figure


def matrix(shown: Matrix, primary: str) -> go.Figure:
    figure = new_figure(shown.title, shown.x_label, shown.y_label)
    figure.add_heatmap(
        z=[list(row) for row in shown.values[::-1]],
        x=list(shown.columns),
        y=list(shown.rows[::-1]),
        colorscale="RdBu" if shown.low < 0 else "Blues",
        zmin=shown.low,
        zmax=shown.high,
        xgap=1,
        ygap=1,
        texttemplate="%{z:.2f}" if len(shown.rows) * len(shown.columns) <= 150 else None,
        hovertemplate="%{y}, %{x}: %{z:.3f}<extra></extra>",
    )
    figure.update_xaxes(type="category", showgrid=False)
    figure.update_yaxes(type="category", showgrid=False)
    return figure


def histograms(shown: Histograms, primary: str) -> go.Figure:
    figure = new_figure(shown.title, shown.x_label, "share of the task's rows")
    middles = (np.array(shown.bins[:-1]) + np.array(shown.bins[1:])) / 2
    for name, counts in shown.counts.items():
        share = np.array(counts) / max(1.0, sum(counts))
        line = {"color": _colour(name, shown.counts, primary), "shape": "hvh"}
        figure.add_scatter(x=middles, y=share, name=name, mode="lines", line=line)
    if shown.threshold is not None:
        figure.add_vline(x=shown.threshold, line=DOTTED)
    return figure


def points(shown: Points, primary: str) -> go.Figure:
    figure = new_figure(shown.title, shown.x_label, shown.y_label)
    for name in sorted(shown.points, key=lambda name: (name == primary, name)):  # the primary last, on top
        places = np.array(shown.points[name]).reshape(-1, 2)
        marker = {"color": _colour(name, shown.points, primary), "size": 4}
        figure.add_scatter(x=places[:, 0], y=places[:, 1], mode="markers", name=name, marker=marker)
    return figure


def _colour(name: str, names: dict[str, Any], primary: str) -> str:
    """The primary in its own; the others in name order, so that a task has one colour in all figures of a recipe."""
    if name == primary:
        return PRIMARY
    others = sorted(set(names) - {primary})
    return PALETTE[1 + others.index(name) % (len(PALETTE) - 1)]


DRAW: dict[type, Callable[[Any, str], go.Figure]] = {
    Additions: additions,
    Curves: curves,
    Bars: bars,
    Matrix: matrix,
    Histograms: histograms,
    Points: points,
}


def draw_kind(shown: Shown, primary: str) -> go.Figure:
    return DRAW[type(shown)](shown, primary)
