"""sidequest demo: the whole way on an embedded suite."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sidequest.cli.common import MOST_SEEDS, DeviceOption, WorkersOption, whole

NAME = "demo"
HELP = (
    "The whole way on an embedded suite of handwritten digits, in about six minutes on two cores.\n\n"
    "Example: sidequest demo -o runs/demo"
)
NEEDS_ARGUMENTS = False


def command(
    out: Annotated[Path, typer.Option("--out", "-o", help="Where to put the results.")] = Path("runs/demo"),
    seeds: Annotated[
        int, typer.Option("--seeds", parser=whole(2, MOST_SEEDS), metavar="N", help="How many seeds.")
    ] = 3,
    workers: WorkersOption = None,
    device: DeviceOption = None,
) -> None:
    from sidequest.cli.compare import command as compare

    typer.echo(
        "Primary: which digit is at the top left of a canvas with two handwritten digits (100 labels).\n"
        "Candidates: that digit's parity, whether it is at least 5, the other digit, the amount of ink,\n"
        "and the primary's own question with shuffled labels.\n"
        "Which of them should the model train with? Methods choose without seeing the report split.\n"
    )
    compare(suite="digits", methods="auto,heu-size,heu-type", seeds=seeds, out=out, workers=workers)
    typer.echo(
        "\nWith your own data:\n  sidequest init mine_train.csv other.csv -o suite.yaml\n  sidequest check suite.yaml"
    )
    typer.echo("  sidequest compare suite.yaml -m auto,heu-type --seeds 5")
