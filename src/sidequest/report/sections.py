"""What the page says, section by section, as plain data for the template. Nothing here is markup but `tabulating`'s glyphs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from sidequest.learning.fit import single_run_work
from sidequest.learning.meter import Meter
from sidequest.recipe import Recipe
from sidequest.report.reading import Compared, Run
from sidequest.report.tabulating import Cell, Column, Table, interval_glyph, number, signed, text
from sidequest.settings import TrainSettings

TONES = {"helps": "good", "hurts": "bad", "baseline": "base"}


def comparison_verdict(compared: Compared) -> dict[str, Any]:
    """The answer first, then what it rests on."""
    comparison, best = compared.comparison, compared.best
    single = next(row for row in compared.rows if row["verdict"] == "baseline")
    helps = best is not single
    metric, seeds = comparison["metric"], len(comparison["seeds"])
    sentences = []
    if helps:
        chosen = [name for name, share in best.get("chosen", {}).items() if share >= 0.5]
        with_what = f", mostly with {', '.join(chosen)}" if chosen else ""
        sentences.append(
            f"{best['method']} reaches {best['mean']:.3f} {metric}{with_what}; the primary alone reaches {single['mean']:.3f}."
        )
        if math.isfinite(best["difference_low"]):
            low, high = (signed(f"{best[key]:+.3f}") for key in ("difference_low", "difference_high"))
            sentences.append(
                f"The difference over the same {seeds} seeds lies between {low} and {high} (95 % interval). "
                f"The method costs {best['x']:.1f} single-task training runs in all, against {single['x']:.1f}."
            )
    else:
        sentences.append(f"Train {comparison['primary']} alone: it reaches {single['mean']:.3f} {metric}.")
    hurting = [row["method"] for row in compared.rows if row["verdict"] == "hurts"]
    if hurting:
        sentences.append(f"Worse than the primary alone: {', '.join(hurting)}.")
    warnings = []
    majority = comparison.get("majority")
    if majority is not None and math.isfinite(single["low"]) and single["low"] <= majority:
        warnings.append(
            f"Single-task training is not clearly above the most frequent class ({majority:.3f}): this model may be too weak for "
            "the primary task, and choices made with it should not be trusted for another model."
        )
    if seeds < 3:
        warnings.append(
            f"With {seeds} seed{'s' if seeds > 1 else ''} no difference can be told from noise; use five or more."
        )
    return {
        "headline": _sentence(comparison["verdict"]),
        "tone": "good" if helps else "base",
        "sentences": sentences,
        "warnings": warnings,
    }


def run_verdict(run: Run) -> dict[str, Any]:
    """What one run decided, and what its model scored."""
    recipe, scores = run.recipe, run.scores
    names = list(recipe.auxiliaries)
    headline = f"Train {recipe.primary} with {_listed(names)}" if names else f"Train {recipe.primary} alone"
    sentences = [_sentence(recipe.verdict)] if recipe.verdict else []
    warnings = []
    if scores.get("report"):
        shown = ", ".join(f"{name} {value:.4f}" for name, value in scores["report"].items())
        sentences.append(f"The final model on the report split: {shown}.")
        majority = scores.get("majority")
        if majority is not None:
            sentences.append(f"Always answering the most frequent class: {majority:.4f}.")
            if next(iter(scores["report"].values())) <= majority:
                warnings.append(
                    "This model is no better than the most frequent class: do not trust choices made with it."
                )
    else:
        sentences.append("The final model is not trained yet; sidequest train does it.")
    sentences.append("One run cannot say whether this helps; sidequest compare does, over seeds.")
    warnings += [str(each) for key in ("warnings", "notes") for each in recipe.evidence.get(key, [])]
    return {"headline": headline + ".", "tone": "base", "sentences": sentences, "warnings": warnings}


def comparison_table(compared: Compared) -> Table:
    """Means with intervals, paired differences, cost and verdict; the best first."""
    comparison = compared.comparison
    ends = [row[key] for row in compared.rows for key in ("difference_low", "difference_high", "difference")]
    known = [end for end in ends if math.isfinite(end)] + [0.0]
    span = (min(known), max(known))
    columns = [
        Column("method"),
        Column(comparison["metric"], numeric=True, csv=("mean", "low", "high"), hint="mean over seeds, 95 % interval"),
        Column(
            "against single",
            numeric=True,
            csv=("difference", "difference_low", "difference_high"),
            hint="paired over the same seeds, 95 % interval",
        ),
        Column("", csv=()),
        Column("verdict"),
        Column("cost", numeric=True, csv=("x",), hint="selection and training, in single-task training runs"),
    ]
    rows = []
    for row in sorted(compared.rows, key=lambda row: -row["mean"]):
        tone = TONES.get(row["verdict"], "")
        baseline = row["verdict"] == "baseline"
        half = row["high"] - row["mean"]
        mean = f"{row['mean']:.3f}" + (f" ± {half:.3f}" if math.isfinite(half) else "")
        difference = "" if baseline else signed(f"{row['difference']:+.3f}")
        if not baseline and math.isfinite(row["difference_low"]):
            difference += signed(f"  [{row['difference_low']:+.3f}, {row['difference_high']:+.3f}]")
        glyph = interval_glyph(row["difference_low"], row["difference"], row["difference_high"], span, tone)
        rows.append(
            [
                text(row["method"]),
                Cell(signed(mean), tuple(_known(row[key]) for key in ("mean", "low", "high"))),
                Cell(
                    difference, tuple(_known(row[key]) for key in ("difference", "difference_low", "difference_high"))
                ),
                Cell("", (), graphic=None if baseline else glyph),
                text(row["verdict"], style=f"tag {tone}"),
                number(row["x"], ".1f", "x"),
            ]
        )
    note = (
        "Intervals cover 95 % for each method alone. Verdicts are corrected for many comparisons: where nothing helps, any claim "
        "that something does appears in at most 5 % of comparisons."
    )
    return Table("comparison", columns, rows, note if len(rows) > 2 else "")


def details_table(compared: Compared) -> Table:
    """What else is known of each method: the other statistics, and the cost in all its units."""
    known = [each for each in DETAILS if any(_is_number(row.get(each[0])) for row in compared.rows)]
    columns = [Column("method"), *(Column(title, numeric=True, csv=(key,)) for key, title, _ in known)]
    rows = [
        [text(row["method"]), *(number(row.get(key), form) for key, _, form in known)]
        for row in sorted(compared.rows, key=lambda row: -row["mean"])
    ]
    return Table("details", columns, rows)


# A column is shown where a comparison has it.
DETAILS = (
    ("probability_best", "probability of being best", ".0%"),
    ("p_value", "p, corrected", ".3f"),
    ("effect_size", "effect size", "+.2f"),
    ("bootstrap_low", "bootstrap from", "+.3f"),
    ("bootstrap_high", "to", "+.3f"),
    ("selection_x", "selection (x)", ".1f"),
    ("examples", "examples", ",.0f"),
    ("tokens", "tokens", ",.0f"),
    ("seconds", "seconds", ",.1f"),
    ("peak_memory_mb", "peak memory (MB)", ",.0f"),
)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def chosen_table(compared: Compared) -> Table | None:
    """In which share of the seeds each method chose each candidate."""
    candidates = list(dict.fromkeys(name for row in compared.rows for name in row.get("chosen", {})))
    if not candidates:
        return None
    rows = []
    for row in sorted(compared.rows, key=lambda row: -row["mean"]):
        shares = [float(row["chosen"].get(name, 0.0)) for name in candidates]
        cells = [Cell(f"{share:.0%}" if share else "·", (share,), f"heat-{round(share * 4)}") for share in shares]
        rows.append([text(row["method"]), *cells])
    return Table("chosen", [Column("method"), *(Column(name, numeric=True) for name in candidates)], rows)


def mixture_table(recipe: Recipe, rows: Mapping[str, Mapping[str, int]]) -> Table:
    """The phases of a recipe, task by task."""
    columns = [
        Column("phase", numeric=True),
        Column("task"),
        Column("share of batches", numeric=True),
        Column("loss weight", numeric=True),
        Column("rows used", numeric=True),
        Column("order"),
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
    return Table("mixture", columns, out)


def cost_table(run: Run) -> Table:
    """What selection and training cost."""
    cost = run.recipe.cost
    columns = [
        Column("", csv=("what",)),
        *(Column(name, numeric=True) for name in COSTS),
        Column("seconds", numeric=True),
    ]

    def line(what: str, meter: Mapping[str, Any], x: float | None, found: Mapping[str, Any]) -> list[Cell]:
        tasks = meter.get("tasks", {}).values()
        spent = {key: sum(task.get(key, 0) for task in tasks) for key in (*COSTS[1:-1], "seconds")}
        spent["trials"] = meter.get("trials", 0)
        spent |= {key: value for key, value in found.items() if key in COSTS}
        return [
            text(what),
            number(x, ".1f", "x"),
            *(number(spent[key], ",.0f") for key in COSTS[1:]),
            number(spent["seconds"] or None, ",.1f"),
        ]

    selection = run.part("selection.json").get("meter", {})
    rows = [line("selection", selection, cost.x, cost.model_dump())]
    if meter := run.scores.get("meter"):
        rows.append(line("training", meter, _training_x(run, meter), {}))
    return Table("cost", columns, rows)


def _training_x(run: Run, meter: dict[str, Any]) -> float | None:
    """The final training in single-task training runs, from the sizes and settings that the recipe was made with."""
    if "training_x" in run.scores:
        return run.scores["training_x"]
    provenance = run.recipe.provenance
    rows = provenance.get("rows", {}).get(run.recipe.primary, {})
    if "train" not in rows or "train" not in provenance:
        return None
    unit = single_run_work(rows["train"], rows.get("select", 0), TrainSettings(**provenance["train"]))
    return Meter.from_json(meter).cost(unit).x


COSTS = ("x", "batches", "examples", "tokens", "evaluations", "trials")


def _known(value: float) -> float | str:
    return value if math.isfinite(value) else ""


def _sentence(words: str) -> str:
    return words[:1].upper() + words[1:].rstrip(".") + "."


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
