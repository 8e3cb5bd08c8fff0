"""sidequest fit: learn from runs made elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sidequest.cli.common import JsonOption

if TYPE_CHECKING:
    from sidequest.records.fits import FitRecord

NAME = "fit"
HELP = (
    "Learn from training runs made with any trainer: a table of sets or mixtures and their scores gives what each auxiliary "
    "adds, the best mixture, a verdict with intervals, and what to run next. No model is trained.\n\n"
    "One row is one run. Columns: a score; `seed` if runs share one; and for each auxiliary how much of it was used "
    "relative to the primary (0 and 1 for sets), or a column `tasks` such as pos+ner. Names of runs, losses and times are left "
    "out.\n\n"
    "Example: sidequest fit runs.csv --score accuracy -o runs/fit"
)
NEEDS_ARGUMENTS = True


def command(
    table: Annotated[Path, typer.Argument(help="csv, tsv, jsonl or parquet: one row for each training run.")],
    score: Annotated[str | None, typer.Option("--score", help="The column of the score; higher is better.")] = None,
    block: Annotated[str | None, typer.Option("--block", help="The column that says which runs share a seed.")] = None,
    primary: Annotated[
        str | None, typer.Option("--primary", help="A column with the primary's own amount; others are divided by it.")
    ] = None,
    tasks: Annotated[
        str | None,
        typer.Option(
            "--tasks", help="The columns of the auxiliaries, separated by commas. Default: all other numbers."
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="A directory for fit.json and the page.")] = None,
    as_json: JsonOption = False,
) -> None:
    from sidequest.paths import check_output_directory
    from sidequest.runs.fitting import fit_runs
    from sidequest.runs.run_table import read_runs

    if out is not None:
        check_output_directory(out)
    named = [name.strip() for name in tasks.split(",") if name.strip()] if tasks is not None else None
    record = fit_runs(read_runs(table, score=score, block=block, primary=primary, tasks=named))
    if out is not None:
        record.write(out)
    if as_json:
        typer.echo(record.model_dump_json(indent=2))
    else:
        _print(record)
    if out is not None:
        from sidequest.report.page import write_page

        page = write_page(out)
        if not as_json:
            typer.echo(f"the page: {page}")


def _print(record: FitRecord) -> None:
    from rich.console import Console

    from sidequest.cli.printing import Column, print_table
    from sidequest.formatting import between, fixed, signed

    effects = sorted(record.effects, key=lambda one: -one.effect.value)
    columns = [
        Column("auxiliary", [one.task for one in effects], right=False),
        Column("effect", [signed(one.effect.value) for one in effects]),
        Column("95 % interval", [between(one.effect.low, one.effect.high) for one in effects]),
        Column("runs", [str(one.runs) for one in effects]),
    ]
    title = f"What each auxiliary adds to {record.score}, {record.effect_words} ({record.form}, {record.runs} runs)"
    print_table(Console(), title, columns)
    typer.echo(
        f"the primary alone: {fixed(record.alone.value)}, {fixed(record.alone.low)} to {fixed(record.alone.high)}"
    )
    typer.echo(record.verdict)
    if record.left_out:
        typer.echo(
            f"no auxiliaries, by their names or values: {', '.join(record.left_out)}; --tasks names the auxiliaries"
        )
    for warning in record.warnings:
        typer.echo(f"warning: {warning}")
    following = "; ".join(f"{one.name} (best with a chance of {one.chance:.0%})" for one in record.next)
    typer.echo(f"run next: {following}")
