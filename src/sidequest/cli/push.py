"""sidequest push: a trained model to a model hub."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

NAME = "push"
HELP = (
    "Send an exported model with its card to a model hub (Hugging Face, or the one that HF_ENDPOINT names). The card says what "
    "the comparison found, the recipe, the data and the cost.\n\n"
    "A new repository is private unless you say --public. Log in first: `hf auth login`, or set HF_TOKEN.\n\n"
    "Example: sidequest push runs/best me/emotions\n\n"
    "Example: sidequest push runs/best me/emotions --dry-run"
)
NEEDS_ARGUMENTS = True


def command(
    model: Annotated[Path, typer.Argument(help="A model directory, or the run directory that it is in.")],
    repository: Annotated[str, typer.Argument(help="NAME or OWNER/NAME on the hub.")],
    public: Annotated[bool, typer.Option("--public", help="Make a new repository that everybody can see.")] = False,
    branch: Annotated[str | None, typer.Option("--branch", help="An existing branch; default: the main one.")] = None,
    message: Annotated[str, typer.Option("--message", help="Of the commit.")] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List what would be sent; send nothing.")] = False,
) -> None:
    from sidequest.runs.pushing import files_of, model_directory, push_model

    if dry_run:
        for name, size in files_of(model_directory(model)).items():
            typer.echo(f"{size:>12,}  {name}")
        typer.echo(f"dry run: these files would go to {repository}; nothing was sent")
        return
    pushed = push_model(model, repository, public=public, branch=branch, message=message)
    typer.echo(f"{len(pushed.files)} files: {pushed.url}")
