"""One process at a time in a run directory: a second one is told, and leaves."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sidequest.errors import SettingsError, WorldError
from sidequest.files import remove_all_parts
from sidequest.locks import locked, remove_stale
from sidequest.store import sweep

LOCK = ".lock"
PATIENCE = 3.0  # seconds: workers of a parent that was just killed need a moment to end


@contextmanager
def holding(directory: Path | None) -> Iterator[None]:
    """Hold a run directory, made if need be; what a killed process left in it half-written is removed. None: nothing to hold."""
    if directory is None:
        yield
        return
    existed = directory.exists()
    if existed and not directory.is_dir():
        raise SettingsError(f"{directory}: is a file; a run takes a directory")
    refuse_links(directory)
    try:
        with locked(directory / LOCK, patience=PATIENCE, what=str(directory)):
            remove_all_parts(directory)
            for path in directory.rglob("*.lock"):
                if path != directory / LOCK:
                    remove_stale(path)
            sweep()
            yield
            if not (directory / LOCK).exists():  # else half of a run would be called whole
                raise WorldError(f"{directory}: was removed while it was worked in; give the command again")
    finally:
        if not existed:
            with contextlib.suppress(OSError):  # there is something in it, as there should be
                directory.rmdir()


def refuse_links(directory: Path) -> None:
    """A link inside a run directory could lead what is written there to any other place."""
    for place, folders, files in os.walk(directory):
        for name in (*folders, *files):
            if (path := Path(place) / name).is_symlink():
                raise SettingsError(
                    f"{path}: is a symbolic link to {os.readlink(path)!r}; a run directory holds plain files and folders. "
                    "Remove it, or give another directory"
                )
