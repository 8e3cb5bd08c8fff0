"""A comparison in words: the same in the shell, on the page and in Python."""

from __future__ import annotations

import math

from sidequest.formatting import between, fixed, is_zero, seeds_of, signed, telling
from sidequest.records.comparisons import Comparison, Row
from sidequest.records.controls import PROBE

FEWEST_SEEDS = 3  # below that no difference can be told from noise
HIGHEST = 1.0  # of every metric that has a highest value
MOSTLY = 0.75  # of the trained models
ERROR_RATE = 0.05  # of claims, that something helps or that it hurts, where nothing does either

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
        return f"{best.method} is better than {comparison.baseline}: {telling(best.difference)} {metric}"
    if best is not None:
        return (
            f"auxiliary tasks help: {best.method} is {telling(best.difference)} {metric} against {comparison.baseline}"
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
    if lost := missing_controls(comparison):
        return f"not shown: {listed(lost)} {_is(lost)} missing, and to help a method has to beat {to_beat(comparison)}"
    return f"not shown: no method beats {to_beat(comparison)} beyond the noise of {seeds_of(seeds)}"


def best_row(comparison: Comparison) -> Row | None:
    """The method that the verdict speaks of: the highest of those that help."""
    helping = [row for row in comparison.rows if row.verdict == "helps"]
    return max(helping, key=lambda row: row.difference) if helping else None


def to_beat(comparison: Comparison) -> str:
    """The controls in words, as `single, single-long and probe`."""
    return listed([comparison.baseline, *comparison.controls])


def missing_controls(comparison: Comparison) -> list[str]:
    """Controls that should be there and have no cell: they failed, so that nothing was shown to be above them."""
    return [name for name in comparison.controls if comparison.row(name) is None]


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
    if best is None and methods and len(comparison.seeds) >= FEWEST_SEEDS and not model_is_the_problem(comparison):
        widest = max(methods, key=lambda row: row.against[0].interval[1])
        most = widest.against[0].interval[1]
        if most > 0 and not is_zero(signed(most)):
            out.append(
                f"A gain of up to {signed(most)} ({widest.method}) is not ruled out either: more seeds would tell."
            )
    if comparison.tuning:
        out.append(f"The primary was tuned first, for all methods alike: {comparison.tuning}.")
    hurting = [row.method for row in comparison.rows if row.verdict == "hurts"]
    if hurting:
        out.append(f"Worse than {comparison.baseline}: {', '.join(hurting)}.")
    return out


def _interval_sentences(comparison: Comparison, best: Row, single: Row) -> list[str]:
    difference = best.against[0]
    out = []
    if difference.has_rows:
        out.append(
            f"For other seeds and other report rows of the same kind the difference lies in {between(*difference.interval)}, "
            f"for other seeds on these rows in {between(difference.low, difference.high)} (95 % intervals, "
            f"{seeds_of(difference.n)})."
        )
    elif math.isfinite(difference.low):
        out.append(
            f"Over the same {seeds_of(difference.n)} the difference lies in {between(*difference.interval)} (95 % interval)."
        )
    if len(best.against) > 1:
        others = [f"{signed(each.mean)} against {each.to}" for each in best.against[1:]]
        out.append(f"It is {listed(others)}.")
    out.append(f"It costs {fixed(best.x, 1)} single-task training runs in all, {single.method} {fixed(single.x, 1)}.")
    return out


def warnings(comparison: Comparison) -> list[str]:
    """What a reader must know before believing anything."""
    return [
        *_missing_cells(comparison),
        *_weak_model(comparison),
        *_nothing_to_gain(comparison),
        *_hardly_trained(comparison),
        *_few_seeds(comparison),
        *_short_training(comparison),
    ]


def notes(comparison: Comparison) -> list[str]:
    """Why a verdict is not what a row's own numbers suggest."""
    methods = [row for row in comparison.rows if row.role == "method" and row.against]
    said = [note for row in methods for note in (*_corrected(row, len(methods)), *_other_rows(row), *_beaten(row))]
    return [*_without_controls(comparison, methods), *said, *_random_size(comparison), *comparison.changes]


def _without_controls(comparison: Comparison, methods: list[Row]) -> list[str]:
    """A control whose cells failed, or that has no seed in common with a method, is not beaten by being away."""
    out = []
    lost = missing_controls(comparison)
    if lost and comparison.row(comparison.baseline) is not None:
        out.append(
            f"{listed(lost)} {_is(lost)} missing, so no method can be shown to help: it would have to beat "
            f"{to_beat(comparison)}."
        )
    for row in methods:
        apart = [name for name in comparison.controls if name not in lost and row.to(name) is None]
        if apart:
            out.append(f"{row.method} has no seed in common with {listed(apart)}, so it cannot be shown to help.")
    return out


def _random_size(comparison: Comparison) -> list[str]:
    """Methods that were added after the random subset was drawn have no part in its size."""
    known = {*comparison.sized_by, comparison.baseline, "all", "size", "random-subset"}
    added = [row.method for row in comparison.rows if row.role == "method" and row.method not in known]
    if not comparison.sized_by or not added:
        return []
    return [
        f"random-subset is as large as what {listed(comparison.sized_by)} chose; {listed(added)} came later and changed "
        "nothing of it."
    ]


def _corrected(row: Row, methods: int) -> list[str]:
    if not row.p_value <= ERROR_RATE < row.p_corrected:
        return []
    return [
        f"{row.method}: p = {fixed(row.p_value)} alone, {fixed(row.p_corrected)} among {methods} methods. Of many methods "
        f"without any effect one often looks good by chance, so the verdict takes the second (Holm's correction); asked alone, "
        f'{row.method} would count as "{_word(row)}".'
    ]


def _other_rows(row: Row) -> list[str]:
    first = row.against[0]
    if not (first.has_rows and first.p_seeds <= ERROR_RATE < first.p_value):
        return []
    return [
        f"{row.method}: {signed(first.mean)} is beyond the noise of the seeds on these report rows "
        f"({between(first.low, first.high)}), but with other rows it could be {between(*first.interval)}: a larger report "
        "split would tell."
    ]


def _beaten(row: Row) -> list[str]:
    first, *others = row.against
    above = first.mean > 0 and first.p_value <= ERROR_RATE
    lost = [each for each in others if not (each.mean > 0 and each.p_value <= ERROR_RATE)]
    if not above or not lost:
        return []
    shown = listed([f"{each.to} ({signed(each.mean)} {between(*each.interval)})" for each in lost])
    return [f"{row.method} is above {first.to}, but not shown to be above {shown}."]


def _word(row: Row) -> str:
    return "helps" if row.difference > 0 else "hurts"


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
            f"primary (single) {fixed(single.mean)}. Fix that first (another kind of model, more steps, another rate): what "
            "helps a model that trains badly says little."
        )
    majority = comparison.majority
    if majority is not None and math.isfinite(single.low) and single.low <= majority:
        out.append(
            f"Single-task training is not clearly above the best constant answer ({fixed(majority)}): this model may be too weak "
            "for the primary task, and choices made with it should not be trusted for another model."
        )
    return out


def _nothing_to_gain(comparison: Comparison) -> list[str]:
    single = comparison.row(comparison.baseline)
    if single is None or not single.mean >= HIGHEST:
        return []
    return [
        f"{comparison.baseline} already has the highest {comparison.metric} that there is, {fixed(single.mean)} on report: "
        "nothing can be seen to help it there. Take harder rows, or more of them."
    ]


def _hardly_trained(comparison: Comparison) -> list[str]:
    """Models that begin as the plain read-out and score as it does after any training."""
    probe = comparison.row(PROBE)
    if probe is None or comparison.goal == "average" or probe.mean >= HIGHEST:
        return []
    untrained = dict(zip(probe.seeds, probe.scores, strict=True))
    trained = [
        score == untrained[seed]
        for row in comparison.rows
        if row.role != "control"
        for seed, score in zip(row.seeds, row.scores, strict=True)
        if seed in untrained
    ]
    if len(trained) < FEWEST_SEEDS or sum(trained) < MOSTLY * len(trained):
        return []
    return [
        f"{sum(trained)} of {len(trained)} trained models score exactly what the plain read-out of the features scores (probe, "
        f"{fixed(probe.mean)}): training hardly changes this model, so nothing can be seen to help or to hurt it. Tune it first "
        "(--tune 24), or take a model that learns more (--model hf)."
    ]


def _few_seeds(comparison: Comparison) -> list[str]:
    seeds = len(comparison.seeds)
    if seeds >= FEWEST_SEEDS:
        return []
    return [f"With {seeds_of(seeds)} no difference can be told from noise; use five or more."]


def _short_training(comparison: Comparison) -> list[str]:
    if not comparison.still_improving:
        return []
    return [
        f"{comparison.baseline} was still improving on select when its training ended: train longer (train.epochs or "
        "train.steps) before believing that anything helps it."
    ]


def _is(names: list[str]) -> str:
    return "is" if len(names) == 1 else "are"


def listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
