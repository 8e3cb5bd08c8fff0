"""Kinds of evidence that have a figure: what any method may leave in its recipe for the page, without knowing how it is drawn.

A recipe's evidence is a dictionary of what the method found. Its entry `figures` is a list of these kinds; `report/kinds.py` has
one function for each.

    Recipe(..., evidence={"figures": [Curves(title="Weights", x=[1, 2], lines={"a": [0.5, 0.7], "b": [0.5, 0.3]})]})
"""

from __future__ import annotations

from typing import Annotated, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, model_validator


class Figure(BaseModel):
    """Base of the kinds.

    Attributes:
        title: What it shows.
        caption: How to read it, one or two sentences.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    title: str
    caption: str = ""


class Additions(Figure):
    """The score as candidates are added one after another.

    Attributes:
        title: What it shows.
        caption: How to read it, one or two sentences.
        steps: The candidates in their order.
        scores: The score without any, then with the first, the first two, and so on.
    """

    kind: Literal["additions"] = "additions"
    title: str = "Score on select as candidates are added"
    caption: str = "Candidates are added from left to right; the set with the highest score is kept (filled)."
    steps: tuple[str, ...]
    scores: tuple[float, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if len(self.scores) > len(self.steps) + 1:
            raise ValueError(
                f"{len(self.steps)} steps have at most {len(self.steps) + 1} scores, found {len(self.scores)}"
            )
        return self


class Curves(Figure):
    """Lines over a common x.

    Attributes:
        title: What it shows.
        caption: How to read it, one or two sentences.
        x: The common x.
        lines: By name, a y for each x.
        x_label: The title of the x axis.
        y_label: The title of the y axis.
        level: A dotted line across, at this y.
        mark: A dotted line upright, at this x.
    """

    kind: Literal["curves"] = "curves"
    x: tuple[float, ...]
    lines: dict[str, tuple[float, ...]] = Field(min_length=1)
    x_label: str = ""
    y_label: str = ""
    level: float | None = None
    mark: float | None = None

    @model_validator(mode="after")
    def _fits(self) -> Self:
        return _equally_long(self, self.x, self.lines)


class Bars(Figure):
    """A bar for each name, side by side for several groups.

    Attributes:
        title: What it shows.
        caption: How to read it, one or two sentences.
        groups: Of each group, values by name.
        y_label: The title of the y axis.
    """

    kind: Literal["bars"] = "bars"
    groups: dict[str, dict[str, float]] = Field(min_length=1)
    y_label: str = ""


class Matrix(Figure):
    """A grid of numbers with names at its sides.

    Attributes:
        title: What it shows.
        caption: How to read it, one or two sentences.
        rows: Names of the rows, from the top.
        columns: Names of the columns.
        values: The numbers, row by row.
        low: Where the colour scale begins; below 0 it has two colours.
        high: Where the colour scale ends.
        x_label: The title of the x axis.
        y_label: The title of the y axis.
    """

    kind: Literal["matrix"] = "matrix"
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: tuple[tuple[float, ...], ...]
    low: float = 0.0
    high: float = 1.0
    x_label: str = ""
    y_label: str = ""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if len(self.values) != len(self.rows) or any(len(row) != len(self.columns) for row in self.values):
            raise ValueError(f"values are {len(self.rows)} rows of {len(self.columns)}")
        return self


class Histograms(Figure):
    """How rows of tasks are spread over a score.

    Attributes:
        title: What it shows.
        caption: How to read it, one or two sentences.
        bins: The edges of the bins.
        counts: By task, how many rows are in each bin.
        threshold: A dotted line at this score.
        x_label: The title of the x axis.
    """

    kind: Literal["histograms"] = "histograms"
    bins: tuple[float, ...] = Field(min_length=2)
    counts: dict[str, tuple[float, ...]]
    threshold: float | None = None
    x_label: str = ""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        return _equally_long(self, self.bins[1:], self.counts)


class Points(Figure):
    """Rows of tasks on a plane.

    Attributes:
        title: What it shows.
        caption: How to read it, one or two sentences.
        points: By task, (x, y) of each row.
        x_label: The title of the x axis.
        y_label: The title of the y axis.
    """

    kind: Literal["points"] = "points"
    points: dict[str, tuple[tuple[float, float], ...]]
    x_label: str = ""
    y_label: str = ""


Kind = TypeVar("Kind", bound=Figure)


def _equally_long(figure: Kind, x: tuple[float, ...], lines: dict[str, tuple[float, ...]]) -> Kind:
    for name, values in lines.items():
        if len(values) != len(x):
            raise ValueError(f"{name!r} has {len(values)} values for {len(x)} places")
    return figure


Shown = Annotated[Additions | Curves | Bars | Matrix | Histograms | Points, Field(discriminator="kind")]
