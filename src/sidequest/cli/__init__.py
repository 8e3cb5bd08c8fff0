"""The command line: one file per command. Heavy packages are imported inside the commands, so `--help` is instant."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from typing import Annotated, Any

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
    push,
    report,
    score,
    select,
    show,
    train,
    tune,
)
from sidequest.cli.arguments import own_command
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
    push,
    fit,
)
RESUMING = (tune, select, train, compare, oracle, score)  # a stopped one goes on where it was


def _print_version(asked: bool) -> None:
    if asked:
        from sidequest.version import __version__

        typer.echo(f"sidequest {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Options of no command in particular."""


def _started(command: Callable[..., None], *, resumes: bool) -> Callable[..., None]:
    """The command, with a word about how to go on when it is stopped."""

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        _keep_pandas_out()
        try:
            command(*args, **kwargs)
        except KeyboardInterrupt:
            hint = f" What is done is kept; to go on: {own_command()}" if resumes else ""
            print(f"\nsidequest: stopped.{hint}", file=sys.stderr)
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(130)  # not `raise SystemExit`: Python would wait for worker processes to end what they are at

    return run


class _NoPandas:
    """An import hook by which pandas cannot be found."""

    def find_spec(self, name: str, *_: object) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(name=name)


def _keep_pandas_out() -> None:
    """pyarrow imports pandas, half a second, to know a Series when it sees one; no command shows it any."""
    if "pyarrow" in sys.modules or "pandas" in sys.modules:
        return
    import pyarrow

    hook: Any = _NoPandas()
    sys.meta_path.insert(0, hook)
    try:
        pyarrow.array([])  # here pyarrow looks for pandas, once and for all
    finally:
        sys.meta_path.remove(hook)


for module in COMMANDS:
    app.command(name=module.NAME, help=module.HELP, no_args_is_help=module.NEEDS_ARGUMENTS)(
        _started(module.command, resumes=module in RESUMING)
    )


def main() -> None:
    """Run the command line: 0 is success, 1 a failure, 2 bad input with one clear message and no traceback, 130 a Ctrl-C."""
    try:
        app()
    except SidequestError as error:
        print(f"sidequest: {error}", file=sys.stderr)
        raise SystemExit(2) from None
