"""Cells on machines that share no disk: a cell travels with the files of its directory and comes back with them.

What all cells share, the suite's rows and the encoded states, travels once to each node. What a node computes beyond the cell
(trials that another cell might ask for) stays in that node's own cache.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from sidequest.files import temporary_directory
from sidequest.records.comparisons import MissingCell, Outcome
from sidequest.runs.cells import Job, attempt
from sidequest.runs.luggage import Files, Luggage, pack, unpack


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
    with temporary_directory("cell") as place:
        directory = place / "cell"
        unpack(travelling.files, directory)
        cell = attempt(luggage.unpacked(), replace(job, directory=directory))
        if isinstance(cell, MissingCell):
            cell = cell.model_copy(update={"error": cell.error.replace(str(directory), str(job.directory))})
        return ReturnedCell(cell, pack(directory))
