"""sidequest export: a recipe in another trainer's format."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

NAME = "export"
HELP = (
    "Write a recipe for another trainer: interleave (arguments of datasets.interleave_datasets), jsonl, parquet, "
    "machamp, axolotl, trl, llama-factory or sentence-transformers.\n\n"
    "Example: sidequest export runs/heu-size/recipe.json --to jsonl --suite suite.yaml -o export"
)
NEEDS_ARGUMENTS = True


def command(
    recipe: Annotated[Path, typer.Argument(help="A recipe file, or a run directory.")],
    to: Annotated[
        str,
        typer.Option(
            "--to", help="interleave, jsonl, parquet, machamp, axolotl, trl, llama-factory, sentence-transformers."
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The directory to write into.")] = Path("export"),
    suite: Annotated[str | None, typer.Option("--suite", help="The suite; a run directory knows its own.")] = None,
) -> None:
    from sidequest.paths import check_output_directory
    from sidequest.runs.exports import export_recipe
    from sidequest.runs.sources import open_source

    check_output_directory(out)
    opened = open_source(recipe, suite, allow_code=True)  # builds no model
    written, notes = export_recipe(opened.recipe, opened.setup.suite, to, out, opened.setup.train)
    for path in written:
        typer.echo(str(path))
    for note in notes:
        typer.echo(f"note: {note}")
