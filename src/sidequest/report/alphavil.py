"""Figures of learned task weights (αVIL, DIW), drawn from a recipe's evidence alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from sidequest.records.evidence import WeightCourse
from sidequest.report.style import PALETTE, new_figure


def alphas_over_training(evidence: WeightCourse) -> go.Figure:
    """α of each task after its tuning, epoch by epoch (Kourdis et al. 2020, Figure 3, left): 1 leaves an update as it was."""
    alphas = [epoch.alphas for epoch in evidence.epochs if epoch.alphas is not None]
    figure = _lines(evidence, "α over training", "α", alphas)
    figure.add_hline(y=1, line={"dash": "dot", "color": "#7F7F7F"})
    return figure


def weights_over_training(evidence: WeightCourse) -> go.Figure:
    """Each task's share of the weight with which an epoch begins (the same figure, right). The vertical line is the epoch whose
    model was kept."""
    first = (1.0,) * len(evidence.tasks)
    weights = np.array([first, *(epoch.weights for epoch in evidence.epochs)])
    shares = weights / weights.sum(axis=1, keepdims=True)
    figure = _lines(evidence, "Task weights over training", "share of the weight", shares.tolist(), start=0)
    figure.add_vline(x=evidence.best_epoch, line={"dash": "dot", "color": "#7F7F7F"})
    figure.update_yaxes(range=[0, 1])
    return figure


def _lines(evidence: WeightCourse, title: str, y: str, values: Sequence[Sequence[float]], start: int = 1) -> go.Figure:
    """values: [epochs, tasks], the first for epoch `start`."""
    figure = new_figure(title, "epoch", y)
    epochs = list(range(start, start + len(values)))
    for column, name in enumerate(evidence.tasks):
        colour = PALETTE[column % len(PALETTE)]
        figure.add_scatter(x=epochs, y=[row[column] for row in values], name=name, line={"color": colour})
    return figure
