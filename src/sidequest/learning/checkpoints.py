"""Checkpoints: the last states of a run on disk, from which it continues after a kill.

A state is a directory `0000000012/`: `record.json` and one directory for each saved learner. It is written under another name and
renamed when it is whole. Two are kept: if the last is damaged the run continues from the one before it, or from the beginning.
"""

from __future__ import annotations

import contextlib
import math
import os
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from sidequest import ranks
from sidequest.errors import Damaged, SettingsError
from sidequest.files import atomic_directory, check_files, file_digests, link_or_copy, read_json, write_json

RECORD = "record.json"
SECONDS = "SIDEQUEST_CHECKPOINT_SECONDS"  # the variable that says how many pass between two states


@dataclass(frozen=True)
class SavedLearner:
    """A learner to be saved. version: equal as long as the learner is; a part of the same version is not written again."""

    version: object
    save: Callable[[Path], None]


class Checkpoints:
    """The states in a directory.

    identity: what makes two runs the same; states of another run are not loaded. seconds: between two states, 0 is one at every
    chance; None: what SIDEQUEST_CHECKPOINT_SECONDS says, else a minute.
    """

    SECONDS: ClassVar[float] = 60.0
    KEPT: ClassVar[int] = 2
    LARGEST_SHARE: ClassVar[float] = 0.05  # of a run's time that saving may take

    def __init__(self, directory: Path, identity: str = "", seconds: float | None = None) -> None:
        self.directory = directory
        self._identity = identity
        self._seconds = self._usual_seconds() if seconds is None else seconds
        self._last, self._took = time.monotonic(), 0.0

    def _usual_seconds(self) -> float:
        text = os.environ.get(SECONDS)
        if not text:
            return self.SECONDS
        try:
            seconds = float(text)
        except ValueError:
            seconds = math.nan
        if not 0 <= seconds < math.inf:
            raise SettingsError(f"{SECONDS}: seconds between two checkpoints, 0 or more; found {text!r}")
        return seconds

    def due(self) -> bool:
        """Whether it is time to save again."""
        wait = max(self._seconds, self._took / self.LARGEST_SHARE) if self._seconds else 0.0
        return time.monotonic() - self._last >= wait

    def save(self, record: dict[str, Any], parts: Mapping[str, SavedLearner]) -> None:
        if not ranks.is_first():  # of several processes that train one model, all have the same state
            return
        begun = time.monotonic()
        states = self._states()
        number = int(states[-1].name) + 1 if states else 1
        before = _read(states[-1], self._identity) if states else None
        with atomic_directory(self.directory / f"{number:010}") as place:
            files: dict[str, str] = {}
            for name, part in parts.items():
                if before is not None and before["versions"].get(name) == part.version:
                    link_or_copy(states[-1] / name, place / name)
                    files |= {path: value for path, value in before["files"].items() if path.startswith(f"{name}/")}
                else:
                    part.save(place / name)
                    files |= {f"{name}/{path}": value for path, value in file_digests(place / name).items()}
            versions = {name: part.version for name, part in parts.items()}
            write_json(
                place / RECORD,
                {"identity": self._identity, "record": record, "files": files, "versions": versions},
            )
        for old in self._states()[: -self.KEPT]:
            shutil.rmtree(old)
        self._last = time.monotonic()
        self._took = self._last - begun

    def load(self) -> tuple[dict[str, Any], Path] | None:
        """The record of the last whole state, and the directory with its learners. None: there is no whole state."""
        for state in reversed(self._states()):
            found = _read(state, self._identity)
            if found is not None and _is_whole(state, found["files"]):
                return found["record"], state
            shutil.rmtree(state)
        return None

    def remove(self) -> None:
        """For a run that is done."""
        if self.directory.is_dir():
            shutil.rmtree(self.directory)
        with contextlib.suppress(OSError):  # others keep their states beside it, or it is gone
            self.directory.parent.rmdir()

    def _states(self) -> list[Path]:
        """Oldest first."""
        if not self.directory.is_dir():
            return []
        return sorted(path for path in self.directory.iterdir() if path.name.isdigit() and path.is_dir())


def _read(state: Path, identity: str) -> dict[str, Any] | None:
    """None: damaged, or of another run."""
    try:
        found = read_json(state / RECORD, must_be_sealed=True)
    except (Damaged, OSError):
        return None
    return found if found.get("identity") == identity else None


def _is_whole(state: Path, files: Mapping[str, str]) -> bool:
    try:
        check_files(state, files)
    except Damaged:
        return False
    return True
