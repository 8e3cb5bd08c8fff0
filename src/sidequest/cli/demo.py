"""sidequest demo: the whole way on an embedded suite."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sidequest.cli.common import MOST_SEEDS, DeviceOption, WorkersOption, whole

NAME = "demo"
HELP = (
    "The whole way on an embedded suite of handwritten digits, in about two minutes on two cores.\n\n"
    "Example: sidequest demo -o runs/demo"
)
NEEDS_ARGUMENTS = False
METHODS = "auto,exp3s,heu-type"
# What makes it short: smaller batches, which score about as well on *select* in two thirds of the time, and no training longer
# than twice the primary's (docs/log/2026-11-18-demo.md).
SHORT = ["train.batch_size=16", "train.max_batches=1200"]


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
        f"To be short: {', '.join(SHORT)} (`compare digits` trains longer).\n"
    )
    compare(suite="digits", methods=METHODS, seeds=seeds, out=out, workers=workers, assignments=SHORT)
    typer.echo(
        "\nWith your own data:\n  sidequest init mine_train.csv other.csv -o suite.yaml\n  sidequest check suite.yaml"
    )
    typer.echo("  sidequest compare suite.yaml -m auto,heu-type --seeds 5")
