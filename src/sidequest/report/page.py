"""The page: one HTML file for a run directory, with everything in it and no need of a network.

Order: the verdict; the comparison; cost against quality; each method's evidence; the rows chosen; the recipe; the data; how to
repeat it. All text goes through jinja2's escaping, figures and JSON through `embedding`.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import ClassVar

from jinja2 import Environment, PackageLoader, StrictUndefined

from sidequest.errors import SettingsError
from sidequest.files import write_atomically
from sidequest.formatting import fixed, seeds_of
from sidequest.records.comparisons import PrimariesTable
from sidequest.records.fits import FitRecord
from sidequest.records.runs import ExampleTask, FactsRecord, FoundProblem
from sidequest.records.verdicts import notes
from sidequest.report import sections
from sidequest.report.comparison import cost_against_quality, scores_with_intervals
from sidequest.report.embedding import figure_json, packed_plotly, plotly_digest, script_digest, script_json
from sidequest.report.evidence import Drawing, Sketch, draw, evidence_figures
from sidequest.report.fits import FitPage, fit_page
from sidequest.report.primaries import PrimariesPage, primaries_page
from sidequest.report.provenance import data_table, settings_text, versions_table
from sidequest.report.reading import Compared, ReportedRun, facts_of, open_directory
from sidequest.report.tabulating import ShownTable, with_code, with_minus
from sidequest.report.training import learning_curves, training_curve
from sidequest.version import __version__

PAGE = "report.html"
TABLES = "tables"  # the directory of csv files


@dataclass
class MethodPart:
    """A method's own part of the page."""

    name: str
    run: ReportedRun
    drawings: list[Drawing]
    line: str
    opened: bool = False

    @property
    def examples(self) -> list[ExampleTask]:
        return self.run.examples


@dataclass
class Page:
    """Everything that the template shows."""

    template: ClassVar[str] = "page.html.j2"

    title: str
    kind: str
    verdict: sections.Verdict
    methods: list[MethodPart]
    recipe: ReportedRun
    record: FactsRecord
    tables: dict[str, ShownTable] = field(default_factory=dict)
    drawings: dict[str, Drawing] = field(default_factory=dict)
    commands: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    @property
    def all_drawings(self) -> dict[str, Drawing]:
        """Every figure by the name of its file, which is also its place in the page."""
        return self.drawings | {self.place(m, d): d for m in self.methods for d in m.drawings}

    def place(self, method: MethodPart, drawing: Drawing) -> str:
        return f"{method.name}-{drawing.name}" if self.kind == "compare" else drawing.name

    @property
    def problems(self) -> list[FoundProblem]:
        return [] if self.record.data is None else self.record.data.problems

    @property
    def notes(self) -> list[tuple[str, str]]:
        tasks = {} if self.record.data is None else self.record.data.tasks
        return [(name, note) for name, facts in tasks.items() for note in facts.notes]

    @property
    def settings(self) -> str:
        return settings_text(self.recipe.recipe.provenance)


def write_page(directory: Path) -> Path:
    """Write `report.html` and `tables/*.csv` of a run directory; returns the page's path."""
    page = read_page(directory)
    path = directory / PAGE
    write_atomically(path, render(page).encode())
    for name, table in page.tables.items():
        write_atomically(directory / TABLES / f"{name}.csv", table.to_csv().encode())
    return path


def read_page(directory: Path) -> Page | PrimariesPage | FitPage:
    """The page of a directory, from its files alone."""
    opened = open_directory(directory)
    if isinstance(opened, PrimariesTable):
        return primaries_page(directory, opened, PAGE)
    if isinstance(opened, FitRecord):
        return fit_page(opened)
    return _of_comparison(opened) if isinstance(opened, Compared) else _of_run(opened)


def _of_comparison(compared: Compared) -> Page:
    comparison, best = compared.comparison, compared.best
    if not compared.runs:
        raise SettingsError(f"{compared.directory}: the runs that comparison.json speaks of are not here")
    methods = []
    for row in compared.ranked:
        if row.method not in compared.runs:
            continue
        run = compared.runs[row.method]
        drawings = evidence_figures(run.recipe)
        if drawings or run.recipe.verdict or row is best:
            line = f"{fixed(row.mean)} {comparison.metric}, {fixed(row.x, 1)}x, {row.verdict}"
            methods.append(MethodPart(row.method, run, drawings, line, opened=row is best))
    featured = compared.runs.get(best.method if best is not None else "") or next(iter(compared.runs.values()))
    tables = {"comparison": sections.comparison_table(compared), "details": sections.details_table(compared)}
    if (differences := sections.differences_table(compared)) is not None:
        tables["differences"] = differences
    if (chosen := sections.chosen_table(compared)) is not None:
        tables["chosen"] = chosen
    sketches = {
        "scores": Sketch(
            "scores",
            f"Mean with its 95 % interval, pale points are single seeds; the dotted line is {comparison.baseline}.",
            partial(scores_with_intervals, comparison),
        ),
        "cost": Sketch(
            "cost",
            "The dotted line joins the methods that no cheaper one beats. Up and to the left is better.",
            partial(cost_against_quality, comparison),
        ),
    }
    if any(outcome.history for outcome in comparison.outcomes):
        sketches["curves"] = Sketch(
            "curves",
            "Means over seeds. It shows whether training was long enough, not which method is better: select chooses the model "
            "that is kept, report judges it.",
            partial(learning_curves, comparison),
        )
    page = Page(
        title=f"{comparison.primary}, {seeds_of(len(comparison.seeds))}",
        kind="compare",
        verdict=sections.comparison_verdict(compared),
        methods=methods,
        recipe=featured,
        record=facts_of(compared.directory),
        tables=tables,
        drawings={name: draw(sketch) for name, sketch in sketches.items()},
        remarks=[with_minus(note) for note in notes(comparison)],
    )
    return _with_data(page, compared.directory)


def _of_run(run: ReportedRun) -> Page:
    recipe = run.recipe
    drawings = evidence_figures(recipe)
    scored = run.scores or run.outcome
    if scored is not None and scored.history:
        caption = "The score on select after each epoch of the final training; the best model is kept."
        drawings.append(draw(Sketch("training", caption, partial(training_curve, scored.history))))
    line = f"{recipe.cost.x:.1f}x to select, {recipe.cost.trials} trials"
    rows = recipe.provenance.get("rows", {})
    page = Page(
        title=f"{recipe.primary}, {recipe.method}",
        kind="run",
        verdict=sections.run_verdict(run),
        methods=[MethodPart(recipe.method, run, drawings, line, opened=True)],
        recipe=run,
        record=facts_of(run.directory),
        tables={"mixture": sections.mixture_table(recipe, rows), "cost": sections.cost_table(run)},
    )
    return _with_data(page, run.directory)


def _with_data(page: Page, directory: Path) -> Page:
    provenance, run = page.recipe.recipe.provenance, page.recipe.facts
    page.tables["data"] = data_table(page.record, provenance, page.recipe.recipe.primary)
    versions = page.record.versions or (run.versions if run is not None else {})
    page.tables["versions"] = versions_table(versions, page.record.machine)
    page.commands = list(page.record.commands.values())
    if not page.commands and page.kind == "run" and run is not None:
        seed = provenance.get("seed", 0)
        page.commands = [f"sidequest select {run.suite_path} -m {run.method} --seed {seed} -o {directory}"]
    return page


@functools.cache
def _environment() -> Environment:
    """With the templates that it has compiled."""
    loader = PackageLoader("sidequest.report")
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    environment.filters["code"] = with_code
    return environment


def render(page: Page | PrimariesPage | FitPage) -> str:
    """The page as HTML."""
    environment = _environment()
    figures = {name: figure_json(d.figure) for name, d in page.all_drawings.items() if d.figure is not None}
    script = environment.get_template("page.js").render()
    return environment.get_template(page.template).render(
        page=page,
        script=script,
        # The browser runs the scripts with these digests and no other: what escaping might miss still would not run.
        script_digests=[script_digest(script), *([plotly_digest()] if figures else [])],
        figures=script_json(figures),
        plotly=packed_plotly() if figures else "",
        version=__version__,
    )
