"""`--processes N`: one training in several processes of this machine."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

ProcessesOption = Annotated[
    int,
    typer.Option(
        "--processes",
        min=1,
        help="Processes that train one model together, each on its part of every batch; a GPU each, where there are any.",
    ),
]
FLAG = "--processes"


def check_alone(processes: int, workers: int | None, executor: str, tune: str | None) -> None:
    """Processes that train one model together are one worker."""
    from sidequest.cli.common import is_number
    from sidequest.errors import SettingsError

    if processes > 1 and ((workers or 1) > 1 or executor != "processes"):
        raise SettingsError("--processes: the processes train one model together; it goes with one worker")
    if processes > 1 and is_number(tune):
        raise SettingsError(
            f"--processes: tune first (sidequest tune --trainings {tune} -o tuning.json), and give its file"
        )


def launched(processes: int) -> bool:
    """Whether the command goes on in other processes, which have now ended well: this one is done. On several machines, start it
    with torchrun yourself."""
    from sidequest import ranks
    from sidequest.cli.launching import run_together

    if processes == 1 or ranks.size() > 1:
        return False
    if code := run_together([sys.executable, "-m", "sidequest", *_without_flag(sys.argv[1:])], processes):
        raise typer.Exit(code)
    return True


@contextmanager
def own_directory(directory: Path) -> Iterator[Path]:
    """The directory itself in the first process. In the others a copy of it, which is thrown away: all run the same program,
    and one writes. Trials and final trainings are kept apart from those of one process, which they equal up to rounding
    only."""
    from sidequest import ranks

    if ranks.size() == 1:
        yield directory
        return
    from sidequest.files import temporary_directory
    from sidequest.learning.torch.processes import group
    from sidequest.runs.luggage import pack, unpack

    with temporary_directory("rank") as place:
        os.environ["SIDEQUEST_CACHE"] = str(place / "cache")
        files = group().first(pack(directory) if ranks.is_first() and directory.is_dir() else {})
        if ranks.is_first():
            yield directory
            return
        sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - for as long as the process lives
        mine = place / "run"
        unpack(files, mine)
        yield mine


def _without_flag(arguments: list[str]) -> list[str]:
    kept: list[str] = []
    skip = False
    for argument in arguments:
        if skip or argument == FLAG:
            skip = not skip and argument == FLAG
            continue
        if not argument.startswith(f"{FLAG}="):
            kept.append(argument)
    return kept
