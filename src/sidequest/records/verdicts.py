"""A comparison in words: the same in the shell, on the page and in Python."""

from __future__ import annotations

import math

from sidequest.formatting import between, fixed, seeds_of, signed
from sidequest.records.comparisons import Comparison, Row
from sidequest.records.controls import PROBE

FEWEST_SEEDS = 3  # below that no difference can be told from noise

# Said in the docs and on the page, and simulated by the tests.
ERROR_RATES = (
    'Where no method differs from the baseline, some "helps" appears in at most 2.5 % of comparisons, '
    'and some "helps" or "hurts" in at most 5 %.'
)


def headline(comparison: Comparison) -> str:
    """The answer."""
    best = best_row(comparison)
    seeds, metric = len(comparison.seeds), comparison.metric
    methods = [row for row in comparison.rows if row.role == "method"]
    if best is not None and comparison.goal == "average":
        return f"{best.method} is better than {comparison.baseline}: {signed(best.difference)} {metric}"
    if best is not None:
        return (
            f"auxiliary tasks help: {best.method} is {signed(best.difference)} {metric} against {comparison.baseline}"
        )
    if comparison.row(comparison.baseline) is None:
        return f"no verdict: {comparison.baseline} is missing"
    if not methods:
        return "nothing to compare: the suite has no candidates"
    if seeds < FEWEST_SEEDS:
        return f"no verdict: {seeds_of(seeds)} cannot tell a difference from noise; use five or more"
    if model_is_the_problem(comparison):
        return "the model is the problem: a plain read-out of its features (probe) beats training it on the primary"
    if all(row.verdict == "hurts" for row in methods):
        return f"no auxiliary helps: every method is below {comparison.baseline}"
    return f"not shown: no method beats {to_beat(comparison)} beyond the noise of {seeds_of(seeds)}"


def best_row(comparison: Comparison) -> Row | None:
    """The method that the verdict speaks of: the highest of those that help."""
    helping = [row for row in comparison.rows if row.verdict == "helps"]
    return max(helping, key=lambda row: row.difference) if helping else None


def to_beat(comparison: Comparison) -> str:
    """The controls in words, as `single, single-long and probe`."""
    return listed([comparison.baseline, *comparison.controls])


def sentences(comparison: Comparison) -> list[str]:
    """What the verdict rests on."""
    best, single = best_row(comparison), comparison.row(comparison.baseline)
    metric = comparison.metric
    out = []
    if best is not None and single is not None:
        chosen = [name for name, share in best.chosen.items() if share >= 0.5]
        with_what = f", mostly with {', '.join(chosen)}" if chosen else ""
        out.append(
            f"{best.method} reaches {fixed(best.mean)} {metric}{with_what}; {single.method} reaches {fixed(single.mean)}."
        )
        out += _interval_sentences(comparison, best, single)
    elif single is not None and comparison.goal != "average":
        out.append(f"{comparison.primary} alone reaches {fixed(single.mean)} {metric}.")
    methods = [row for row in comparison.rows if row.role == "method" and row.to_baseline is not None]
    if best is None and methods and len(comparison.seeds) >= FEWEST_SEEDS:
        open_gain = max(methods, key=lambda row: row.against[0].high)
        if open_gain.against[0].high > 0:
            out.append(
                f"A gain of up to {signed(open_gain.against[0].high)} ({open_gain.method}) is not ruled out either: "
                "more seeds would tell."
            )
    hurting = [row.method for row in comparison.rows if row.verdict == "hurts"]
    if hurting:
        out.append(f"Worse than {comparison.baseline}: {', '.join(hurting)}.")
    return out


def _interval_sentences(comparison: Comparison, best: Row, single: Row) -> list[str]:
    difference = best.against[0]
    out = []
    if math.isfinite(difference.low):
        out.append(
            f"Over the same {seeds_of(difference.n)} the difference lies in {between(difference.low, difference.high)} "
            f"(95 % interval). The method costs {fixed(best.x, 1)} single-task training runs in all, against "
            f"{fixed(single.x, 1)}."
        )
    if math.isfinite(difference.rows_low):
        out.append(
            f"With other report rows of the same kind drawn too, it lies in "
            f"{between(difference.rows_low, difference.rows_high)}."
        )
    return out


def warnings(comparison: Comparison) -> list[str]:
    """What a reader must know before believing anything."""
    return [
        *_missing_cells(comparison),
        *_weak_model(comparison),
        *_few_seeds(comparison),
        *_few_rows(comparison),
        *_short_training(comparison),
    ]


def notes(comparison: Comparison) -> list[str]:
    """Why a verdict is not what a row's own numbers suggest."""
    alone = [row for row in comparison.rows if row.p_value <= 0.05 < row.p_corrected and row.role == "method"]
    compared = sum(row.role == "method" for row in comparison.rows)
    return [
        f"{row.method}: p = {fixed(row.p_value)} alone, {fixed(row.p_corrected)} among {compared} methods. Of many methods "
        f"without any effect one often looks good by chance, so the verdict takes the second (Holm's correction); asked alone, "
        f'{row.method} would count as "{"helps" if row.difference > 0 else "hurts"}".'
        for row in alone
    ]


def model_is_the_problem(comparison: Comparison) -> bool:
    """Whether a plain read-out of the model's features is clearly better than the model trained on the primary alone."""
    probe = comparison.row(PROBE)
    if probe is None or probe.to_baseline is None or comparison.goal == "average":
        return False
    return probe.to_baseline.low > 0 if probe.to_baseline.n >= FEWEST_SEEDS else probe.difference > 0


def _missing_cells(comparison: Comparison) -> list[str]:
    if not comparison.missing:
        return []
    cells = "; ".join(f"{cell.method} seed {cell.seed}: {cell.error}" for cell in comparison.missing)
    again = f"`{comparison.command}` repeats" if comparison.command else "The same call repeats"
    return [f"Missing, because it failed: {cells}. {again} what is missing and nothing else."]


def _weak_model(comparison: Comparison) -> list[str]:
    single, probe = comparison.row(comparison.baseline), comparison.row(PROBE)
    out: list[str] = []
    if single is None or comparison.goal == "average":
        return out
    if probe is not None and model_is_the_problem(comparison):
        out.append(
            f"The model is the problem: a plain read-out of its features (probe) scores {fixed(probe.mean)}, training it on the "
            f"primary (single) {fixed(single.mean)}. Mend that first (another kind of model, more steps, another rate): what "
            "helps a model that trains badly says little."
        )
    majority = comparison.majority
    if majority is not None and math.isfinite(single.low) and single.low <= majority:
        out.append(
            f"Single-task training is not clearly above the best constant answer ({fixed(majority)}): this model may be too weak "
            "for the primary task, and choices made with it should not be trusted for another model."
        )
    return out


def _few_seeds(comparison: Comparison) -> list[str]:
    seeds = len(comparison.seeds)
    if seeds >= FEWEST_SEEDS:
        return []
    return [f"With {seeds_of(seeds)} no difference can be told from noise; use five or more."]


def _few_rows(comparison: Comparison) -> list[str]:
    unsure = [
        row.method
        for row in comparison.rows
        if row.verdict == "helps" and any(difference.rows_low <= 0 for difference in row.against)
    ]
    if not unsure:
        return []
    rows = f"{comparison.report_rows:,} " if comparison.report_rows else ""
    return [
        f"Shown for these {rows}report rows only: with other rows of the same kind the gain of {listed(unsure)} could be "
        "zero. A larger report split would tell."
    ]


def _short_training(comparison: Comparison) -> list[str]:
    if not comparison.still_improving:
        return []
    return [
        f"{comparison.baseline} was still improving on select when its training ended: train longer (train.epochs or "
        "train.steps) before believing that anything helps it."
    ]


def listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
