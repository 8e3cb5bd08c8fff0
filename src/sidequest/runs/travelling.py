"""Cells on machines that share no disk: a cell travels with the files of its directory and comes back with them.

What all cells share, the suite's rows and the encoded states, travels once to each node. What a node computes beyond the cell
(trials that another cell might ask for) stays in that node's own cache.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from sidequest.files import write_atomically
from sidequest.records.comparisons import MissingCell, Outcome
from sidequest.runs.cells import Job, attempt
from sidequest.runs.setup import Setup

if TYPE_CHECKING:
    from sidequest.models.base import Inputs

Files = dict[str, bytes]


@dataclass(frozen=True)
class Luggage:
    """A setup with the rows that are encoded already, by task and split."""

    setup: Setup
    encoded: dict[tuple[str, str], Inputs] = field(default_factory=dict)

    @classmethod
    def of(cls, setup: Setup) -> Luggage:
        return cls(setup, dict(setup.encoded.encoded))

    def unpacked(self) -> Setup:
        """The setup, which finds its rows encoded."""
        for key, inputs in self.encoded.items():
            self.setup.encoded.encoded.setdefault(key, inputs)
        return self.setup


@dataclass(frozen=True)
class TravellingJob:
    job: Job
    files: Files

    @classmethod
    def of(cls, job: Job) -> TravellingJob:
        return cls(job, pack(job.directory))


@dataclass(frozen=True)
class ReturnedCell:
    cell: Outcome | MissingCell
    files: Files = field(default_factory=dict)

    def unpacked(self, directory: Path) -> Outcome | MissingCell:
        """The cell, with its files in their directory."""
        unpack(self.files, directory)
        return self.cell


def attempt_away(luggage: Luggage, travelling: TravellingJob) -> ReturnedCell:
    """`attempt` in a directory of this machine."""
    job = travelling.job
    with tempfile.TemporaryDirectory(prefix="sidequest-") as place:
        directory = Path(place) / "cell"
        unpack(travelling.files, directory)
        cell = attempt(luggage.unpacked(), replace(job, directory=directory))
        if isinstance(cell, MissingCell):
            cell = cell.model_copy(update={"error": cell.error.replace(str(directory), str(job.directory))})
        return ReturnedCell(cell, pack(directory))


def pack(directory: Path) -> Files:
    """The files of a directory by their path in it; not its locks, which hold where they are."""
    found = (path for path in sorted(directory.rglob("*")) if path.is_file() and path.name != ".lock")
    return {path.relative_to(directory).as_posix(): path.read_bytes() for path in found}


def unpack(files: Files, directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        path = directory / name
        if not path.is_file() or path.read_bytes() != content:
            write_atomically(path, content)
