"""Docstrings name fields as `name: what it is`; here they are taken apart for the reference.

Public classes and functions have sections (`Args:`) instead, which the site reads by itself.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

import griffe


class Fields(griffe.Extension):
    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = listed(obj.docstring.value, names_of(obj))


def names_of(obj: griffe.Object) -> list[str]:
    """What can be documented of an object: the parameters of a function, the members of a class."""
    if isinstance(obj, griffe.Function):
        return [parameter.name for parameter in obj.parameters]
    return list(obj.members) if isinstance(obj, griffe.Class) else []


def listed(text: str, names: list[str]) -> str:
    """The text with its fields as items of a list. Code and sections (`Args:`) stay as they are."""
    parts = re.split(r"(\n\s*\n)", text)
    for index, part in enumerate(parts):
        if re.match(r"\s*(```|>>>|[A-Z]\w+:\n| {4})", part):
            continue
        before, found = fields_of(part, names)
        if found:
            items = [f"- {', '.join(f'`{name}`' for name in shown)}: {about}" for shown, about in found]
            parts[index] = "\n\n".join(filter(None, [before, "\n".join(items)]))
    return "".join(parts)


def fields_of(text: str, names: Collection[str]) -> tuple[str, list[tuple[list[str], str]]]:
    """What comes before the fields, and each field (or several with one text) with its text, of a docstring's paragraph.

    names: what can be a field: elsewhere a word with a colon is prose.
    """
    known = "|".join(sorted(map(re.escape, names), key=len, reverse=True))
    if not known:
        return text, []
    start = rf"(?:^|(?<=[.;:!?)`]\s)|(?<=\n))\s*((?:{known})(?:, (?:{known}))*): "
    before, *parts = re.split(start, text)
    pairs = zip(parts[::2], parts[1::2], strict=True)
    return before.strip(), [(listed.split(", "), " ".join(about.split())) for listed, about in pairs]


def meanings(texts: Collection[str], names: Collection[str]) -> tuple[list[str], dict[str, str]]:
    """Of the docstrings of a class and its bases: what they say besides fields, and the first meaning of each field."""
    prose: list[str] = []
    found: dict[str, str] = {}
    for text in texts:
        for paragraph in re.split(r"\n\s*\n", text):
            before, fields = fields_of(paragraph, names)
            if before:
                prose.append(" ".join(before.split()))
            for listed, about in fields:
                for name in listed:
                    found.setdefault(name, about)
    return prose, found
