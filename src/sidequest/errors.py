"""What a user can get wrong, said once and clearly.

Every error that a user can cause is a `SidequestError`. Its message names the place (file, line or parameter), the rule,
the value that was found and, where there is one, the nearest valid name. The command line prints it without a traceback
and exits with code 2.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class SidequestError(Exception):
    """Something the user did or gave; the message says what, where, and what is allowed."""


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
