"""What a user can get wrong, said once and clearly.

Every error that a user can cause is a `SidequestError`. Its message names the place (file, line or parameter), the rule,
the value that was found and, where there is one, the nearest valid name. The command line prints it without a traceback
and exits with code 2.
"""

from __future__ import annotations

import difflib
import errno
import re
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import ClassVar

# To the last @ of the URL: a password may have one in it, although it should be written %40.
_USER_PASSWORD = re.compile(r"(://[^\s/:@]*):(?:(?:(?!://)[^\s\"'])*|[^\s@]+)@")
_WHOLE = re.compile(
    r"^([^\s:]*://[^\s/:@]*):.*@", re.DOTALL
)  # of a text that is a URL: its password may have spaces in it
_NAMED_SECRET = re.compile(r"([?&;]\w*(?:password|passwd|pwd|token|secret|key)=)[^\s&;'\"]+", re.IGNORECASE)


def masked(text: str) -> str:
    """A text without the passwords of its URLs: `postgresql://user:***@host/name`. For all that is shown or written down."""
    return _NAMED_SECRET.sub(r"\1***", _USER_PASSWORD.sub(r"\1:***@", text))


def masked_argument(text: str) -> str:
    """The same of a text that is a URL and nothing else, or an option with one."""
    return masked(_WHOLE.sub(r"\1:***@", text))


def printable(text: str) -> str:
    """A text that cannot speak to a terminal: control characters (escape sequences, the direction of text) as their codes. Lines
    and tabs stay."""
    return "".join(
        letter if letter.isprintable() or letter in "\n\t\xa0\u202f" else ascii(letter)[1:-1] for letter in text
    )


class SidequestError(Exception):
    """Something the user did or gave; the message says what, where, and what is allowed. It never holds a URL's password, nor
    anything that speaks to a terminal: names in it may come from a file that somebody else wrote.

    exit_code: of the command line. 2 is bad input; what the world did to a good one is 1.
    """

    exit_code: ClassVar[int] = 2

    def __init__(self, message: str = "") -> None:
        super().__init__(printable(masked(message)))


class DataError(SidequestError):
    """A data file or a row of it breaks a rule."""

    def __init__(self, message: str, *, file: object = None, line: int | None = None) -> None:
        place = "" if file is None else f"{file}: " if line is None else f"{file}, line {line}: "
        super().__init__(place + message)
        self.file = file
        self.line = line


class SettingsError(SidequestError):
    """A setting, a name or a suite file breaks a rule."""


class ReportSplitRefused(SidequestError):
    """A method asked for the report split, which only the final report may see."""


class RunMismatch(SidequestError):
    """A run directory or recipe belongs to other settings or other data than those given."""


class RunBusy(SidequestError):
    """Another process is working in the run directory."""


class Damaged(SidequestError):
    """A stored file is not what was written: halved, changed, or of another kind."""

    def __init__(self, path: object, why: str, remedy: str = "") -> None:
        remedy = remedy or "Delete it and give the command that made it again"
        super().__init__(f"{path}: is damaged: {why}. {remedy}.")
        self.path = path
        self.why = why


class Diverged(SidequestError):
    """A training whose loss is no longer a number."""


class WorldError(SidequestError):
    """The machine failed a command that was right: no room, no memory, a worker that was ended."""

    exit_code: ClassVar[int] = 1


class DiskError(WorldError):
    """A disk that is full, read-only or broken: what comes next would fail in the same way."""


@contextmanager
def speaking_for(what: str) -> Iterator[None]:
    """Around code that somebody else has written: what it raises becomes one sentence, with the line that raised it."""
    try:
        yield
    except (SidequestError, MemoryError, OSError):
        raise
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{last.filename}, line {last.lineno}"
        raise SidequestError(f"{what}: {type(error).__name__}: {first_line(error)} ({place})") from error


def first_line(error: BaseException, most: int = 300) -> str:
    """What an error of another library says, in one line."""
    line = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
    return line if len(line) <= most else f"{line[:most]}…"


NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
BROKEN = (errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ESTALE, errno.EROFS)


def of_the_world(error: OSError | MemoryError) -> SidequestError:
    """What the operating system said, as a sentence with the place in it."""
    if isinstance(error, MemoryError):
        return WorldError("there is not enough memory. What was done before is kept")
    place = f"{error.filename}: " if error.filename else ""
    if error.errno in NO_ROOM:
        return DiskError(
            f"{place}there is no room left on the disk. What was done before is kept: make room and give the command again"
        )
    words = (error.strerror or str(error) or type(error).__name__).lower()
    return DiskError(f"{place}{words}") if error.errno in BROKEN else SidequestError(f"{place}{words}")


def end_if_all_would_fail(error: Exception) -> None:
    """A job that fails fails alone; but not where the disk does: a result without it would look like one in which it lost."""
    if isinstance(error, OSError) and error.errno in (*NO_ROOM, *BROKEN):
        raise of_the_world(error) from None
    if isinstance(error, DiskError):
        raise error


def nearest(name: str, valid: Iterable[str]) -> str:
    """The hint that ends a message about an unknown name: the nearest valid name, or the valid names."""
    names = sorted(valid)
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    if close:
        return f"Did you mean {close[0]!r}?"
    if not names:
        return "There are none to choose from."
    shown = ", ".join(names[:12]) + (", …" if len(names) > 12 else "")
    return f"Valid: {shown}."


def unknown(what: str, name: str, valid: Iterable[str]) -> SettingsError:
    """An error for a name that is not among the valid ones."""
    return SettingsError(f"unknown {what} {name!r}. {nearest(name, valid)}")
