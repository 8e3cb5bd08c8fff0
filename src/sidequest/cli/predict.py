"""sidequest predict: apply exported models to a file."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from sidequest.cli.common import DeviceOption, JsonOption
from sidequest.cli.printing import print_data
from sidequest.formatting import fixed

NAME = "predict"
HELP = (
    "Predict the rows of a file with an exported model; several models vote as an ensemble.\n\n"
    "The file has the columns of the training file. If it has labels too, the predictions are scored.\n\n"
    "Writes the row's number, its inputs and the prediction, as csv, jsonl or parquet by the suffix of -o.\n\n"
    "Example: sidequest predict runs/heu-size/model new.csv -o predictions.csv\n\n"
    "Example: sidequest predict runs/seed-*/model new.csv -o predictions.jsonl --probabilities --keep url"
)
NEEDS_ARGUMENTS = True


@contextmanager
def _without_collection() -> Iterator[None]:
    """Imports make many objects and no garbage: looking for some takes a tenth of what predicting a few rows takes."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def command(
    paths: Annotated[list[Path], typer.Argument(metavar="MODEL... FILE", help="Model directories, then the file.")],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Where to; default: standard output, as csv.")] = None,
    probabilities: Annotated[
        bool, typer.Option("--probabilities", help="Write a probability for every class, label, tag or choice.")
    ] = False,
    keep: Annotated[
        list[str] | None, typer.Option("--keep", help="A column of the file to copy, such as an id. May be repeated.")
    ] = None,
    inputs: Annotated[bool, typer.Option("--inputs/--no-inputs", help="Whether to copy the model's inputs.")] = True,
    factory: Annotated[
        str | None, typer.Option("--factory", help="For a custom model: the function that builds it, file.py:function.")
    ] = None,
    as_json: JsonOption = False,
    device: DeviceOption = None,
) -> None:
    import json

    from sidequest.errors import SettingsError
    from sidequest.files import write_atomically

    with _without_collection():
        from sidequest.runs.predicting import as_bytes, as_csv, check_format, predict_file

    if len(paths) < 2:
        raise SettingsError("predict takes at least one model directory and a file, in this order")
    suffix = check_format(out)
    with _without_collection():
        import sidequest.models.predictor  # noqa: F401  torch, two thirds of what a few rows take
    predicted = predict_file(paths[:-1], paths[-1], factory=factory)
    columns = predicted.columns(probabilities=probabilities, inputs=inputs, keep=keep or ())
    rows, scored = len(predicted.predictions), len(predicted.rows.labelled)
    if out is not None:
        write_atomically(out, as_bytes(columns, suffix, predicted.separator))
    if as_json:
        facts = {
            "rows": rows,
            "cut_rows": predicted.cut,
            "scored_rows": scored,
            "scores": predicted.scores,
            "unscored": predicted.rows.unscored,
        }
        written = {"predictions": columns} if out is None else {"file": str(out)}
        typer.echo(json.dumps(facts | written, indent=2, ensure_ascii=False))
        return
    if out is None:
        print_data(as_csv(columns, predicted.separator))
    else:
        typer.echo(f"{rows} rows written to {out}")
    # Beside predictions on standard output, what is said about them goes to the error stream.
    if predicted.scores is not None:
        scores = ", ".join(f"{name} {fixed(value, 4)}" for name, value in predicted.scores.items())
        typer.echo(f"{scores} ({'all' if scored == rows else scored} rows have labels)", err=out is None)
    if predicted.cut:
        typer.echo(
            f"warning: {predicted.cut} of {rows} texts are longer than what the model reads and were cut", err=True
        )
    if predicted.rows.unscored:
        typer.echo(f"not scored: {predicted.rows.unscored}", err=True)
