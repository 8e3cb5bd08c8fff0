"""sidequest reproduce: the papers' experiments."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sidequest.cli.common import WorkersOption

NAME = "reproduce"
HELP = (
    "Repeat an experiment of the papers, at full or --small size. Without a name: the list.\n\n"
    "Example: sidequest reproduce bandit --small -o runs/bandit"
)
NEEDS_ARGUMENTS = False


def command(
    name: Annotated[str | None, typer.Argument(help="The experiment.")] = None,
    small: Annotated[bool, typer.Option("--small", help="A size that a laptop does in minutes.")] = False,
    data: Annotated[Path | None, typer.Option("--data", help="The directory with the benchmark files.")] = None,
    seeds: Annotated[
        int | None, typer.Option("--seeds", min=1, help="How many; default: the experiment's own.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Default: runs/reproduce-NAME.")] = None,
    workers: WorkersOption = None,
) -> None:
    from sidequest.cli.common import default_workers
    from sidequest.reproduce import EXPERIMENTS, Options, run

    if name is None:
        for each, what in EXPERIMENTS.items():
            typer.echo(f"{each:12} {what}")
        return
    out = out or Path("runs") / f"reproduce-{name}"
    run(name, Options(out, small, data, seeds, workers or default_workers()))
    typer.echo(f"written to {out}")
