"""Learn from runs made elsewhere: a table of sets or mixtures and scores, from any trainer, gives a surface and a verdict."""

from __future__ import annotations

import itertools

import numpy as np

from sidequest.errors import DataError
from sidequest.formatting import between, signed
from sidequest.numerics.response_surface import SAME, Interval, Surface, best_surface, probability_best
from sidequest.records.fits import Estimate, FitRecord, MixtureGain, TaskEffect
from sidequest.runs.run_table import RunTable

MOST_MIXTURES = 4096  # that are considered: all sets of up to twelve tasks
SHOWN, NEXT = 20, 3
BENT = 0.01  # p of lack of fit below which a user is warned


def fit_runs(runs: RunTable, *, seed: int = 0) -> FitRecord:
    """The surface, what each auxiliary adds, the best mixture and what to run next."""
    try:
        surface, by_task = best_surface(runs.tasks, runs.amounts, runs.scores, runs.blocks)
    except ValueError as error:
        raise DataError(str(error), file=runs.source) from None
    mixtures = considered(runs.amounts) if surface.cells is None else np.unique(runs.amounts, axis=0)
    chances = probability_best(surface, mixtures, np.random.default_rng(seed))
    counts = np.array([int((np.abs(runs.amounts - mixture) < SAME).all(axis=1).sum()) for mixture in mixtures])
    means = surface.features(mixtures) @ surface.coefficients
    best = int(means.argmax())

    def shown(index: int, gain: Interval | None = None) -> MixtureGain:
        gain = gain if gain is not None else surface.gain(mixtures[index])
        amounts = dict(zip(runs.tasks, mixtures[index].tolist(), strict=True))
        return MixtureGain(amounts=amounts, gain=_estimate(gain), chance=float(chances[index]), runs=int(counts[index]))

    ranked = sorted(range(len(mixtures)), key=lambda i: (-chances[i], -means[i]))
    band = surface.gain_of_best(mixtures[best], len(mixtures) - 1)
    # What could still be best and was looked at least: each run there moves the answer most.
    promising = [i for i in ranked if chances[i] >= 0.05] or ranked[:1]
    following = sorted(promising, key=lambda i: (counts[i] - chances[i] * len(runs.scores), -chances[i]))[:NEXT]
    return FitRecord(
        source=runs.source,
        score=runs.score,
        form=surface.form,
        runs=len(runs.scores),
        blocks=len(set(runs.blocks)) if runs.blocks else 0,
        residual=surface.residual,
        alone=_estimate(surface.mean(np.zeros(len(runs.tasks)))),
        effects=[
            TaskEffect(task=task, effect=_estimate(by_task.coefficient(j)), runs=int((runs.amounts[:, j] > 0).sum()))
            for j, task in enumerate(runs.tasks)
        ],
        best=shown(best, band),
        mixtures=[shown(index) for index in ranked[:SHOWN]],
        next=[shown(index) for index in following],
        lack_of_fit=surface.lack_of_fit,
        verdict=_verdict(shown(best, band), runs.score),
        effects_per_amount=by_task.form == "log-linear",
        warnings=_warnings(surface, repeated=len(np.unique(runs.amounts, axis=0)) < len(runs.scores)),
        left_out=list(runs.left_out),
    )


def considered(amounts: np.ndarray) -> np.ndarray:
    """All combinations of the amounts that each task was ever run with; where they are too many, the mixtures that were run
    and those that differ from them in one task."""
    levels = [sorted({0.0, *column.tolist()}) for column in amounts.T]
    if np.prod([float(len(values)) for values in levels]) <= MOST_MIXTURES:
        return np.array(list(itertools.product(*levels)))
    found = {tuple(row) for row in amounts.tolist()} | {tuple([0.0] * amounts.shape[1])}
    for row in list(found):
        for j, values in enumerate(levels):
            found |= {(*row[:j], value, *row[j + 1 :]) for value in values}
    return np.array(sorted(found)[:MOST_MIXTURES])


def _verdict(best: MixtureGain, score: str) -> str:
    if not any(best.amounts.values()):
        return "no auxiliary helps: the primary alone has the highest mean"
    interval = between(best.gain.low, best.gain.high)
    shown = f"{best.name}: {signed(best.gain.value)} {score} against the primary alone {interval}"
    return (
        f"auxiliaries help: {shown}"
        if best.gain.low > 0
        else f"not shown that any auxiliary helps: the best is {shown}"
    )


def _warnings(surface: Surface, *, repeated: bool) -> list[str]:
    if surface.form == "separate":
        return [
            "tasks help or hurt only together, so every mixture has a mean of its own, and those not run are unknown"
        ]
    if not repeated:
        return ["no mixture was run twice, so what the surface misses cannot be told from noise"]
    if surface.lack_of_fit is not None and surface.lack_of_fit < BENT:
        return [
            f"the surface misses something (p = {surface.lack_of_fit:.2g}): tasks may help or hurt only together; "
            "run the best mixture itself before you trust it"
        ]
    return []


def _estimate(interval: Interval) -> Estimate:
    return Estimate(value=interval.value, low=interval.low, high=interval.high)
