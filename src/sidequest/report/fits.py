"""The page of `sidequest fit`: what each auxiliary adds, the mixtures by their chance of being best, and what to run next."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar

import plotly.graph_objects as go

from sidequest.formatting import between, fixed, signed
from sidequest.records.fits import FitRecord, MixtureGain
from sidequest.report.evidence import Drawing, Sketch, draw
from sidequest.report.sections import Verdict
from sidequest.report.style import PRIMARY, new_figure
from sidequest.report.tabulating import Cell, ShownColumn, ShownTable, number, text, with_minus


@dataclass
class FitPage:
    template: ClassVar[str] = "fit.html.j2"

    title: str
    verdict: Verdict
    tables: dict[str, ShownTable]
    drawings: dict[str, Drawing]

    @property
    def all_drawings(self) -> dict[str, Drawing]:
        return self.drawings


def fit_page(record: FitRecord) -> FitPage:
    helps = record.best.gain.low > 0
    runs = f"{record.runs} runs" + (f" over {record.blocks} seeds" if record.blocks else "")
    caption = f"What each auxiliary adds to {record.score}, {record.effect_words}, with its 95 % interval."
    return FitPage(
        title=Path(record.source).name,
        verdict=Verdict(
            record.verdict[0].upper() + record.verdict[1:] + ".",
            "good" if helps else "base",
            sentences=[
                f"A surface ({record.form}) over {runs}; a run lies {fixed(record.residual)} around it (standard deviation). "
                f"The primary alone: {fixed(record.alone.value)}, {fixed(record.alone.low)} to {fixed(record.alone.high)}.",
                "The interval of the best mixture covers all mixtures at once, because the best was chosen by looking at them.",
                *([f"Columns that are no auxiliaries: {', '.join(record.left_out)}."] if record.left_out else []),
            ],
            warnings=[f"{warning[0].upper()}{warning[1:]}." for warning in record.warnings],
        ),
        tables={"mixtures": _mixtures("mixtures", record.mixtures), "next": _mixtures("next", record.next)},
        drawings={"effects": draw(Sketch("effects", caption, partial(effects, record)))},
    )


def _mixtures(name: str, mixtures: list[MixtureGain]) -> ShownTable:
    columns = [
        ShownColumn("mixture"),
        ShownColumn("gain", numeric=True, csv=("gain", "low", "high")),
        ShownColumn("chance of being best", numeric=True),
        ShownColumn("runs so far", numeric=True),
    ]
    rows = [
        [
            text(one.name),
            Cell(
                with_minus(f"{signed(one.gain.value)} {between(one.gain.low, one.gain.high)}"),
                (one.gain.value, one.gain.low, one.gain.high),
            ),
            number(one.chance, ".2f"),
            number(one.runs, "d"),
        ]
        for one in mixtures
    ]
    return ShownTable(name, columns, rows)


def effects(record: FitRecord) -> go.Figure:
    """A point with its interval for each auxiliary; right of the line it helps."""
    ordered = sorted(record.effects, key=lambda one: one.effect.value)
    figure = new_figure("What each auxiliary adds", record.score, "")
    figure.add_scatter(
        x=[one.effect.value for one in ordered],
        y=[one.task for one in ordered],
        mode="markers",
        marker={"color": PRIMARY, "size": 10},
        error_x={
            "type": "data",
            "symmetric": False,
            "array": [one.effect.high - one.effect.value for one in ordered],
            "arrayminus": [one.effect.value - one.effect.low for one in ordered],
        },
        hovertemplate="%{y}: %{x:+.4f}<extra></extra>",
        showlegend=False,
    )
    figure.add_vline(x=0, line_dash="dot", line_color="#7F7F7F")
    figure.update_yaxes(type="category")
    figure.update_layout(height=140 + 34 * len(ordered))
    return figure
