"""How `python -m experiments gradts` trains what a method chose, and tunes thresholds on *select*."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.cells import outcome_result, recipe_result
from experiments.gradts_suites import with_all_rows
from experiments.jobs import Result
from sidequest.recipe import Phase, Recipe
from sidequest.records.runs import SelectionRecord
from sidequest.runs import cells
from sidequest.runs.selecting import select
from sidequest.runs.setup import Setup

# That are tried on *select*: for tasks, and for rows, whose own heads say less and agree less with the primary's.
THRESHOLDS = tuple(np.arange(0.30, 0.80, 0.05).round(2).tolist())
ROW_THRESHOLDS = tuple(np.arange(0.0, 0.65, 0.1).round(2).tolist())


def together(setup: Setup, auxiliaries: Sequence[str]) -> Recipe:
    """Some tasks with all their rows, in the mixture that every choice has."""
    primary = setup.suite.primary
    recipe = Recipe(
        method="given", primary=primary, phases=(Phase(shares=dict.fromkeys((primary, *auxiliaries), 1.0)),)
    )
    return with_all_rows(recipe, _rows(setup))


def _rows(setup: Setup) -> dict[str, int]:
    return {name: len(task.train) for name, task in setup.suite.tasks.items()}


def chosen_result(setup: Setup, method: str, settings: Mapping[str, Any], seed: int, place: Path) -> Result:
    """A method's choice, trained in the mixture that all methods share, so that choices are compared and not mixtures."""
    import torch

    torch.set_num_threads(1)
    choice = place / "choice"
    recipe = select(setup, method, settings=dict(settings), seed=seed, directory=choice)
    made = with_all_rows(recipe, _rows(setup))
    made.write(place / "recipe.json")
    outcome = cells.run_job(setup, cells.Job(method, dict(settings), seed, place, selected=True))
    selection = SelectionRecord.read(choice)
    minutes = (sum(task.seconds for task in selection.meter.tasks.values()) + outcome.training.seconds) / 60
    reuse = {**selection.heads, "trials": selection.meter.trials, "trials_reused": selection.meter.trials_reused}
    result = outcome_result(outcome, made) | {
        "minutes": round(minutes, 3),
        "peak": outcome.peak_memory,
        "reuse": reuse,
    }
    if "tau" in recipe.evidence:
        result["tau"] = {name: round(value, 5) for name, value in recipe.evidence["tau"].items()}
    kept = {name: each["share"] for name, each in recipe.evidence.get("instances", {}).items()}
    return result | ({"row_shares": kept} if kept else {})


def tuned_tasks(setup: Setup, given: Result, seed: int) -> Result:
    """The threshold whose tasks do best on *select*, as the paper tunes it on held-out train rows; a tie takes fewer tasks.
    given: what `gradts-thres` found."""
    tau = given["tau"]
    sets = {tuple(sorted(name for name, value in tau.items() if value >= limit)) for limit in THRESHOLDS}
    tried = [recipe_result(setup, together(setup, names), seed) for names in sorted(sets, key=len)]
    return _best_of(tried, given["x"]["choose"])


def tuned_rows(setup: Setup, settings: Mapping[str, Any], seed: int, place: Path) -> Result:
    """`gradts-fg` with the threshold whose rows do best on *select*; a tie takes fewer rows. Its trials and the heads of all rows
    are computed for the first threshold and found for the others."""
    by_rows: dict[tuple[tuple[str, float], ...], Result] = {}
    for threshold in sorted(ROW_THRESHOLDS, reverse=True):
        given = {**settings, "threshold": threshold, "quantile": None}
        found = chosen_result(setup, "gradts-fg", given, seed, place / f"threshold-{threshold:.2f}")
        # A lower threshold adds rows and drops none: equal shares are the same rows, which are trained once.
        by_rows.setdefault(tuple(found.get("row_shares", {}).items()), {**found, "threshold": threshold})
    tried = list(by_rows.values())
    best = _best_of(tried, tried[0]["x"]["choose"])
    return {
        name: value for name, value in best.items() if name not in ("minutes", "peak", "reuse")
    }  # of one threshold alone


def _best_of(tried: Sequence[Result], chosen_for: float) -> Result:
    """The first of the best on *select*. Choosing costs what the method does, and a training for each that was tried."""
    best = max(tried, key=lambda each: each["select"])
    cost = chosen_for + sum(each["x"]["train"] for each in tried)
    return {**best, "x": {"choose": round(cost, 3), "train": best["x"]["train"]}}
