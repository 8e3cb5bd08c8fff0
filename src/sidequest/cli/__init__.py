"""The command line: one file per command. Heavy packages are imported inside the commands, so `--help` is instant."""

from __future__ import annotations

import sys

import typer

from sidequest.cli import (
    check,
    compare,
    demo,
    export,
    fit,
    init,
    methods,
    oracle,
    predict,
    report,
    score,
    select,
    show,
    train,
    tune,
)
from sidequest.errors import SidequestError

app = typer.Typer(
    name="sidequest",
    help="Which auxiliary tasks should your model train with, how much of each, and did it help?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

COMMANDS = (
    demo,
    init,
    check,
    methods,
    tune,
    select,
    show,
    train,
    predict,
    compare,
    oracle,
    score,
    report,
    export,
    fit,
)
for module in COMMANDS:
    app.command(name=module.NAME, help=module.HELP, no_args_is_help=module.NEEDS_ARGUMENTS)(module.command)


def main() -> None:
    """Run the command line: 0 is success, 1 a failure, 2 bad input with one clear message and no traceback."""
    try:
        app()
    except SidequestError as error:
        print(f"sidequest: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        print("sidequest: stopped. What is done is kept; the same command continues.", file=sys.stderr)
        raise SystemExit(130) from None
