"""Run directories as the report sees them: what `select`, `train` and `compare` left, all parts optional but the recipe."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from sidequest.errors import SettingsError
from sidequest.paths import shown, what_is_at
from sidequest.recipe import Recipe
from sidequest.records.comparisons import Comparison, Outcome, PrimariesTable, Row
from sidequest.records.fits import FitRecord
from sidequest.records.runs import ExamplesRecord, ExampleTask, FactsRecord, RunRecord, ScoresRecord, SelectionRecord
from sidequest.records.verdicts import best_row


@dataclass(frozen=True)
class ReportedRun:
    """A directory of `select` or `train`, or a cell of a comparison."""

    directory: Path

    @cached_property
    def recipe(self) -> Recipe:
        return Recipe.read(self.directory / "recipe.json")

    @cached_property
    def recipe_text(self) -> str:
        return (self.directory / "recipe.json").read_text(encoding="utf-8")

    @cached_property
    def scores(self) -> ScoresRecord | None:
        return ScoresRecord.read_if_there(self.directory / ScoresRecord.FILE)

    @cached_property
    def outcome(self) -> Outcome | None:
        return Outcome.read_if_there(self.directory / Outcome.FILE)

    @cached_property
    def selection(self) -> SelectionRecord | None:
        return SelectionRecord.read_if_there(self.directory / SelectionRecord.FILE)

    @cached_property
    def examples(self) -> list[ExampleTask]:
        record = ExamplesRecord.read_if_there(self.directory / ExamplesRecord.FILE)
        return [] if record is None else record.tasks

    @cached_property
    def facts(self) -> RunRecord | None:
        return RunRecord.read_if_there(self.directory / RunRecord.FILE)


@dataclass(frozen=True)
class Compared:
    """A directory of `compare`: `comparison.json` and a run for every method and seed."""

    directory: Path
    comparison: Comparison

    @cached_property
    def ranked(self) -> list[Row]:
        """The highest mean first."""
        return sorted(self.comparison.rows, key=lambda row: -row.mean)

    @cached_property
    def runs(self) -> dict[str, ReportedRun]:
        """Of each method, the run of its first seed that is here."""
        out: dict[str, ReportedRun] = {}
        for outcome in self.comparison.outcomes:
            place = self.directory / outcome.directory
            if outcome.method not in out and outcome.directory and (place / "recipe.json").is_file():
                out[outcome.method] = ReportedRun(place)
        return out

    @property
    def best(self) -> Row | None:
        """The row that the verdict speaks of: the highest of those that help, or else the baseline."""
        return best_row(self.comparison) or self.comparison.row(self.comparison.baseline)


def open_directory(directory: Path) -> ReportedRun | Compared | PrimariesTable | FitRecord:
    """What kind of directory it is; anything else is refused."""
    if (found := what_is_at(directory)) != "directory":
        raise SettingsError(f"{shown(directory)}: {'no such directory' if found == 'nothing' else 'not a directory'}")
    if (directory / PrimariesTable.FILE).is_file():
        return PrimariesTable.read(directory)
    if (directory / Comparison.FILE).is_file():
        return Compared(directory, Comparison.read(directory))
    if (directory / FitRecord.FILE).is_file():
        return FitRecord.read(directory)
    if (directory / "recipe.json").is_file():
        return ReportedRun(directory)
    raise SettingsError(
        f"{directory}: nothing to report: neither comparison.json (of `sidequest compare`) nor recipe.json (of "
        f"`sidequest select`) is there; if a run was stopped, its own command continues it"
    )


def facts_of(directory: Path) -> FactsRecord:
    """What the run recorded; nothing, where it recorded nothing."""
    return FactsRecord.read_if_there(directory / FactsRecord.FILE) or FactsRecord()
