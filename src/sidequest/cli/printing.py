"""Tables that fit any terminal without cutting a word or a number: columns that have no room go on in a table below."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from sidequest.errors import printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

WIDE, TIGHT = (0, 1), (0, 1, 0, 0)  # padding, tried in this order


@dataclass(frozen=True)
class Column:
    """One column of texts. wraps: free text, which may go over several lines; anything else is kept whole."""

    title: str
    cells: Sequence[str]
    right: bool = True
    wraps: bool = False


def print_table(
    console: Console, title: str, columns: Sequence[Column], *, caption: str = "", keep: int = 1, narrowest: int = 24
) -> None:
    """Print rows of texts. The first column names the rows and comes again in every part; the first `keep` columns stay
    together as long as there is room for them. narrowest: the room that a column of free text needs at least."""
    parts = _parts(console, list(columns), keep, narrowest)
    padding = WIDE if len(parts) == 1 and _width(console, parts[0], WIDE, narrowest) <= console.width else TIGHT
    for number, part in enumerate(parts):
        heading = title if number == 0 else f"{title} (continued)" if title else "(continued)"
        if heading:
            console.print(printable(heading), style="italic", markup=False, highlight=False)
        console.print(_made(part, padding))
        if padding is TIGHT:
            console.print()
    if caption:
        console.print(printable(caption), style="dim", markup=False, highlight=False)


def print_data(text: str) -> None:
    """Data of a file on standard output: as they are for a program that reads on, as plain text for a person."""
    typer.echo(printable(text) if sys.stdout.isatty() else text, nl=False)


def _parts(console: Console, columns: list[Column], keep: int, narrowest: int) -> list[list[Column]]:
    """The columns in groups that fit, each after the first column."""
    if _width(console, columns, TIGHT, narrowest) <= console.width:
        return [columns]
    first, rest = columns[0], columns[1:]
    kept = [rest[: keep - 1], *([column] for column in rest[keep - 1 :])] if keep > 1 else [[one] for one in rest]
    if _width(console, [first, *kept[0]], TIGHT, narrowest) > console.width:
        kept = [[one] for one in rest]
    parts: list[list[Column]] = [[first]]
    for group in kept:
        longer = [*parts[-1], *group]
        if len(parts[-1]) == 1 or _width(console, longer, TIGHT, narrowest) <= console.width:
            parts[-1] = longer
        else:
            parts.append([first, *group])
    return parts


def _width(console: Console, columns: Sequence[Column], padding: tuple[int, ...], narrowest: int) -> int:
    """What a group of columns needs; free text can do with little."""
    narrow = [
        Column(one.title, [cell[:narrowest] for cell in one.cells], one.right) if one.wraps else one for one in columns
    ]
    options = console.options.update(max_width=100_000)
    return console.measure(_made(narrow, padding), options=options).maximum


def _made(columns: Sequence[Column], padding: tuple[int, ...]) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, padding=padding, show_edge=padding is WIDE)  # type: ignore[arg-type]
    for index, one in enumerate(columns):
        # A name that is wider than the whole window is folded; nothing is ever replaced by dots.
        table.add_column(
            one.title, justify="right" if one.right else "left", no_wrap=index > 0 and not one.wraps, overflow="fold"
        )
    for row in zip(*(one.cells for one in columns), strict=True):
        table.add_row(*(Text(printable(cell)) for cell in row))
    return table
