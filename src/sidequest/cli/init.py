"""sidequest init: a suite file from data files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

NAME = "init"
HELP = (
    "Write a suite file from data files: objectives, columns and metrics are guessed, and you edit them.\n\n"
    "Example: sidequest init reviews_train.csv reviews_test.csv other.jsonl --primary reviews -o suite.yaml"
)
NEEDS_ARGUMENTS = True


def command(
    data: Annotated[list[Path], typer.Argument(help="Data files or directories.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The suite file to write.")] = Path("suite.yaml"),
    primary: Annotated[
        str | None, typer.Option("--primary", help="The task to improve; default: the smallest.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
) -> None:
    from sidequest.errors import SettingsError
    from sidequest.files import write_atomically
    from sidequest.paths import check_output_file
    from sidequest.tasks.guessing import guess_suite

    check_output_file(out)
    if out.exists() and not force:
        raise SettingsError(f"{out}: exists already; --force overwrites it")
    text, notes = guess_suite(data, primary=primary, relative_to=out.parent)
    write_atomically(out, text.encode())
    for note in notes:
        typer.echo(note)
    typer.echo(f"written to {out}; look it over, then: sidequest check {out}")
