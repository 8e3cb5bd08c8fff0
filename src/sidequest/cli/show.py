"""sidequest show: the rows that a recipe takes, for a person to judge."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sidequest.cli.common import JsonOption, whole
from sidequest.errors import printable
from sidequest.formatting import signed

if TYPE_CHECKING:
    from sidequest.runs.showing import ShownRow, ShownTask

NAME = "show"
HELP = (
    "Show what a recipe takes: of each auxiliary task the best and the worst ranked rows (or rows taken and not taken), "
    "beside the primary's own.\n\n"
    "Example: sidequest show runs/similarity --count 5"
)
NEEDS_ARGUMENTS = True


def command(
    recipe: Annotated[Path, typer.Argument(help="A recipe file, or a run directory.")],
    suite: Annotated[str | None, typer.Option("--suite", help="The suite; a run directory knows its own.")] = None,
    count: Annotated[int, typer.Option("--count", parser=whole(1, 10**6), metavar="N", help="Rows of each kind.")] = 3,
    width: Annotated[
        int, typer.Option("--width", parser=whole(20, 10**6), metavar="N", help="Characters of a row's texts, at most.")
    ] = 200,
    as_json: JsonOption = False,
) -> None:
    import json

    from sidequest.runs.showing import examples_of
    from sidequest.runs.sources import open_source

    opened = open_source(recipe, suite, allow_code=True)  # builds no model
    loaded, setup = opened.recipe, opened.setup
    tasks = examples_of(setup.suite, loaded, count)
    if as_json:
        typer.echo(json.dumps([task.to_json() for task in tasks], indent=2, ensure_ascii=False))
        return
    typer.echo(plain(f"{loaded.method} for {loaded.primary}: {loaded.verdict or 'no verdict'}"))
    for note in loaded.evidence.get("notes", []):
        typer.echo(f"note: {plain(note)}")
    for task in tasks:
        _print(task, width)


def _print(task: ShownTask, width: int) -> None:
    role = "primary" if task.primary else "auxiliary"
    typer.echo(f"\n{plain(task.name)} ({role}): {task.taken:,} of {task.rows:,} train rows taken")
    for group in task.groups:
        typer.echo(f"  {plain(group.title)}")
        for row in group.rows:
            typer.echo(f"    {_line(row, width)}")


def _line(row: ShownRow, width: int) -> str:
    """Plain text, never markup: what a corpus holds must not be able to speak to the terminal."""
    score = "" if row.score is None else f"{signed(row.score)} "
    texts = " ‖ ".join(plain(text) if text.strip() else "(empty)" for text in row.texts.values())
    shown = texts if len(texts) <= width else texts[: width - 1] + "…"
    return f"{'*' if row.taken else ' '} {score}[{plain(row.target)[:40]}] {shown}  #{row.id}"


def plain(text: str) -> str:
    """One line without control characters (escape sequences, line breaks, text direction): each is shown by its code."""
    return printable(" ".join(text.split()))
