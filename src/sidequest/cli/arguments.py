"""What the user typed, taken apart: settings of several methods, and the command itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sidequest.methods import MethodChoice


def chosen_methods(
    references: Sequence[str], assignments: Sequence[str] | None
) -> tuple[dict[str, MethodChoice], list[str]]:
    """Methods by name, each with its settings from --set METHOD.name=value; and the assignments that name no method.

    references: names or `file.py:Class`, whose file is run.
    """
    from sidequest.errors import SettingsError
    from sidequest.methods import MethodChoice, method_names
    from sidequest.settings import parse_assignments

    chosen = {choice.name: choice for choice in map(MethodChoice, references)}
    own: dict[str, list[str]] = {name: [] for name in chosen}
    known, others = {*chosen, *method_names()}, []
    for assignment in assignments or []:
        method, dot, _ = assignment.partition("=")[0].partition(".")
        if not dot or method not in known:
            others.append(assignment)
        elif method not in own:
            raise SettingsError(
                f"--set {assignment}: {method!r} is not among the methods asked for: {', '.join(chosen)}"
            )
        else:
            own[method].append(assignment.partition(".")[2])
    settings = {name: parse_assignments(given)["method"] for name, given in own.items()}
    return {name: MethodChoice.of(choice, settings[name]) for name, choice in chosen.items()}, others


def with_effort(choices: Mapping[str, MethodChoice], effort: int | None) -> dict[str, MethodChoice]:
    """The methods with --effort as the setting of those that have one."""
    from sidequest.errors import SettingsError
    from sidequest.methods import MethodChoice

    if effort is None:
        return dict(choices)
    able = [name for name, choice in choices.items() if "effort" in choice.method.Settings.model_fields]
    if not able:
        raise SettingsError(f"--effort {effort}: is for `auto`; none of these has an effort: {', '.join(choices)}")
    return {
        name: MethodChoice.of(choice, {"effort": effort}) if name in able else choice
        for name, choice in choices.items()
    }


def own_command() -> str:
    """The command as it was given, to be repeated; it is written into records and pages, so passwords are left out."""
    import shlex
    import sys

    from sidequest.errors import masked, masked_argument

    return masked(shlex.join(["sidequest", *map(masked_argument, sys.argv[1:])]))
