"""The shared look of all figures, and how they are saved."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

# Okabe and Ito's palette: distinct for colour-blind readers, in print and on a dark page. The primary is always the first.
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#8C8C00", "#7F7F7F", "#A05A2C")
PRIMARY = PALETTE[0]
# Eight, beside nine colours: pairs repeat only after seventy-two.
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "star", "x", "pentagon")
Values = Sequence[float] | np.ndarray
FILE_TEMPLATE = "plotly_white"
# Of interactive figures: plotly's own toolbar would offer to upload them.
CONFIG = {"displaylogo": False, "plotlyServerURL": "", "modeBarButtonsToRemove": ["sendChartToCloud"]}


def new_figure(title: str, x: str = "", y: str = "") -> go.Figure:
    """An empty figure in the house style: transparent, so that it sits on a light or a dark page.

    It has no template: the page has its own, and files get `FILE_TEMPLATE`. Plotly's own takes a third of a second per figure.
    """
    figure = go.Figure(layout={"template": go.layout.Template()})
    figure.update_layout(
        title={"text": title, "x": 0, "xanchor": "left", "pad": {"l": 10}},
        xaxis_title=x,
        yaxis_title=y,
        colorway=list(PALETTE),
        font={"family": "system-ui, sans-serif", "size": 13},
        margin={"l": 60, "r": 20, "t": 50, "b": 50},
        legend={"orientation": "h", "y": -0.2},
    )
    return figure


def mark(number: int) -> dict[str, str]:
    """Colour and symbol of the n-th of many points, for a legend: labels beside points would lie on each other."""
    return {"color": PALETTE[number % len(PALETTE)], "symbol": SYMBOLS[number % len(SYMBOLS)]}


def cost_axis(figure: go.Figure, most: float) -> None:
    """An axis for 1 + x, logarithmic, with ticks that say x: the cheapest methods cost nothing. most: the largest x."""
    fine, coarse = (0, 1, 2, 3, 5), (0, 1, 3, 10, 30, 100, 300, 1000)  # few enough for a phone
    ticks = [tick for tick in (fine if most <= 6 else coarse) if tick <= max(most, 1)]
    if 1 + most > 1.8 * (1 + ticks[-1]):  # the right half of the axis would have no number
        ticks.append(math.floor(most))
    figure.update_xaxes(
        type="log",
        tickvals=[1 + tick for tick in ticks],
        ticktext=[f"{tick}x" for tick in ticks],
        range=[-0.05, math.log10(1 + max(most, 1)) + 0.06],
    )


def near_scores(figure: go.Figure, axis: str) -> None:
    """Where all scores are the same, an axis close to them: plotly's would go from one below to one above, as if there were
    an accuracy of two."""
    values = [value for trace in figure.data for value in (trace[axis] or ())]
    if values and min(values) == max(values):
        figure.update_layout({f"{axis}axis": {"range": [values[0] - 0.1, values[0] + 0.1]}})


def add_band(figure: go.Figure, x: Values, low: Values, high: Values, colour: str) -> None:
    """A faint area between two curves, such as the range over seeds, without an entry in the legend."""
    red, green, blue = (int(colour[start : start + 2], 16) for start in (1, 3, 5))
    figure.add_scatter(
        x=[*x, *x[::-1]],
        y=[*high, *low[::-1]],
        fill="toself",
        fillcolor=f"rgba({red}, {green}, {blue}, 0.15)",
        line={"width": 0},
        hoverinfo="skip",
        showlegend=False,
    )
