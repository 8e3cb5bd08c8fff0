"""The journal: one line of JSON per cell, found again by the content of everything that decides it."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sidequest.files import digest


@dataclass(frozen=True)
class Cell:
    """What one contender reached on one primary with one seed.

    seconds: of the processor, for learning and predicting, without encoding what is cached. code: the version of sidequest's
    training code; empty for an alternative, which does not depend on it.
    """

    key: str
    primary: str
    contender: str
    seed: int
    metric: str
    score: float
    report: dict[str, float]
    select: float | None
    rows: dict[str, int]
    seconds: float
    code: str
    date: str


def cell_key(contender: str, facts: dict[str, Any], rows: dict[str, str], seed: int) -> str:
    """rows: a digest per split."""
    return digest([contender, facts, rows, seed])[:24]


def published(path: Path) -> list[Cell]:
    """The cells of a table that was written before (`--output`): they outlive the cache that the journal is in."""
    return (
        [Cell(**cell) for cell in json.loads(path.read_text(encoding="utf-8")).get("cells", [])]
        if path.exists()
        else []
    )


class Journal:
    """Several processes may write to one journal: a cell is one short line, added at the end in one write."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def cells(self) -> list[Cell]:
        if not self.path.exists():
            return []
        lines = self.path.read_text(encoding="utf-8").splitlines()
        return [
            Cell(**json.loads(line)) for line in lines if line.endswith("}")
        ]  # a killed process may leave half a line

    def by_key(self) -> dict[str, Cell]:
        return {cell.key: cell for cell in self.cells()}

    def add(self, cell: Cell) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        line = json.dumps(asdict(cell), ensure_ascii=False, sort_keys=True) + "\n"
        handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(handle, line.encode())
        finally:
            os.close(handle)
