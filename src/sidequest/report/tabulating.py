"""Tables of the page: what is shown, and the same as csv with the numbers in full."""

from __future__ import annotations

import base64
import csv
import io
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from markupsafe import Markup, escape

from sidequest.formatting import UNKNOWN, plain, without_minus_zero
from sidequest.records.comparisons import Difference


@dataclass(frozen=True)
class Cell:
    """text: as shown. values: for the csv, one for each of the column's csv names. graphic: drawn instead of the text."""

    text: str
    values: tuple[Any, ...]
    style: str = ""
    graphic: Markup | None = None


@dataclass(frozen=True)
class ShownColumn:
    """numeric columns are aligned right. csv: the names of its columns in the csv; default: the title. kind: a class for its
    cells, as `glyph`, which a narrow page leaves out."""

    title: str
    numeric: bool = False
    csv: tuple[str, ...] | None = None
    hint: str = ""
    kind: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        return self.csv if self.csv is not None else (self.title,)


@dataclass(frozen=True)
class ShownTable:
    name: str
    columns: Sequence[ShownColumn]
    rows: Sequence[Sequence[Cell]] = field(default_factory=list)
    note: str = ""

    def to_csv(self) -> str:
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([name for column in self.columns for name in column.names])
        writer.writerows([[value for cell in row for value in cell.values] for row in self.rows])
        return file.getvalue()

    @property
    def csv_uri(self) -> str:
        return "data:text/csv;charset=utf-8;base64," + base64.b64encode(self.to_csv().encode()).decode("ascii")


def text(value: Any, style: str = "") -> Cell:
    return Cell(str(value), (value,), style)


def number(value: float | None, form: str = ".3f", unit: str = "", style: str = "") -> Cell:
    """A number as shown, and in full for the csv; what is not finite is unknown."""
    if value is None or not math.isfinite(value):
        return Cell(UNKNOWN, ("",), style)
    return Cell(with_minus(without_minus_zero(format(value, form))) + unit, (plain(value),), style)


def with_minus(shown: str) -> str:
    """With a real minus sign before numbers, which is as wide as a plus."""
    return re.sub(r"(?<![\w.)])-(?=[\d.])", "−", shown)


def with_code(shown: str) -> Markup:
    """A sentence in which `this` is code; whatever else it holds is text."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(shown))))


def interval_glyph(difference: Difference, span: tuple[float, float], style: str) -> Markup:
    """A small picture of a difference on the scale `span`, with a line at 0: the interval over seeds is thick, the one over seeds
    and rows thin."""
    width, height, edge = 150, 18, 6

    def place(value: float) -> float:
        share = (value - span[0]) / ((span[1] - span[0]) or 1.0)
        return round(edge + min(max(share, 0.0), 1.0) * (width - 2 * edge), 1)

    def line(low: float, high: float, name: str) -> str:
        if not (math.isfinite(low) and math.isfinite(high)):
            return ""
        return f'<line x1="{place(low)}" x2="{place(high)}" y1="9" y2="9" class="whisker {name}"/>'

    zero = f'<line x1="{place(0)}" x2="{place(0)}" y1="0" y2="{height}" class="zero"/>'
    lines = line(*difference.interval, "thin") + line(difference.low, difference.high, "thick")
    return Markup(
        f'<svg class="interval {style}" viewBox="0 0 {width} {height}" width="{width}" height="{height}" aria-hidden="true">'
        f'{zero}{lines}<circle cx="{place(difference.mean)}" cy="9" r="4"/></svg>'
    )
