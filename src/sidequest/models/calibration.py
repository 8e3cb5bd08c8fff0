"""Temperature scaling (Guo et al., 2017): probabilities that fit the truth, answers that stay as they are.

One number divides the logits. It is chosen on *select*, whose likelihood is convex in its inverse; *select* has also chosen the
best moment of training, so the calibration error that it shows is a little too good, as every number on *select* is.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from sidequest.errors import SettingsError
from sidequest.models.base import Family, MultiTaskModel
from sidequest.models.predictor import Member, logits_of
from sidequest.models.saved import Calibration, ModelCard
from sidequest.tasks.task import Objective, Task

# Temperatures looked at. A select of a few hundred rows that are all right would ask for 0, and never be wrong about it.
COLDEST, HOTTEST = 0.25, 20.0
BINS = 15


def check_calibration(task: Task) -> None:
    """Refuse a task that has no probabilities."""
    if task.objective == Objective.REGRESSION:
        raise SettingsError(f"--calibrate is for probabilities; {task.name!r} is a regression and predicts values")


def calibrate(family: Family, model: MultiTaskModel, task: Task, directory: Path, split: str = "select") -> Calibration:
    """Fit the temperature of an exported model on a split, and note it in the export's card."""
    check_calibration(task)
    rows = task.splits[split]
    logits = logits_of(Member(family, model, task, family.scales[task.name]), rows).values
    calibration = fitted(logits, _truth(task, rows.target), task.objective, split)
    card = ModelCard.read_from(directory)
    card.model_copy(update={"calibration": calibration}).write(directory)
    return calibration


def fitted(logits: np.ndarray, truth: np.ndarray, objective: Objective, split: str = "select") -> Calibration:
    """logits [n, classes], truth int64 [n]; or several labels per row: logits and truth [n, labels]."""
    from scipy.optimize import minimize_scalar

    if objective == Objective.MULTILABEL:  # each decision is one of two classes
        logits, truth = np.stack([np.zeros(logits.size), logits.ravel()], axis=1), truth.ravel()

    def loss(inverse: float) -> float:
        return -float(np.mean(_log_probabilities(logits * inverse)[np.arange(len(truth)), truth]))

    bounds = (1 / HOTTEST, 1 / COLDEST)
    best = minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 1e-6})
    inverse = float(best.x) if best.fun < loss(1.0) else 1.0
    return Calibration(
        temperature=1 / inverse,
        split=split,
        items=len(truth),
        loss=(loss(1.0), loss(inverse)),
        error=(calibration_error(logits, truth), calibration_error(logits * inverse, truth)),
    )


def calibration_error(logits: np.ndarray, truth: np.ndarray) -> float:
    """Expected calibration error: |share of right answers − mean confidence| in equal bins of confidence, weighted by rows."""
    log_probabilities = _log_probabilities(logits)
    answers = log_probabilities.argmax(axis=1)
    confidence = np.exp(log_probabilities[np.arange(len(truth)), answers])
    bins = np.minimum((confidence * BINS).astype(int), BINS - 1)
    gap = np.bincount(bins, weights=(answers == truth) - confidence, minlength=BINS)
    return float(np.abs(gap).sum() / max(len(truth), 1))


def _log_probabilities(logits: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        moved = logits - logits.max(axis=1, keepdims=True)  # −inf, a choice that a row lacks, stays −inf
    return moved - np.log(np.exp(moved).sum(axis=1, keepdims=True))


def _truth(task: Task, target: np.ndarray | pa.Array | None) -> np.ndarray:
    assert target is not None, "a split has targets"
    flat = target.flatten() if task.objective == Objective.TAGGING else target
    return np.asarray(flat, dtype=np.int64)
