"""What all jobs of a run share, packed for workers: through the object store once to each node of a cluster."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sidequest.files import cache_directory, write_atomically
from sidequest.runs.setup import Setup
from sidequest.search.executors import Executor

if TYPE_CHECKING:
    from sidequest.models.base import Inputs

Files = dict[str, bytes]


@dataclass(frozen=True)
class Luggage:
    """A setup with what was computed for it: rows that are encoded, by task and split, or the states of their texts; and entries
    of the store, by their path in the cache."""

    setup: Setup
    encoded: dict[tuple[str, str], Inputs] = field(default_factory=dict)
    states: dict[str, Any] = field(default_factory=dict)
    entries: Files = field(default_factory=dict)

    @classmethod
    def of(cls, setup: Setup, executor: Executor, entries: Files | None = None) -> Luggage:
        """Workers that see this machine's files find there what is kept; others are sent it."""
        if executor.shares_disk:
            return cls(setup)
        states = setup.family.packed_states()
        encoded = {} if setup.family.keeps_states else dict(setup.encoded.encoded)
        return cls(setup, encoded, states, entries or {})

    def unpacked(self) -> Setup:
        """The setup, which finds its rows encoded and what was computed before."""
        for key, inputs in self.encoded.items():
            self.setup.encoded.encoded.setdefault(key, inputs)
        if self.states:
            self.setup.family.take_in_states(self.states)
            self.states.clear()
        if self.entries:
            unpack(self.entries, cache_directory())
            self.entries.clear()
        return self.setup


def pack(directory: Path) -> Files:
    """The files of a directory by their path in it; not its locks, which hold where they are."""
    paths = (path for path in sorted(directory.rglob("*")) if path.is_file() and path.name != ".lock")
    return {path.relative_to(directory).as_posix(): path.read_bytes() for path in paths}


def unpack(files: Files, directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        path = directory / name
        if not path.is_file() or path.read_bytes() != content:
            write_atomically(path, content)
