"""sidequest check: everything wrong with a suite, at once."""

from __future__ import annotations

from sidequest.cli.common import JsonOption, SuiteArgument

NAME = "check"
HELP = (
    "Validate a suite: columns, labels, targets, duplicates, and leaks between splits and tasks.\n\n"
    "Exit code 2 if something must be mended, 0 otherwise.\n\n"
    "Example: sidequest check suite.yaml"
)
NEEDS_ARGUMENTS = True


def command(suite: SuiteArgument, as_json: JsonOption = False) -> None:
    import json

    import typer

    from sidequest.tasks.check import check_suite

    report = check_suite(suite)
    if as_json:
        typer.echo(json.dumps(report.to_json(), indent=2))
    else:
        report.print()
    raise typer.Exit(2 if report.errors else 0)
