"""From outcomes to a table: means, intervals, paired differences to the controls, and verdicts corrected for many methods."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean

import numpy as np

from sidequest.numerics.statistics import (
    holm,
    mean_interval,
    paired_comparison,
    probability_best,
    seeds_and_rows,
    verdict,
)
from sidequest.records.comparisons import Comparison, Difference, MissingCell, Outcome, Role, Row, Verdict
from sidequest.records.controls import CONTROLS
from sidequest.records.runs import Evaluation
from sidequest.runs.rows import Cell, resampled_scores
from sidequest.runs.setup import Setup
from sidequest.tasks.majority import majority_score

BASELINE = "single"
AVERAGE_BASELINE = "uniform"  # where the goal is the average of all tasks, no task is the primary


def baseline_of(setup: Setup) -> str:
    """What differences are taken to."""
    return AVERAGE_BASELINE if setup.suite.goal == "average" else BASELINE


def summarise(
    setup: Setup,
    outcomes: Sequence[Outcome],
    methods: Sequence[str],
    seeds: Sequence[int],
    budget: float | None = None,
    *,
    directory: Path | None = None,
    missing: Sequence[MissingCell] = (),
    command: str = "",
    controls: Collection[str] = (),
) -> Comparison:
    """The table over these methods, in this order; a method without any outcome is left out.

    directory: of the comparison, whose cells hold their predictions; without it there are no intervals over rows.
    controls: what has to be beaten even if none of its cells is there: a control that failed must not make a verdict easier.
    """
    drawn = resampled_scores(setup, outcomes, directory) if directory is not None else {}
    by_method = {
        method: {outcome.seed: outcome for outcome in outcomes if outcome.method == method} for method in methods
    }
    by_method = {method: found for method, found in by_method.items() if found}
    baseline = baseline_of(setup)
    wanted = {*by_method, *controls, *(cell.method for cell in missing)}
    required = [name for name in CONTROLS if name in wanted]
    # Where the goal is the average, policies are compared with each other: the others are there to be seen.
    to_beat = [baseline] if setup.suite.goal == "average" else [baseline, *required]
    roles: dict[str, Role] = {
        name: "baseline" if name == baseline else "control" if name in required else "method" for name in by_method
    }
    against = {"baseline": [], "control": [baseline], "method": to_beat}
    differences = {method: _differences(by_method, drawn, method, against[roles[method]]) for method in by_method}
    claims = {method: _claim(differences[method], to_beat) for method in by_method if roles[method] == "method"}
    # Corrected for many comparisons: where nothing helps, *any* claim that something does appears at the stated rate.
    corrected = dict(zip(claims, holm(list(claims.values())).tolist(), strict=True)) if claims else {}
    likely = _probability_best(by_method)
    rows = [
        _row(
            method,
            roles[method],
            list(by_method[method].values()),
            differences[method],
            claims.get(method, math.nan),
            corrected.get(method, math.nan),
            likely.get(method, math.nan),
            setup.suite.candidates,
        )
        for method in by_method
    ]
    task = setup.suite.tasks[setup.suite.primary]
    average = setup.suite.goal == "average"
    return Comparison(
        suite=setup.suite.name,
        primary=setup.suite.primary,
        goal=setup.suite.goal,
        metric="mean score" if average else task.metric,
        report_rows=len(task.splits["report"]) if "report" in task.splits else None,
        seeds=list(seeds),
        baseline=baseline,
        controls=[] if average else required,
        majority=None if average else majority_score(task),
        rows=tuple(rows),
        outcomes=tuple(outcomes),
        missing=tuple(missing),
        command=command,
        budget=budget,
        tuning=setup.tuning or "",
        still_improving=still_improving([outcome.history for outcome in by_method.get(baseline, {}).values()]),
    )


def still_improving(histories: Sequence[Sequence[Evaluation]]) -> bool:
    """Whether training ended too early, by its scores on *select*: the last evaluation is the best on most seeds, and on average
    the last third of the evaluations still brought a tenth of all that was gained."""
    curves = [np.array([evaluation.score for evaluation in history]) for history in histories if len(history) > 2]
    if not curves:
        return False
    late = fmean(float(curve[-1] - curve[-1 - len(curve) // 3]) for curve in curves)
    whole = fmean(float(curve.max() - curve.min()) for curve in curves)
    last_is_best = fmean(int(curve.argmax()) == len(curve) - 1 for curve in curves)
    return last_is_best > 0.5 and late > 0 and late >= 0.1 * whole


def _differences(
    outcomes: Mapping[str, Mapping[int, Outcome]],
    drawn: Mapping[Cell, np.ndarray],
    method: str,
    controls: Sequence[str],
) -> tuple[Difference, ...]:
    out = []
    for control in controls:
        both = [seed for seed in outcomes[method] if seed in outcomes.get(control, {})]
        if control == method or not both:
            continue
        ours, theirs = ([outcomes[name][seed].score for seed in both] for name in (method, control))
        paired = paired_comparison(ours, theirs, resamples=0)
        rows = None
        if all((name, seed) in drawn for seed in both for name in (method, control)):
            resampled = np.stack([drawn[method, seed] - drawn[control, seed] for seed in both])
            rows = seeds_and_rows(np.subtract(ours, theirs), resampled)
        out.append(
            Difference(
                to=control,
                mean=paired.mean,
                low=paired.low,
                high=paired.high,
                rows_low=rows.low if rows else math.nan,
                rows_high=rows.high if rows else math.nan,
                p_value=rows.p_value if rows else paired.p_value,
                p_seeds=paired.p_value,
                effect_size=paired.effect_size,
                n=paired.n,
            )
        )
    # The first is to the baseline: without it the others say nothing about help or harm.
    return tuple(out) if out and out[0].to == controls[0] else ()


def _claim(differences: Sequence[Difference], to_beat: Sequence[str]) -> float:
    """The p-value of what a verdict would say: that the method is above *every* control, or that it is below the baseline.

    A claim about all controls holds if each of its parts does, so the largest of their p-values is its own (an
    intersection-union test) and the number of controls needs no correction. Where the difference to one of them is unknown,
    because its cells failed, there is no such claim.
    """
    known = {difference.to for difference in differences}
    if known.issuperset(to_beat) and all(difference.mean > 0 for difference in differences):
        return max(difference.p_value for difference in differences)
    if differences and differences[0].mean < 0:
        return differences[0].p_value
    return 1.0


def _verdict(role: Role, differences: Sequence[Difference], p_corrected: float) -> Verdict:
    if role != "method":
        return role
    if not differences:
        return "no verdict"
    return verdict(differences[0].mean, p_corrected, min(difference.n for difference in differences))


def _row(
    method: str,
    role: Role,
    outcomes: Sequence[Outcome],
    differences: tuple[Difference, ...],
    p_value: float,
    p_corrected: float,
    likely: float,
    candidates: Iterable[str],
) -> Row:
    mean = mean_interval([outcome.score for outcome in outcomes])
    peaks = [outcome.peak_memory / 1e6 for outcome in outcomes if outcome.peak_memory is not None]
    return Row(
        method=method,
        role=role,
        seeds=[outcome.seed for outcome in outcomes],
        scores=[outcome.score for outcome in outcomes],
        mean=mean.mean,
        low=mean.low,
        high=mean.high,
        against=differences,
        verdict=_verdict(role, differences, p_corrected),
        p_value=p_value,
        p_corrected=p_corrected,
        probability_best=likely,
        x=fmean(outcome.x for outcome in outcomes),
        selection_x=fmean(outcome.selection.x for outcome in outcomes),
        seconds=fmean(outcome.seconds for outcome in outcomes),
        examples=fmean(outcome.examples for outcome in outcomes),
        tokens=fmean(outcome.tokens for outcome in outcomes),
        peak_memory_mb=max(peaks, default=None),
        stopped=fmean(outcome.stopped for outcome in outcomes),
        chosen={name: fmean(name in outcome.auxiliaries for outcome in outcomes) for name in candidates},
    )


def _probability_best(outcomes: Mapping[str, Mapping[int, Outcome]]) -> dict[str, float]:
    """Over the seeds that all methods have."""
    common = [seed for seed in next(iter(outcomes.values()), {}) if all(seed in found for found in outcomes.values())]
    if not common:
        return {}
    return probability_best({method: [found[seed].score for seed in common] for method, found in outcomes.items()})
