"""Figures of the final training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go

from sidequest.report.style import PALETTE, new_figure


def training_curve(history: Sequence[Mapping[str, Any]]) -> go.Figure:
    """The score on *select* over the batches trained; a colour for each phase. history: of `scores.json`."""
    figure = new_figure("Score on select while training", "batches", "score on select")
    for phase in sorted({entry["phase"] for entry in history}):
        mine = [entry for entry in history if entry["phase"] == phase]
        figure.add_scatter(
            x=[entry["batches"] for entry in mine],
            y=[entry["score"] for entry in mine],
            mode="lines+markers",
            name=f"phase {phase + 1}",
            line={"color": PALETTE[phase % len(PALETTE)]},
        )
    return figure
