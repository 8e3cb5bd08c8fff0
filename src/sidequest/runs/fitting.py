"""Learn from runs made elsewhere: a table of sets or mixtures and scores, from any trainer, gives a surface and a verdict.

A row of the table is one training run. One column is the score; `seed` (or another block) says which runs belong together; every
other column of numbers is an auxiliary, its value how much of it was used relative to the primary: 0 and 1 for sets. A column
`tasks` may name the set instead, as `pos+ner`.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sidequest.errors import DataError, nearest
from sidequest.formatting import between, signed
from sidequest.numerics.response_surface import SAME, Interval, Surface, best_surface, probability_best
from sidequest.records.fits import Estimate, FitRecord, MixtureGain, TaskEffect
from sidequest.tasks.readers import read_file
from sidequest.tasks.readers.table import Table

SCORES = ("score", "metric", "accuracy", "f1", "value", "dev", "eval")
BLOCKS = ("seed", "block", "repeat", "replicate")
SETS = ("tasks", "set", "mixture", "auxiliaries")
MOST_MIXTURES = 4096  # that are considered: all sets of up to twelve tasks
SHOWN, NEXT = 20, 3
LARGEST = 1e12  # of scores and amounts: squares of larger numbers leave nothing of small ones
BENT = 0.01  # p of lack of fit below which a user is warned


@dataclass(frozen=True)
class RunTable:
    """amounts float [runs, tasks]; blocks: one value per run, or None where no block holds two different mixtures."""

    source: str
    score: str
    tasks: tuple[str, ...]
    amounts: np.ndarray
    scores: np.ndarray
    blocks: list[str] | None


def read_runs(
    path: Path, *, score: str | None = None, block: str | None = None, primary: str | None = None
) -> RunTable:
    """score, block: columns, by default those with a usual name. primary: a column with the primary's own amount, by which the
    others are divided."""
    table = read_file(path)
    if not len(table):
        raise DataError("has no rows: a row is one training run", file=path)
    names = list(table.columns)
    score = _named(table, score, SCORES, "score")
    if score is None:
        raise DataError(
            f"no column is called {', '.join(SCORES)}; say which is the score: --score NAME. {nearest('score', names)}",
            file=path,
        )
    block = _named(table, block, BLOCKS, "block")
    sets = next((name for name in names if name.lower() in SETS and name not in (score, block)), None)
    if primary is not None:
        primary = table.name_of(primary)
    left = [name for name in names if name not in (score, block, sets, primary)]
    if sets is not None:
        tasks, amounts = _from_sets(table, sets)
    else:
        tasks, amounts = tuple(left), np.array([_numbers(table, name) for name in left]).T
    if not tasks:
        raise DataError(
            "no auxiliary: every column besides the score is one, its value how much of it a run used; or name sets in a "
            "column `tasks`",
            file=path,
        )
    if (amounts < 0).any():
        row, column = np.argwhere(amounts < 0)[0]
        raise table.fault(
            int(row), f"column {tasks[column]!r}: an amount is at least 0, found {amounts[row, column]:g}"
        )
    if primary is not None:
        own = _numbers(table, primary)
        if (own <= 0).any():
            row = int(np.argmax(own <= 0))
            raise table.fault(
                row, f"column {primary!r}: every run uses the primary, so its amount is above 0, found {own[row]:g}"
            )
        amounts = amounts / own[:, None]
    blocks = None if block is None else [str(value) for value in table.columns[block].to_pylist()]
    return RunTable(str(path), score, tasks, amounts, _numbers(table, score), _useful(blocks, amounts))


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


def _named(table: Table, given: str | None, usual: Sequence[str], what: str) -> str | None:
    if given is not None:
        return table.name_of(given)
    named = [name for name in table.columns if name.lower() in usual]
    if len(named) > 1:
        raise DataError(
            f"several columns could be the {what}: {', '.join(named)}; say --{what} NAME", file=table.source
        )
    return named[0] if named else None


def _numbers(table: Table, name: str) -> np.ndarray:
    values = np.empty(len(table))
    for row, value in enumerate(table.columns[name].to_pylist()):
        try:
            values[row] = float(value)
        except (TypeError, ValueError, OverflowError):
            values[row] = np.nan
        if not np.isfinite(values[row]):
            raise table.fault(row, f"column {name!r}: a number is wanted, found {str(value)[:40]!r}")
        if abs(values[row]) > LARGEST:
            raise table.fault(row, f"column {name!r}: a number is at most {LARGEST:g}, found {str(value)[:40]}")
    return values


def _from_sets(table: Table, name: str) -> tuple[tuple[str, ...], np.ndarray]:
    parts = [
        [str(one) for one in value] if isinstance(value, list) else [one.strip() for one in str(value or "").split("+")]
        for value in table.columns[name].to_pylist()
    ]
    used = [{one for one in row if one and one.lower() not in ("none", "single")} for row in parts]
    tasks = tuple(sorted(set().union(*used)))
    return tasks, np.array([[float(task in row) for task in tasks] for row in used]).reshape(len(used), len(tasks))


def _useful(blocks: list[str] | None, amounts: np.ndarray) -> list[str] | None:
    """Blocks tell something only where one of them holds different mixtures."""
    if blocks is None or len(set(blocks)) < 2:
        return None
    rows = [tuple(row) for row in amounts.tolist()]
    mixed = all(len({rows[i] for i in range(len(rows)) if blocks[i] == block}) > 1 for block in set(blocks))
    return blocks if mixed else None


def _estimate(interval: Interval) -> Estimate:
    return Estimate(value=interval.value, low=interval.low, high=interval.high)
