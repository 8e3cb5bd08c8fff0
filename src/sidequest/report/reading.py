"""Run directories as the report sees them: what `select`, `train` and `compare` left, all parts optional but the recipe."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from sidequest.errors import SettingsError
from sidequest.files import read_json
from sidequest.recipe import Recipe
from sidequest.runs.recording import EXAMPLES, RECORD


@dataclass(frozen=True)
class Run:
    """A directory of `select` or `train`."""

    directory: Path

    @cached_property
    def recipe(self) -> Recipe:
        return Recipe.read(self.directory / "recipe.json")

    @cached_property
    def recipe_text(self) -> str:
        return (self.directory / "recipe.json").read_text(encoding="utf-8")

    def part(self, name: str) -> Any:
        """A JSON file of the directory; empty where there is none."""
        path = self.directory / name
        return read_json(path) if path.is_file() else {}

    @property
    def scores(self) -> dict[str, Any]:
        return self.part("scores.json")

    @property
    def examples(self) -> list[dict[str, Any]]:
        return self.part(EXAMPLES) or []

    @property
    def facts(self) -> dict[str, Any]:
        """Versions and where the suite is, from `run.json`."""
        return self.part("run.json")


@dataclass(frozen=True)
class Compared:
    """A directory of `compare`: `comparison.json` and a run for every method and seed."""

    directory: Path
    comparison: dict[str, Any]

    @property
    def rows(self) -> list[dict[str, Any]]:
        return self.comparison["rows"]

    @cached_property
    def runs(self) -> dict[str, Run]:
        """Of each method, the run of its first seed that is here."""
        out = {}
        for row in self.rows:
            for seed in self.comparison["seeds"]:
                place = self.directory / row["method"] / f"seed-{seed}"
                if (place / "recipe.json").is_file():
                    out[row["method"]] = Run(place)
                    break
        return out

    @property
    def best(self) -> dict[str, Any]:
        """The row that the verdict speaks of: the highest of those that help, or else single-task training."""
        helping = [row for row in self.rows if row["verdict"] == "helps"]
        if helping:
            return max(helping, key=lambda row: row["difference"])
        return next(row for row in self.rows if row["verdict"] == "baseline")


def open_directory(directory: Path) -> Run | Compared | dict[str, Any]:
    """What kind of directory it is (with several primaries: the content of `table.json`); anything else is refused."""
    if (directory / "table.json").is_file():
        return read_json(directory / "table.json")
    if (directory / "comparison.json").is_file():
        return Compared(directory, read_json(directory / "comparison.json"))
    if (directory / "recipe.json").is_file():
        return Run(directory)
    if not directory.is_dir():
        raise SettingsError(f"{directory}: no such directory")
    raise SettingsError(
        f"{directory}: nothing to report: neither comparison.json (of `sidequest compare`) nor recipe.json (of "
        f"`sidequest select`) is there; if a run was stopped, its own command continues it"
    )


def record_of(directory: Path) -> dict[str, Any]:
    path = directory / RECORD
    return read_json(path) if path.is_file() else {}
