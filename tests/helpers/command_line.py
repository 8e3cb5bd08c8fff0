"""The command line in this process, under a time limit, and what it left behind."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import signal
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sidequest.cli import main


class TooLong(BaseException):
    """Not an `Exception`: nothing that catches everything may catch it."""


@dataclass(frozen=True)
class Ended:
    """code: of the process; None where an exception came out, whose traceback is then in `output`."""

    code: int | None
    output: str

    @property
    def raw(self) -> bool:
        """Whether a user would have seen a traceback."""
        return self.code is None or "Traceback (most recent call last)" in self.output


def run_command(*arguments: object, seconds: float = 20.0) -> Ended:
    """The command line with these arguments."""
    printed = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="backslashreplace", write_through=True)
    before, sys.argv = sys.argv, ["sidequest", *map(str, arguments)]
    code: int | None
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed), time_limit(seconds):
            try:
                main()
                code = 0
            except SystemExit as end:
                code = int(end.code or 0)
            except Exception:
                code = None
                printed.write(traceback.format_exc())
    finally:
        sys.argv = before
    return Ended(code, printed.buffer.getvalue().decode("utf-8", "replace"))  # type: ignore[attr-defined]


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    def end(*_: object) -> None:
        raise TooLong(f"still running after {seconds} s")

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def everything_in(place: Path) -> dict[str, str]:
    """Every file, folder, link and pipe below a place, with what it holds."""
    found: dict[str, str] = {}
    for directory, folders, files in os.walk(place):
        for name in (*folders, *files):
            path = Path(directory) / name
            if path.is_symlink():
                holds = f"link to {os.readlink(path)}"
            elif path.is_file():
                holds = hashlib.sha256(path.read_bytes()).hexdigest() if os.access(path, os.R_OK) else "locked"
            else:
                holds = "folder" if path.is_dir() else "other"
            found[str(path.relative_to(place))] = holds
    return found
