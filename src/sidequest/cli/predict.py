"""sidequest predict: apply exported models to a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sidequest.cli.common import DeviceOption

NAME = "predict"
HELP = (
    "Predict the rows of a file with an exported model; several models vote as an ensemble.\n\n"
    "The file has the columns of the training file (the label may be missing). Writes csv, or jsonl by the suffix of -o.\n\n"
    "Example: sidequest predict runs/heu-size/model new.csv -o predictions.csv\n\n"
    "Example: sidequest predict runs/seed-*/model new.csv -o predictions.jsonl"
)
NEEDS_ARGUMENTS = True


def command(
    paths: Annotated[list[Path], typer.Argument(metavar="MODEL... FILE", help="Model directories, then the file.")],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Where to; default: standard output, as csv.")] = None,
    factory: Annotated[
        str | None, typer.Option("--factory", help="For a custom model: the function that builds it, file.py:function.")
    ] = None,
    device: DeviceOption = None,
) -> None:
    from sidequest.cli.common import write_out
    from sidequest.errors import SettingsError
    from sidequest.runs.predicting import as_csv, as_jsonl, predict_file

    if len(paths) < 2:
        raise SettingsError("predict takes at least one model directory and a file, in this order")
    rows = predict_file(paths[:-1], paths[-1], factory=factory)
    write_out(out, as_jsonl(rows) if out is not None and out.suffix == ".jsonl" else as_csv(rows))
    if out is not None:
        typer.echo(f"{len(rows)} rows written to {out}")
