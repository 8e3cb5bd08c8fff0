"""Faults found while reading and checking data: collected, so that a user sees all of them at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any, Literal

from sidequest.errors import DataError, SidequestError

Level = Literal["error", "warning"]


@dataclass(frozen=True)
class Place:
    """One row: its split, its number in its file, its line there, how its text begins, and where the same text stands first."""

    split: str
    row: int
    line: int | None
    text: str
    same_as: str = ""

    def __str__(self) -> str:
        at = f"row {self.row}" if self.line is None else f"line {self.line}"
        return f"{self.split}, {at}" + (f", as {self.same_as}" if self.same_as else "") + f": {self.text}"


@dataclass(frozen=True)
class Problem:
    """One fault. An error must be fixed before training; a warning should be known.

    message: names the file and line too, where they are known; `file` and `line` repeat them for machines.
    rows: how many rows are concerned, 0 where that means nothing. places: each of them, where somebody asked for all.
    """

    level: Level
    message: str
    task: str = ""
    split: str = ""
    file: str = ""
    line: int | None = None
    rows: int = 0
    places: tuple[Place, ...] = ()

    def __str__(self) -> str:
        place = f"{self.task} ({self.split}): " if self.split else f"{self.task}: " if self.task else ""
        return place + self.message

    def to_json(self) -> dict[str, Any]:
        """Plain data; without `places` if nobody asked for them."""
        data = asdict(self)
        return data if self.places else {key: value for key, value in data.items() if key != "places"}


class Problems:
    """A growing list of problems."""

    def __init__(self) -> None:
        self.items: list[Problem] = []

    def error(self, message: str, *, task: str = "", split: str = "") -> None:
        self.items.append(Problem("error", message, task, split))

    def warn(
        self,
        message: str,
        *,
        task: str,
        split: str = "",
        rows: int = 0,
        at: DataError | None = None,
        places: Sequence[Place] = (),
    ) -> None:
        file, line = (str(at.file), at.line) if at is not None else ("", None)
        self.items.append(Problem("warning", message, task, split, file, line, rows, tuple(places)))

    @contextmanager
    def catch(self, task: str = "", split: str = "") -> Iterator[None]:
        """Turn an error raised inside into problems, one per line of its message."""
        try:
            yield
        except SidequestError as error:
            file = str(error.file) if isinstance(error, DataError) and error.file is not None else ""
            line = error.line if isinstance(error, DataError) else None
            for message in str(error).splitlines():
                self.items.append(Problem("error", message, task, split, file, line))

    @property
    def errors(self) -> list[Problem]:
        return [problem for problem in self.items if problem.level == "error"]

    def raise_errors(self) -> None:
        """One error with a line for each fault, if there are any."""
        if self.errors:
            raise SidequestError("\n".join(str(problem) for problem in self.errors))
