"""Docstrings name arguments and fields as `name: what it is`, a line each; in the reference they become a list."""

from __future__ import annotations

import re
from typing import Any

import griffe

FIELD = re.compile(r"^([a-z_]\w*(?:, [a-z_]\w*)*): ")


class Fields(griffe.Extension):
    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = listed(obj.docstring.value)


def listed(text: str) -> str:
    """The text with its fields as items of a list; lines that go on with an item are indented already."""
    lines: list[str] = []
    fenced = False
    for line in text.splitlines():
        fenced ^= line.startswith("```")
        found = None if fenced else FIELD.match(line)
        if found is None:
            lines.append(line)
            continue
        if lines and lines[-1] and not lines[-1].startswith(("- ", " ")):
            lines.append("")
        names = ", ".join(f"`{name}`" for name in found[1].split(", "))
        lines.append(f"- {names}: {line[found.end() :]}")
    return "\n".join(lines)
