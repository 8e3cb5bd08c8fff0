"""sidequest report: the page of a run directory."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

NAME = "report"
HELP = (
    "Write the page of a run directory of `select`, `train` or `compare`: one HTML file that needs no network, and every "
    "table as csv.\n\n"
    "With --figures also every figure as a file, for papers; SVG and PNG need the extra `figures` and Chrome or Chromium.\n\n"
    "Example: sidequest report runs/compare --open\n\n"
    "Example: sidequest report runs/compare --figures svg,png"
)
NEEDS_ARGUMENTS = True


def command(
    directory: Annotated[Path, typer.Argument(help="A run directory.")],
    opened: Annotated[bool, typer.Option("--open", help="Show the page in the web browser.")] = False,
    figures: Annotated[str | None, typer.Option("--figures", help="svg, png, html; separated by commas.")] = None,
) -> None:
    from sidequest.report.images import parse_formats, save_figures
    from sidequest.report.page import TABLES, read_page, write_page

    formats = parse_formats(figures) if figures is not None else []
    path = write_page(directory)
    typer.echo(f"the page: {path}")
    typer.echo(f"tables: {directory / TABLES}")
    if formats:
        drawings = {name: each.figure for name, each in read_page(directory).all_drawings.items()}
        drawn = {name: figure for name, figure in drawings.items() if figure is not None}
        written, messages = save_figures(drawn, directory / "figures", formats)
        typer.echo(f"figures: {len(written)} files in {directory / 'figures'}")
        for message in messages:
            typer.echo(message, err=True)
    if opened:
        typer.launch(str(path))
