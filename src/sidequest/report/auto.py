"""The figure of `auto`: each candidate's short runs beside the primary alone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import plotly.graph_objects as go

from sidequest.records.evidence import AutoRound, RoundArm
from sidequest.report.style import PALETTE, new_figure

CONTROL = "#7F7F7F"
CONTROLS = ("single", "longer", "permuted", "read-out")
# Round factors on a likelihood, finest first.
FACTORS = (
    tuple(1 + step / 1000 for step in range(-50, 51, 5)),
    tuple(1 + step / 100 for step in range(-50, 101, 2)),
    tuple(1 + step / 100 for step in range(-50, 201, 5)),
    tuple(1 + step / 100 for step in range(-90, 301, 10)),
    (0.5, 0.75, 1, 1.25, 1.5, 2),
    (0.25, 0.5, 1, 2, 4),
    tuple(10.0**power for power in range(-6, 7)),
)
TITLES = {
    "probe": "Each candidate against the primary alone",
    "confirm": "Those that gained, again with another seed",
    "shares": "How much of them",
    "rows": "Which of their rows",
    "guard": "The choice against the primary alone, at length",
}


def probes(shown: AutoRound, chosen: Sequence[str] = ()) -> go.Figure:
    """Gains over the primary alone in one round, the best at the top; controls are grey, and the highest of them is a line.

    A gain in the log-likelihood is drawn where it is, and its axis says what factor on the likelihood it is.
    """
    arms = sorted(shown.arms, key=lambda arm: arm.gain)
    controls = [arm for arm in arms if arm.kind in CONTROLS]
    tried = [arm for arm in arms if arm.kind not in CONTROLS]
    single = shown.stage in ("probe", "confirm")  # one candidate in each run: which of them the answer has
    taken = [arm for arm in tried if arm.arm in chosen] if single else tried
    figure = new_figure(TITLES.get(shown.stage, shown.stage), "right answers: times as likely")
    for name, part, look in (
        ("chosen" if single else "with auxiliaries", taken, {"color": PALETTE[1], "symbol": "circle"}),
        ("not chosen", [arm for arm in tried if arm not in taken], {"color": PALETTE[1], "symbol": "circle-open"}),
        ("controls", controls, {"color": CONTROL, "symbol": "diamond"}),
    ):
        if part:
            figure.add_trace(_dots(name, part, look))
    if controls:
        figure.add_vline(x=max(arm.gain for arm in controls), line={"dash": "dot", "color": CONTROL})
    figure.update_yaxes(
        type="category", categoryorder="array", categoryarray=[arm.arm for arm in arms], automargin=True
    )
    _factors(figure, [end for arm in arms for end in (arm.gain - arm.error, arm.gain + arm.error)])
    figure.update_layout(height=140 + 32 * len(arms))
    return figure


def _dots(name: str, arms: Sequence[RoundArm], look: Mapping[str, str]) -> go.Scatter:
    return go.Scatter(
        x=[arm.gain for arm in arms],
        y=[arm.arm for arm in arms],
        error_x={"array": [arm.error for arm in arms], "thickness": 1},
        mode="markers",
        name=name,
        marker={**look, "size": 9},
        customdata=[math.exp(arm.gain) for arm in arms],
        hovertemplate="%{y}: %{customdata:.3f} times as likely (%{x:+.4f} in the log-likelihood)<extra></extra>",
    )


def _factors(figure: go.Figure, gains: Sequence[float]) -> None:
    """Ticks at round factors, few enough for a phone: the finest set that has at most five of them there."""
    low, high = min(0.0, *gains), max(0.0, *gains)
    edge = 0.05 * (high - low) or 0.05
    for factors in FACTORS:
        inside = [factor for factor in factors if low - edge <= math.log(factor) <= high + edge]
        if len(inside) <= 5:
            break
    figure.update_xaxes(
        tickvals=[math.log(factor) for factor in inside],
        ticktext=[f"{factor:g}×" for factor in inside],
        range=[low - edge, high + edge],
    )
