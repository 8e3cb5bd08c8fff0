"""Static SVG of simple figures, without a browser: lines with bands, markers and grouped bars.

Plotly draws in a browser, and `kaleido` brings one along. Pages of documentation need only a picture, so what the figures here
use of plotly is drawn directly. A kind of trace that is not known is refused: a picture that silently lacks a part would
mislead.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import plotly.graph_objects as go

from sidequest.report.style import PALETTE

LEFT, RIGHT, TOP, BOTTOM = 60, 20, 40, 80
INK = "#767676"  # readable on white and on black


@dataclass(frozen=True)
class _Plot:
    """The area that is drawn in, and how data reach it."""

    width: int
    height: int
    x: Callable[[Any], float]
    y: Callable[[float], float]


def can_draw(figure: go.Figure) -> bool:
    """Whether `to_svg` knows all that the figure has: scatter and grouped bar traces on one pair of axes, and straight lines."""
    layout = figure.layout
    plain = not layout.annotations and layout.barmode in (None, "group")
    shapes = all(shape.type == "line" and (shape.x0 == shape.x1 or shape.y0 == shape.y1) for shape in layout.shapes)
    return bool(figure.data) and plain and shapes and all(_is_known(trace) for trace in figure.data)


def _is_known(trace: Any) -> bool:
    if trace.type not in ("scatter", "bar") or trace.xaxis not in (None, "x") or trace.yaxis not in (None, "y"):
        return False
    if trace.error_x.array is not None or trace.error_y.array is not None:
        return False
    if trace.type == "bar":
        return trace.orientation != "h"
    return trace.line.shape in (None, "linear") and trace.fill in (None, "toself") and "text" not in (trace.mode or "")


def to_svg(figure: go.Figure, *, width: int = 800, height: int = 450) -> str:
    """The figure as the text of an SVG file."""
    traces = list(figure.data)
    if not can_draw(figure):
        found = sorted({trace.type for trace in traces})
        raise ValueError(
            f"to_svg draws plain scatter and bar traces on one pair of axes; found {found} or a finer point"
        )
    categories = _categories(traces)
    logarithmic = figure.layout.xaxis.type == "log"
    xs = [x for trace in traces for x in trace.x] if not categories else []
    levels = [float(shape.y0) for shape in figure.layout.shapes if shape.y0 == shape.y1]
    ys = [*(float(y) for trace in traces for y in trace.y), *levels]
    lowest = min([*ys, 0.0]) if any(trace.type == "bar" for trace in traces) else min(ys)
    y_ticks = nice_ticks(lowest, max(ys))
    y = _scale(min(y_ticks[0], lowest), max(y_ticks[-1], *ys), height - BOTTOM, TOP)
    if categories:
        slot = (width - LEFT - RIGHT) / len(categories)
        place = {name: LEFT + slot * (index + 0.5) for index, name in enumerate(categories)}
        plot = _Plot(width, height, place.__getitem__, y)
        x_ticks = [(place[name], str(name)) for name in categories]
    else:
        warp = math.log10 if logarithmic else float
        x_scale = _scale(min(map(warp, xs)), max(map(warp, xs)), LEFT, width - RIGHT)
        plot = _Plot(width, height, lambda value: x_scale(warp(value)), y)
        # The horizontal axis ends with the data, so a round number beyond them would stand outside the plot.
        inside = [value for value in nice_ticks(min(xs), max(xs)) if min(xs) <= value <= max(xs)]
        values = sorted(set(xs)) if logarithmic else inside
        x_ticks = [(plot.x(value), f"{value:g}") for value in values]
    parts = _frame(figure, plot, x_ticks, [(y(value), f"{value:g}") for value in y_ticks])
    for shape in figure.layout.shapes:
        across = shape.y0 == shape.y1
        x1, x2 = (LEFT, width - RIGHT) if across else (plot.x(shape.x0), plot.x(shape.x0))
        y1, y2 = (y(float(shape.y0)), y(float(shape.y0))) if across else (TOP, height - BOTTOM)
        parts.append(_line(x1, y1, x2, y2, INK, ' stroke-dasharray="3 4"'))
    named = [trace for trace in traces if trace.name is not None]
    for trace in traces:
        colour = _colour(trace, named)
        parts.append(_bars(trace, traces, plot, colour) if trace.type == "bar" else _curve(trace, plot, colour))
    parts.extend(_legend(named, plot))
    text = f'font-family="system-ui, sans-serif" font-size="13" fill="{INK}"'
    opening = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" {text}>'
    return "\n".join([opening, *parts, "</svg>"]) + "\n"


def nice_ticks(low: float, high: float, count: int = 6) -> list[float]:
    """About `count` round numbers that span [low, high]."""
    span = high - low or abs(high) or 1.0
    power = 10.0 ** math.floor(math.log10(span / count))
    step = power * next(factor for factor in (1, 2, 2.5, 5, 10) if factor * power * count >= span)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(index * step, 12) for index in range(first, last + 1)]


def _categories(traces: Sequence[Any]) -> list[str]:
    names = [x for trace in traces for x in trace.x if isinstance(x, str)]
    return list(dict.fromkeys(names))


def _scale(low: float, high: float, start: float, end: float) -> Callable[[float], float]:
    span = high - low or 1.0
    return lambda value: start + (value - low) / span * (end - start)


def _frame(
    figure: go.Figure, plot: _Plot, x_ticks: list[tuple[float, str]], y_ticks: list[tuple[float, str]]
) -> list[str]:
    layout, bottom = figure.layout, plot.height - BOTTOM
    parts = [_text(LEFT, 22, layout.title.text, size=16)]
    for place, label in y_ticks:
        parts += [_line(LEFT, place, plot.width - RIGHT, place, "#D0D0D0"), _text(LEFT - 8, place + 4, label, "end")]
    for place, label in x_ticks:
        parts.append(_text(place, bottom + 18, label, "middle"))
    parts.append(_line(LEFT, bottom, plot.width - RIGHT, bottom, INK))
    parts.append(_text((LEFT + plot.width - RIGHT) / 2, bottom + 38, layout.xaxis.title.text, "middle"))
    turned = f' transform="rotate(-90 14 {(TOP + bottom) / 2:.1f})"'
    parts.append(_text(14, (TOP + bottom) / 2, layout.yaxis.title.text, "middle", extra=turned))
    return parts


def _curve(trace: Any, plot: _Plot, colour: str) -> str:
    points = [(plot.x(x), plot.y(float(y))) for x, y in zip(trace.x, trace.y, strict=True)]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    if trace.fill == "toself":
        return f'<polygon points="{path}" fill="{escape(trace.fillcolor)}" stroke="none"/>'
    mode = trace.mode or "lines"
    line = f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>' if "lines" in mode else ""
    if "markers" in mode:
        line += "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>' for x, y in points)
    return line


def _bars(trace: Any, traces: Sequence[Any], plot: _Plot, colour: str) -> str:
    bars = [each for each in traces if each.type == "bar"]
    slot = (plot.width - LEFT - RIGHT) / len(_categories(traces))
    thick = 0.8 * slot / len(bars)
    shift = (bars.index(trace) - len(bars) / 2) * thick
    zero = plot.y(0.0)
    drawn = []
    for x, value in zip(trace.x, trace.y, strict=True):
        top = plot.y(float(value))
        box = f'x="{plot.x(x) + shift:.1f}" y="{min(top, zero):.1f}" width="{thick:.1f}" height="{abs(zero - top):.1f}"'
        drawn.append(f'<rect {box} fill="{colour}"/>')
    return "".join(drawn)


def _legend(named: Sequence[Any], plot: _Plot) -> list[str]:
    parts, place = [], float(LEFT)
    for trace in named:
        parts.append(
            _line(place, plot.height - 14, place + 18, plot.height - 14, _colour(trace, named), ' stroke-width="4"')
        )
        parts.append(_text(place + 24, plot.height - 10, trace.name))
        place += 44 + 7.5 * len(trace.name)
    return parts


def _colour(trace: Any, named: Sequence[Any]) -> str:
    given = trace.marker.color if trace.type == "bar" else trace.line.color
    if given is not None:
        return escape(str(given))
    index = next((place for place, each in enumerate(named) if each is trace), 0)
    return PALETTE[index % len(PALETTE)]


def _text(x: float, y: float, text: str | None, anchor: str = "start", size: int = 13, extra: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}"{extra}>{escape(text or "")}</text>'


def _line(x1: float, y1: float, x2: float, y2: float, colour: str, extra: str = "") -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"{extra}/>'
