"""What the page says, section by section, as plain data for the template. Nothing here is markup but `tabulating`'s glyphs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sidequest.formatting import between, fixed, half, plain, signed
from sidequest.recipe import Recipe
from sidequest.records import verdicts
from sidequest.records.comparisons import Difference, Row
from sidequest.records.runs import Spent
from sidequest.report.reading import Compared, ReportedRun
from sidequest.report.tabulating import Cell, ShownColumn, ShownTable, interval_glyph, number, text, with_minus

ON_SELECT = "A gain on select is the best of what was tried there: it says what to take, not what it is worth."
HUGE = 10  # of effect sizes: beyond it seeds hardly differ, and the number says nothing more
TONES = {"helps": "good", "hurts": "bad", "baseline": "base", "control": "base"}


@dataclass(frozen=True)
class Verdict:
    """The top of a page. tone: `good` where something helps, `bad` where the model itself is the problem."""

    headline: str
    tone: str = "base"
    sentences: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def comparison_verdict(compared: Compared) -> Verdict:
    """The answer first, then what it rests on."""
    comparison = compared.comparison
    helps = verdicts.best_row(comparison) is not None
    problem = verdicts.model_is_the_problem(comparison)
    return Verdict(
        headline=_sentence(comparison.verdict),
        tone="bad" if problem else "good" if helps else "base",
        sentences=[with_minus(sentence) for sentence in verdicts.sentences(comparison)],
        warnings=[with_minus(warning) for warning in verdicts.warnings(comparison)],
    )


def run_verdict(run: ReportedRun) -> Verdict:
    """What one run decided, and what its model scored."""
    recipe, scores = run.recipe, run.scores
    names = list(recipe.auxiliaries)
    headline = f"Train {recipe.primary} with {verdicts.listed(names)}" if names else f"Train {recipe.primary} alone"
    sentences = [_sentence(recipe.verdict)] if recipe.verdict else []
    if "on select" in recipe.verdict:
        sentences.append(ON_SELECT)
    warnings = []
    if scores is not None and scores.report:
        shown = ", ".join(f"{name} {fixed(value, 4)}" for name, value in scores.report.items())
        sentences.append(f"The final model on the report split: {shown}.")
        if not scores.select:
            sentences.append("It learned from select, too, after everything was chosen.")
        if scores.interval is not None:
            low, high = (fixed(end, 4) for end in scores.interval)
            sentences.append(
                f"For other rows of the same kind the first of these lies between {low} and {high} (95 %)."
            )
        if scores.majority is not None:
            sentences.append(f"The best constant answer: {fixed(scores.majority, 4)}.")
            if next(iter(scores.report.values())) <= scores.majority:
                warnings.append(
                    "This model is no better than the best constant answer: do not trust choices made with it."
                )
    elif run.outcome is None:
        sentences.append("The final model is not trained yet; sidequest train does it.")
    sentences.append("One run cannot say whether this helps; sidequest compare does, over seeds.")
    warnings += [str(each) for key in ("warnings", "notes") for each in recipe.evidence.get(key, [])]
    return Verdict(headline + ".", sentences=sentences, warnings=warnings)


def comparison_table(compared: Compared) -> ShownTable:
    """Verdict, cost, means with intervals and paired differences; the best first. What a phone shows first comes first."""
    comparison = compared.comparison
    firsts = [row.against[0] for row in compared.ranked if row.against]
    ends = [end for each in firsts for end in (*each.interval, each.low, each.mean, each.high)]
    known = [end for end in ends if math.isfinite(end)] + [0.0]
    with_rows = any(first.has_rows for first in firsts)
    columns = [
        ShownColumn("method"),
        ShownColumn("verdict"),
        ShownColumn("cost", numeric=True, csv=("x",), hint="selection and training, in single-task training runs"),
        ShownColumn(
            comparison.metric, numeric=True, csv=("mean", "low", "high"), hint="mean over seeds, 95 % interval"
        ),
        ShownColumn(
            f"against {comparison.baseline}",
            numeric=True,
            csv=("difference", "interval_low", "interval_high"),
            hint="paired over the same seeds; 95 % for other seeds" + (" and other report rows" if with_rows else ""),
        ),
        ShownColumn("", csv=(), kind="glyph"),
    ]
    rows = [_comparison_row(row, (min(known), max(known))) for row in compared.ranked]
    notes = ["Intervals cover 95 % for each method alone; the thick part is over seeds alone."] if len(rows) > 2 else []
    if any(row.role == "method" for row in comparison.rows) and len(comparison.seeds) >= verdicts.FEWEST_SEEDS:
        notes += [
            f"A method helps if it beats {verdicts.to_beat(comparison)}, corrected for the number of methods.",
            verdicts.ERROR_RATES,
        ]
    return ShownTable("comparison", columns, rows, " ".join(notes))


def _comparison_row(row: Row, span: tuple[float, float]) -> list[Cell]:
    tone = TONES.get(row.verdict, "")
    first = row.against[0] if row.against else Difference(to="", mean=math.nan)
    low, high = first.interval
    shown = f"{signed(first.mean)}  {between(low, high)}".rstrip() if row.against else ""
    return [
        text(row.method),
        text(row.verdict, style=f"tag {tone}"),
        number(row.x, ".1f", "x" + ("!" if row.stopped else "")),
        Cell(with_minus(fixed(row.mean) + half(row.mean, row.high)), tuple(map(plain, (row.mean, row.low, row.high)))),
        Cell(with_minus(shown), tuple(map(plain, (first.mean, low, high)))),
        Cell("", (), graphic=interval_glyph(first, span, tone) if row.against else None),
    ]


def differences_table(compared: Compared) -> ShownTable | None:
    """What the verdicts rest on besides: the interval over seeds alone, the differences to the other controls, both p-values."""
    controls = compared.comparison.controls
    rows = [row for row in compared.ranked if row.against]
    if not rows:
        return None
    columns = [
        ShownColumn("method"),
        ShownColumn("p alone", numeric=True, csv=("p",)),
        ShownColumn("p, corrected", numeric=True, csv=("p_corrected",), hint="for the number of methods (Holm)"),
        ShownColumn(
            "over seeds alone", numeric=True, csv=("seeds_low", "seeds_high"), hint="95 %, on these report rows"
        ),
        *(
            ShownColumn(f"against {name}", numeric=True, csv=(f"to {name}", f"to {name} low", f"to {name} high"))
            for name in controls
        ),
    ]
    cells = [
        [
            text(row.method),
            number(row.p_value),
            number(row.p_corrected),
            Cell(
                with_minus(between(row.against[0].low, row.against[0].high)),
                tuple(map(plain, (row.against[0].low, row.against[0].high))),
            ),
            *(_to_control(row.to(name)) for name in controls),
        ]
        for row in rows
    ]
    return ShownTable("differences", columns, cells)


def _to_control(difference: Difference | None) -> Cell:
    if difference is None:
        return Cell("", ("", "", ""))
    low, high = difference.interval
    shown = f"{signed(difference.mean)}  {between(low, high)}".rstrip()
    return Cell(with_minus(shown), tuple(map(plain, (difference.mean, low, high))))


def details_table(compared: Compared) -> ShownTable:
    """What else is known of each method: the other statistics, and the cost in all its units."""
    rows = compared.ranked
    values = [_details(row) for row in rows]
    known = [each for each in DETAILS if any(_is_known(found[each[0]]) for found in values)]
    columns = [ShownColumn("method"), *(ShownColumn(title, numeric=True, csv=(key,)) for key, title, _ in known)]
    cells = [
        [text(row.method), *(_detail(key, found[key], form) for key, _, form in known)]
        for row, found in zip(rows, values, strict=True)
    ]
    return ShownTable("details", columns, cells)


def _detail(key: str, value: float | None, form: str) -> Cell:
    cell = number(value, form)
    if key == "effect_size" and value is not None and abs(value) > HUGE:
        return replace(cell, text=with_minus(f"{'>' if value > 0 else '<'} {math.copysign(HUGE, value):+g}"))
    return cell


def _details(row: Row) -> dict[str, float | None]:
    first = row.against[0] if row.against else Difference(to="", mean=math.nan)
    own = (
        "probability_best",
        "p_value",
        "p_corrected",
        "selection_x",
        "examples",
        "tokens",
        "seconds",
        "peak_memory_mb",
    )
    return {name: getattr(row, name) for name in own} | {
        name: getattr(first, name) for name in ("effect_size", "p_seeds")
    }


# A column is shown where a comparison has it.
DETAILS = (
    ("p_value", "p alone", ".3f"),
    ("p_corrected", "p, corrected", ".3f"),
    ("p_seeds", "p over seeds alone", ".3f"),
    ("probability_best", "probability of being best", ".0%"),
    ("effect_size", "effect size", "+.2f"),
    ("selection_x", "selection (x)", ".1f"),
    ("examples", "examples", ",.0f"),
    ("tokens", "tokens", ",.0f"),
    ("seconds", "seconds", ",.1f"),
    ("peak_memory_mb", "peak memory (MB)", ",.0f"),
)


def _is_known(value: float | None) -> bool:
    return value is not None and math.isfinite(value)


def chosen_table(compared: Compared) -> ShownTable | None:
    """In which share of the seeds each method chose each candidate."""
    methods = [row for row in compared.ranked if row.role == "method"]
    candidates = list(dict.fromkeys(name for row in methods for name in row.chosen))
    if not candidates:
        return None
    rows = []
    for row in methods:
        shares = [row.chosen.get(name, 0.0) for name in candidates]
        cells = [Cell(f"{share:.0%}" if share else "·", (share,), f"heat-{round(share * 4)}") for share in shares]
        rows.append([text(row.method), *cells])
    return ShownTable(
        "chosen", [ShownColumn("method"), *(ShownColumn(name, numeric=True) for name in candidates)], rows
    )


def mixture_table(recipe: Recipe, rows: Mapping[str, Mapping[str, int]]) -> ShownTable:
    """The phases of a recipe, task by task."""
    columns = [
        ShownColumn("phase", numeric=True),
        ShownColumn("task"),
        ShownColumn("share of batches", numeric=True),
        ShownColumn("loss weight", numeric=True),
        ShownColumn("rows used", numeric=True),
        ShownColumn("order"),
    ]
    out = []
    for index, phase in enumerate(recipe.phases, start=1):
        total = sum(phase.shares.values())
        for name in sorted(phase.tasks, key=lambda name: (name != recipe.primary, -phase.shares[name])):
            every = rows.get(name, {}).get("train")
            used = len(phase.subsets[name].ids) if name in phase.subsets else every
            shown = "all" if used is None else f"{used:,}" + (f" of {every:,}" if every and every != used else "")
            out.append(
                [
                    number(index, "d"),
                    text(name),
                    number(phase.shares[name] / total, ".1%"),
                    number(phase.weights.get(name, 1.0), ".3g"),
                    Cell(shown, (used,)),
                    text(phase.order),
                ]
            )
    return ShownTable("mixture", columns, out)


COSTS = ("x", "batches", "examples", "tokens", "evaluations", "trials", "seconds")


def cost_table(run: ReportedRun) -> ShownTable:
    """What selection and training cost."""
    columns = [ShownColumn("", csv=("what",)), *(ShownColumn(name, numeric=True) for name in COSTS)]
    chosen = run.selection
    seconds = 0.0 if chosen is None else sum(task.seconds for task in chosen.meter.tasks.values())
    rows = [_cost_row("selection", Spent.of(run.recipe.cost, seconds))]
    training = run.scores.training if run.scores is not None else run.outcome.training if run.outcome else None
    if training is not None:
        rows.append(_cost_row("training", training))
    return ShownTable("cost", columns, rows)


def _cost_row(what: str, spent: Spent) -> list[Cell]:
    counts = [number(getattr(spent, name), ",.0f") for name in COSTS[1:-1]]
    return [text(what), number(spent.x, ".1f", "x"), *counts, number(spent.seconds or None, ",.1f")]


def _sentence(words: str) -> str:
    return words[:1].upper() + words[1:].rstrip(".") + "."
