"""The figure of `auto`: each candidate's short runs beside the primary alone."""

from __future__ import annotations

import plotly.graph_objects as go

from sidequest.records.evidence import AutoRound
from sidequest.report.style import PALETTE, new_figure

CONTROL = "#7F7F7F"
TITLES = {
    "probe": "Each candidate against the primary alone",
    "confirm": "Those that gained, again with another seed",
    "shares": "How much of them",
    "rows": "Which of their rows",
    "guard": "The choice against the primary alone, at length",
}


def probes(shown: AutoRound) -> go.Figure:
    """Gains over the primary alone in one round, the best at the top; controls are grey, and the highest of them is a line."""
    arms = sorted(shown.arms, key=lambda arm: arm.gain)
    controls = [arm for arm in arms if arm.kind in ("single", "longer", "permuted", "read-out")]
    figure = new_figure(TITLES.get(shown.stage, shown.stage), "gain in log-likelihood")
    for name, part, colour in (
        ("candidates", [arm for arm in arms if arm not in controls], PALETTE[1]),
        ("controls", controls, CONTROL),
    ):
        figure.add_trace(
            go.Scatter(
                x=[arm.gain for arm in part],
                y=[arm.arm for arm in part],
                error_x={"array": [arm.error for arm in part], "thickness": 1},
                mode="markers",
                name=name,
                marker={"color": colour, "size": 9, "symbol": "circle" if name == "candidates" else "diamond"},
                hovertemplate="%{y}: %{x:.4f}<extra></extra>",
            )
        )
    if controls:
        figure.add_vline(x=max(arm.gain for arm in controls), line={"dash": "dot", "color": CONTROL})
    figure.update_yaxes(
        type="category", categoryorder="array", categoryarray=[arm.arm for arm in arms], automargin=True
    )
    figure.update_layout(height=140 + 32 * len(arms))
    return figure
