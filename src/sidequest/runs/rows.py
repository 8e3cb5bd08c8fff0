"""The scores that the cells of a comparison would have had on other *report* rows, from their predictions row by row."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sidequest.records.comparisons import Outcome
from sidequest.runs.controls import scored_tasks
from sidequest.runs.predictions import PREDICTIONS, read_predictions
from sidequest.runs.setup import Setup
from sidequest.tasks.resampling import MOST_WEIGHTS, RESAMPLES, draws, resampler

Cell = tuple[str, int]  # method and seed


def resampled_scores(
    setup: Setup, outcomes: Sequence[Outcome], directory: Path, resamples: int = RESAMPLES
) -> dict[Cell, np.ndarray]:
    """By method and seed the score of each draw of rows, float64 [resamples]. Every cell sees the same draws. Where the goal is
    the average of all tasks, the rows of each are drawn by themselves. A cell whose predictions are not at hand is left out."""
    predictions = {
        (outcome.method, outcome.seed): found
        for outcome in outcomes
        if (found := _predictions(directory / outcome.directory, scored_tasks(setup))) is not None
    }
    totals = {cell: np.zeros(resamples) for cell in predictions}
    tasks = [setup.suite.tasks[name] for name in scored_tasks(setup)]
    for number, task in enumerate(tasks):
        report = task.splits["report"]
        cells = {
            cell: resampler(task.metric, found[task.name], report.target, task.labels)
            for cell, found in predictions.items()
        }
        rng = np.random.default_rng([number, len(report)])
        chunk = max(1, MOST_WEIGHTS // max(1, len(report)))
        for start in range(0, resamples, chunk):
            weights = draws(len(report), min(chunk, resamples - start), rng)
            for cell, each in cells.items():
                totals[cell][start : start + chunk] += each.scores(weights) / len(tasks)
    return {cell: scores for cell, scores in totals.items() if math.isfinite(scores.sum())}


def _predictions(directory: Path, tasks: Sequence[str]) -> dict[str, Any] | None:
    try:
        predictions = read_predictions(directory / PREDICTIONS)
    except ValueError:
        return None
    return predictions if all(task in predictions for task in tasks) else None
