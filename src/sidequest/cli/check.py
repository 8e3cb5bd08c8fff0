"""sidequest check: everything wrong with a suite, at once."""

from __future__ import annotations

from typing import Annotated

import typer

from sidequest.cli.common import JsonOption, SuiteArgument

NAME = "check"
HELP = (
    "Validate a suite: columns, labels, targets, duplicates, and leaks between splits and tasks.\n\n"
    "Exit code 2 if something must be fixed, 0 otherwise.\n\n"
    "Example: sidequest check suite.yaml\n\n"
    "Example: sidequest check suite.yaml --rows  (every repeated, leaked, empty or long row, not only the first)"
)
NEEDS_ARGUMENTS = True


def command(
    suite: SuiteArgument,
    rows: Annotated[bool, typer.Option("--rows", help="List every row that a warning is about.")] = False,
    as_json: JsonOption = False,
) -> None:
    import json

    from sidequest.models.token_limit import section_limit
    from sidequest.tasks.check import check_suite

    report = check_suite(suite, rows=rows or as_json, limit=section_limit)
    if as_json:
        typer.echo(json.dumps(report.to_json(), indent=2))
    else:
        report.print()
        if not report.errors:
            warnings = f"{len(report.warnings)} warning{'' if len(report.warnings) == 1 else 's'}"
            typer.echo(
                f"no errors, {warnings if report.warnings else 'no warnings'}; next: sidequest select {suite} -o runs/mine"
            )
    raise typer.Exit(2 if report.errors else 0)
