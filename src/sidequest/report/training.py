"""Figures of the final training."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from sidequest.records.runs import Evaluation
from sidequest.report.style import PALETTE, new_figure


def training_curve(history: Sequence[Evaluation]) -> go.Figure:
    """The score on *select* over the batches trained; a colour for each phase."""
    figure = new_figure("Score on select while training", "batches", "score on select")
    for phase in sorted({evaluation.phase for evaluation in history}):
        of_phase = [evaluation for evaluation in history if evaluation.phase == phase]
        figure.add_scatter(
            x=[evaluation.batches for evaluation in of_phase],
            y=[evaluation.score for evaluation in of_phase],
            mode="lines+markers",
            name=f"phase {phase + 1}",
            line={"color": PALETTE[phase % len(PALETTE)]},
        )
    return figure
