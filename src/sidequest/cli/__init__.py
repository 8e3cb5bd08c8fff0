"""The command line: one file per command. Heavy packages are imported inside the commands, so `--help` is instant."""

from __future__ import annotations

import contextlib
import functools
import io
import os
import re
import signal
import sys
import warnings
from collections.abc import Callable
from typing import Annotated, Any, NoReturn

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
from sidequest.cli.launching import end_with_launcher
from sidequest.errors import SidequestError, WorldError, of_the_world

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
        except KeyboardInterrupt as stopped:
            _stop(f" What is done is kept; to go on: {own_command()}" if resumes else "", _code(stopped))

    return run


class Terminated(KeyboardInterrupt):
    """SIGTERM, as a cluster or a shutdown sends it: the same as a Ctrl-C, but for the exit code."""


def _terminate(*_: object) -> None:
    raise Terminated


def _code(stopped: KeyboardInterrupt) -> int:
    return 143 if isinstance(stopped, Terminated) else 130


def _stop(hint: str, code: int) -> NoReturn:
    import multiprocessing

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for (
        worker
    ) in multiprocessing.active_children():  # also those that somebody has stopped, and would not hear anything else
        worker.kill()
    with contextlib.suppress(OSError, ValueError):  # nobody may be there to read it
        print(f"\nsidequest: stopped.{hint}", file=sys.stderr)
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)  # not `raise SystemExit`: Python would wait for worker processes to end what they are at


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


def _plain_warnings() -> None:
    """Warnings of this package as the sentences that they are, without a file of Python in front."""
    package, others = os.path.dirname(os.path.dirname(__file__)), warnings.showwarning

    def show(message: Warning | str, category: type[Warning], filename: str, *rest: Any) -> None:
        if filename.startswith(package):
            print(f"warning: {message}", file=sys.stderr)
        else:
            others(message, category, filename, *rest)

    warnings.showwarning = show  # type: ignore[assignment]


for module in COMMANDS:
    app.command(
        name=module.NAME,
        help=module.HELP,
        short_help=module.HELP.split("\n")[0].split(". ")[0].rstrip("."),  # without one it would be cut in the middle
        no_args_is_help=module.NEEDS_ARGUMENTS,
    )(_started(module.command, resumes=module in RESUMING))


@functools.cache
def _all_commands() -> Any:
    """Made once: reading the options of every command takes a tenth of a second, and some processes run many commands."""
    return typer.main.get_command(app)


def main() -> None:
    """Run the command line: 0 is success, 1 a failure, 2 bad input with one clear message and no traceback, 130 a Ctrl-C, 143 a
    SIGTERM."""
    end_with_launcher()
    _plain_warnings()
    with contextlib.suppress(ValueError):  # not in the main thread
        signal.signal(signal.SIGTERM, _terminate)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal that cannot show a character shows a question mark
            stream.reconfigure(errors="replace")
    try:
        _all_commands()()
    except SidequestError as error:
        _refuse(error)
    except (OSError, MemoryError) as error:
        _refuse(of_the_world(error))
    except RuntimeError as error:
        if not _of_another_process(error):
            raise
        _refuse(WorldError("another of the processes that train together has ended. What is done is kept"))
    except KeyboardInterrupt as stopped:  # before a command had started
        _stop("", _code(stopped))


def _of_another_process(error: RuntimeError) -> bool:
    """Whether torch says that a message from another process of the same training will not come."""
    from sidequest import ranks

    return ranks.size() > 1 and bool({"gloo", "nccl", "peer", "store"} & {*re.findall(r"[a-z]+", str(error).lower())})


def _refuse(error: SidequestError) -> NoReturn:
    print(f"sidequest: {error}", file=sys.stderr)
    raise SystemExit(error.exit_code) from None
