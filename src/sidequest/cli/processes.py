"""`--processes N`: one training in several processes of this machine."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from sidequest.cli.common import whole

MOST_PROCESSES = 128  # of one machine
ProcessesOption = Annotated[
    int,
    typer.Option(
        "--processes",
        parser=whole(1, MOST_PROCESSES),
        metavar="N",
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
    from sidequest.search.processes import DEVICE

    if processes == 1 or ranks.size() > 1:
        return False
    device = os.environ.get(DEVICE, "")
    check_device(device, processes)
    more = {"CUDA_VISIBLE_DEVICES": ""} if device == "cpu" else {}  # or torch would let GPUs talk that nobody uses
    command = [sys.executable, "-m", "sidequest", *_without_flag(sys.argv[1:])]
    if code := run_together(command, processes, more):
        raise typer.Exit(code)
    return True


def check_device(device: str, processes: int) -> None:
    """Refuse what several processes cannot compute on, before any is started. device: that was asked for, if any."""
    from sidequest.errors import SettingsError

    if device == "cpu":
        return
    if device not in ("", "cuda"):
        raise SettingsError(
            f"--processes: each process takes a GPU of its own, or all take the CPU: --device cuda or cpu, found {device!r}. "
            "CUDA_VISIBLE_DEVICES says which GPUs"
        )
    gpus = number_of_gpus()
    if gpus and processes > gpus:
        raise SettingsError(
            f"--processes {processes}: each process takes a GPU of its own, and there are {gpus}; give at most {gpus}, or "
            "--device cpu"
        )


def number_of_gpus() -> int:
    """CUDA's; torch is asked only where there is a driver."""
    if not os.path.exists("/proc/driver/nvidia"):
        return 0
    import torch

    return torch.cuda.device_count() if torch.cuda.is_available() else 0


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
