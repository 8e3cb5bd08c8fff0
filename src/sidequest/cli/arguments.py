"""What the user typed, taken apart: settings of several methods, and the command itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def method_settings(
    names: Sequence[str], assignments: Sequence[str] | None
) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """Settings by method, from --set METHOD.name=value, for the methods named; and the assignments that name none."""
    from sidequest.errors import SettingsError
    from sidequest.methods import METHODS
    from sidequest.settings import parse_assignments

    own: dict[str, list[str]] = {name: [] for name in names}
    others = []
    for assignment in assignments or []:
        method, dot, _ = assignment.partition("=")[0].partition(".")
        if not dot or method not in METHODS:
            others.append(assignment)
        elif method not in own:
            raise SettingsError(
                f"--set {assignment}: {method!r} is not among the methods asked for: {', '.join(names)}"
            )
        else:
            own[method].append(assignment.partition(".")[2])
    return {name: parse_assignments(given)["method"] for name, given in own.items()}, others


def own_command() -> str:
    """The command as it was given, to be repeated."""
    import shlex
    import sys

    return shlex.join(["sidequest", *sys.argv[1:]])
