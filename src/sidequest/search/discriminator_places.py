"""Where task discriminators and what they have ranked are kept: by the content of all that decides them.

One directory per discriminator, with an entry for its weights and one per task and chunk with logits of the rows (4 bytes per row
and task). A killed ranking finds its chunks there; so does another primary of the same tasks, because the primary decides nothing
in them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from sidequest.files import cache_directory, digest
from sidequest.learning.protocol import Discrimination


class DiscriminatorPlaces:
    """The directory of each discriminator. facts: all about data, model, training and code that decides it."""

    def __init__(self, facts: Callable[[], Any], directory: Path | None = None) -> None:
        self._facts = facts
        self._directory = directory if directory is not None else cache_directory() / "discriminators"

    def __call__(self, discrimination: Discrimination) -> Path:
        plain = asdict(discrimination)
        del plain["chunk"]  # the model does not depend on it, and chunks have their size in their keys
        key = digest({"discrimination": plain, "facts": self._facts()})
        return self._directory / key[:2] / key
