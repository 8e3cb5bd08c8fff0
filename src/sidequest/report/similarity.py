"""Figures of similarity sampling (Kung et al. 2021, Figures 1 and 3 to 9), drawn from numbers and recipes alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from sidequest.recipe import Recipe
from sidequest.records.evidence import RowRankings, RowsTaken
from sidequest.report.style import PALETTE, PRIMARY, add_band, new_figure


def score_against_rows(
    curves: Mapping[str, Mapping[int, Sequence[float]]],
    levels: Mapping[str, Sequence[float]],
    metric: str,
    title: str = "",
) -> go.Figure:
    """Figures 3 to 5, 8 and 9: per curve and N the scores of all seeds, as their mean and a band from lowest to highest; per
    level (single, all) a line across."""
    figure = new_figure(title or f"{metric} against the rows taken", "auxiliary rows taken", metric)
    for index, (name, points) in enumerate(curves.items()):
        colour = PALETTE[index % len(PALETTE)]
        counts = sorted(points)
        values = [np.asarray(points[count], dtype=float) for count in counts]
        if max(len(each) for each in values) > 1:
            low, high = [float(each.min()) for each in values], [float(each.max()) for each in values]
            add_band(figure, counts, low, high, colour)
        means = [float(each.mean()) for each in values]
        figure.add_scatter(x=counts, y=means, name=name, mode="lines+markers", line={"color": colour})
    across = [count for points in curves.values() for count in points]
    for index, (name, scores) in enumerate(levels.items()):
        mean = float(np.mean(scores))
        line = {"color": PALETTE[-1 - index], "dash": "dot"}
        figure.add_scatter(x=[min(across), max(across)], y=[mean, mean], name=name, mode="lines", line=line)
    return figure


def share_per_auxiliary(recipes: Mapping[str, Recipe]) -> go.Figure:
    """Figure 6: of each auxiliary's rows that could be taken, the share that was, by method."""
    evidence = {label: RowsTaken.of(recipe.evidence) for label, recipe in recipes.items()}
    names = sorted({name for rows in evidence.values() for name in rows.pool})
    figure = new_figure("Share of each auxiliary's rows that was taken", "auxiliary", "share")
    for index, (label, rows) in enumerate(evidence.items()):
        shares = [rows.taken.get(name, 0) / rows.pool[name] if rows.pool.get(name) else 0.0 for name in names]
        figure.add_bar(x=names, y=shares, name=label, marker={"color": PALETTE[index % len(PALETTE)]})
    figure.update_layout(barmode="group")
    return figure


def in_task_efficacy(gains: Mapping[str, Mapping[str, float]], metric: str = "points") -> go.Figure:
    """Figure 7: by loss and primary, how much better the chosen rows are than others in the same mix."""
    figure = new_figure("In-task efficacy: chosen rows against others of the same tasks", "primary", metric)
    for index, (loss, of_primary) in enumerate(gains.items()):
        figure.add_bar(
            x=list(of_primary), y=list(of_primary.values()), name=loss, marker={"color": PALETTE[index % len(PALETTE)]}
        )
    figure.update_layout(barmode="group")
    return figure


def feature_map(points: Mapping[str, np.ndarray], primary: str, title: str = "") -> go.Figure:
    """Figure 1: rows of each task by their features in two dimensions, [n, 2] each."""
    figure = new_figure(title or "t-SNE of the pooled output")
    others = [name for name in sorted(points) if name != primary]
    for index, name in enumerate([*others, primary]):  # the primary last, on top
        colour = PRIMARY if name == primary else PALETTE[1 + index % (len(PALETTE) - 1)]
        places = np.asarray(points[name])
        figure.add_scatter(
            x=places[:, 0],
            y=places[:, 1],
            mode="markers",
            name=name,
            marker={"color": colour, "size": 4},
            line={"color": colour},
        )
    return figure


def score_spread(ranking: RowRankings) -> go.Figure:
    """How scores of each task's rows are spread, with the lowest score taken."""
    bins = np.asarray(ranking.bins)
    figure = new_figure("Likeness to the primary", "score", "share of the task's rows")
    for index, (name, entry) in enumerate(sorted(ranking.ranked.items())):
        counts = np.asarray(entry.histogram) / max(1, entry.rows)
        colour = PALETTE[(index + 1) % len(PALETTE)]  # the first is the primary's
        figure.add_scatter(x=(bins[:-1] + bins[1:]) / 2, y=counts, name=name, mode="lines", line={"color": colour})
    if ranking.threshold is not None:
        figure.add_vline(x=ranking.threshold, line={"dash": "dot", "color": "#7F7F7F"})
    return figure
