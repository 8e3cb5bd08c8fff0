"""Figures of GradTS (Ma et al. 2021, Figures 1 to 4), drawn from recipes alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from sidequest.recipe import Recipe
from sidequest.records.evidence import HeadImportances, HeadSimilarity, KeptRows, RowTaus
from sidequest.report.style import PALETTE, new_figure

SEQUENTIAL = "Blues"  # darker is more, as in the paper
DIVERGING = "RdBu"  # −1 to 1


def head_importance(evidence: HeadImportances, task: str) -> go.Figure:
    """Figure 3: the scaled importance of each head for one task, layer 1 at the bottom."""
    matrix = np.array(evidence.heads[task])
    layers, heads = ([str(i + 1) for i in range(count)] for count in matrix.shape)
    figure = new_figure(f"Head importance for {task}", "head", "layer")
    return _cells(figure, matrix, heads, layers, SEQUENTIAL, (0, 1), text=False)


def tau_between_tasks(evidence: HeadSimilarity) -> go.Figure:
    """Figure 4: Kendall's τ between the head rankings of every two tasks; the first is the primary."""
    names, values = evidence.tau_between.names, np.array(evidence.tau_between.values)
    figure = new_figure("Kendall's τ between head rankings")
    return _cells(figure, values[::-1], names, names[::-1], DIVERGING, (-1, 1))


def tau_against_gains(by_primary: Mapping[str, Mapping[str, tuple[float, float]]]) -> go.Figure:
    """Not in the paper: does τ say what a candidate is worth? By primary and candidate: (τ, gain in points from it alone)."""
    figure = new_figure(
        "What τ says of a candidate, and what it is worth", "Kendall's τ with the primary", "gain, points"
    )
    for colour, (primary, pairs) in zip(PALETTE, by_primary.items(), strict=False):
        names = sorted(pairs, key=lambda name: pairs[name])
        figure.add_scatter(
            x=[pairs[name][0] for name in names],
            y=[pairs[name][1] for name in names],
            text=names,
            name=f"primary {primary}",
            mode="markers+text",
            textposition="top center",
            marker={"color": colour, "size": 10},
        )
    figure.add_hline(y=0, line={"dash": "dot", "color": "#7F7F7F"})
    return figure


def selection_map(recipes: Sequence[Recipe], title: str = "") -> go.Figure:
    """Figures 1 and 2: of each auxiliary (column), the share of rows that each primary (row) trains with."""
    shares = {recipe.primary: selected_shares(recipe) for recipe in recipes}
    primaries = list(shares)
    names = [*primaries, *sorted({name for chosen in shares.values() for name in chosen} - set(primaries))]
    values = np.array([[shares[primary].get(name, np.nan) for name in names] for primary in primaries])
    figure = new_figure(title or f"Selected rows: {recipes[0].method}", "auxiliary", "primary")
    return _cells(figure, values[::-1], names, primaries[::-1], SEQUENTIAL, (0, 1))


def selected_shares(recipe: Recipe) -> dict[str, float]:
    """Of every candidate, the share of its rows that the recipe trains with: 0, 1, or what was kept of it."""
    evidence = KeptRows.of(recipe.evidence)
    kept = {name: rows.share for name, rows in evidence.instances.items()}
    return {name: kept.get(name, 1.0) if name in recipe.auxiliaries else 0.0 for name in sorted(evidence.ranking)}


def row_taus(evidence: RowTaus) -> go.Figure:
    """How τ of the chosen tasks' rows is spread, with the threshold: what a threshold or quantile would keep."""
    bins = np.array(evidence.bins)
    figure = new_figure("Kendall's τ of rows with the primary's heads", "τ", "share of the task's rows")
    for index, (name, entry) in enumerate(sorted(evidence.instances.items())):
        counts = np.array(entry.histogram) / max(1, entry.rows)
        colour = PALETTE[(index + 1) % len(PALETTE)]  # the first is the primary's
        figure.add_scatter(x=(bins[:-1] + bins[1:]) / 2, y=counts, name=name, line={"color": colour, "shape": "hvh"})
    if evidence.threshold is not None:
        figure.add_vline(x=evidence.threshold, line={"dash": "dot", "color": "#7F7F7F"})
    return figure


def _cells(
    figure: go.Figure,
    values: np.ndarray,
    x: Sequence[str],
    y: Sequence[str],
    colours: str,
    span: tuple[float, float],
    *,
    text: bool = True,
) -> go.Figure:
    """A grid of coloured cells, numbers in them if asked; NaN stays empty."""
    figure.add_heatmap(
        z=values,
        x=list(x),
        y=list(y),
        colorscale=colours,
        zmin=span[0],
        zmax=span[1],
        xgap=1,
        ygap=1,
        texttemplate="%{z:.2f}" if text else None,
        hovertemplate="%{y}, %{x}: %{z:.3f}<extra></extra>",
    )
    figure.update_xaxes(type="category", showgrid=False)
    figure.update_yaxes(type="category", showgrid=False)
    return figure
