"""Figures of final trainings: scores on *select* over the batches trained."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from sidequest.records.comparisons import Comparison
from sidequest.records.runs import Evaluation
from sidequest.report.style import PALETTE, mark, near_scores, new_figure


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
    near_scores(figure, "y")
    return figure


def learning_curves(comparison: Comparison) -> go.Figure:
    """One line per method: the mean over seeds of the score on *select*, over the batches trained; the baseline is thick."""
    figure = new_figure("Score on select while training", "batches", f"{comparison.metric} on select")
    for number, row in enumerate(comparison.rows):
        histories = [outcome.history for outcome in comparison.outcomes if outcome.method == row.method]
        if not histories or not all(histories):
            continue  # as the probe, which is not trained
        batches, scores = _mean_curve(histories)
        figure.add_scatter(
            x=batches,
            y=scores,
            mode="lines" if len(scores) > 20 else "lines+markers",
            name=row.method,
            line={
                "color": mark(number)["color"],
                "width": 4 if row.method == comparison.baseline else 1.5,
                "dash": "solid" if number < len(PALETTE) else "dot",  # colours come again
            },
            marker={"size": 5},
            hovertemplate=f"{row.method}: %{{y:.3f}} after %{{x:.0f}} batches<extra></extra>",
        )
    near_scores(figure, "y")
    return figure


def _mean_curve(histories: Sequence[Sequence[Evaluation]]) -> tuple[list[float], list[float]]:
    """Means over seeds of batches and scores, as far as all seeds went (patience may stop some earlier)."""
    shortest = min(map(len, histories))
    batches = np.array([_batches_in_all(history)[:shortest] for history in histories])
    scores = np.array([[evaluation.score for evaluation in history[:shortest]] for history in histories])
    return batches.mean(axis=0).tolist(), scores.mean(axis=0).tolist()


def _batches_in_all(history: Sequence[Evaluation]) -> list[int]:
    """Batches since the start: within a phase they are counted from its own."""
    out: list[int] = []
    before = 0
    for index, evaluation in enumerate(history):
        if index and evaluation.phase != history[index - 1].phase:
            before = out[-1]
        out.append(before + evaluation.batches)
    return out
