"""Training by a recipe: which task's batch comes next, when to look at *select*, when to stop.

This is the schedule, not the training step: it drives any learner (torch or simulated) through the protocol.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import numpy as np

from sidequest.errors import Diverged, SettingsError
from sidequest.learning.checkpoints import Checkpoints, SavedLearner
from sidequest.learning.meter import EVALUATION_SHARE, Meter
from sidequest.learning.protocol import Learner, Snapshot
from sidequest.recipe import Phase
from sidequest.settings import TrainSettings

OnBatches = Callable[[int, int, float | None], None]  # (batches done, batches in all, best score so far)


@dataclass
class FitResult:
    """score: on *select*, of the model that the learner now is: the last phase's best, or its last one. history: one entry per
    evaluation on *select*, the first one before any training. kept: after how many evaluations in its phase each phase's model
    was kept; 0: before any training."""

    score: float
    history: list[dict[str, Any]]
    kept: tuple[int, ...] = ()


@dataclass(frozen=True)
class PhaseLength:
    """total: batches of the phase; looks: after how many batches *select* is evaluated, the last being `total`."""

    total: int
    looks: tuple[int, ...]


@dataclass
class _Progress:
    """Where a fit stands; saved with the learner.

    best: the score of the model to keep. trained_best: the best score after training, which patience counts from: a model that
        starts at a good solution often loses a little before it gains, and a lucky start must not end the training.
    """

    phase: int = 0
    look: int = 0
    best: float = -np.inf
    trained_best: float = -np.inf
    stale: int = 0
    history: list[dict[str, Any]] = field(default_factory=list)
    kept: list[int] = field(default_factory=list)


def single_run_work(rows: int, select_rows: int, train: TrainSettings) -> float:
    """The meter's work of one full single-task training: what 1x means."""
    looks = 1 + (train.evaluations or max(1, round(train.epochs)))  # one before the first step
    return train.epochs * rows + EVALUATION_SHARE * looks * select_rows


def phase_length(phase: Phase, learner: Learner, train: TrainSettings, goal: str = "primary") -> PhaseLength:
    """How long a phase is: by default a number of epochs *of the primary*, whatever is mixed in between.

    With the goal `average` no task is the measure of the others: an epoch is as many batches as all rows of all tasks make,
    whatever the phase does with them, so all policies train equally long and it does not matter which task is called primary.
    """
    epochs = phase.epochs if phase.epochs is not None else train.epochs
    share = phase.shares.get(learner.primary, 0.0)
    if phase.batches is not None:
        total = phase.batches
    elif goal == "average":
        total = round(epochs * sum(learner.epoch_batches(name) for name in learner.tasks))
    elif share > 0:
        primary = learner.epoch_batches(learner.primary, phase.subsets.get(learner.primary))
        total = round(epochs * primary * sum(phase.shares.values()) / share)
    else:  # without the primary an epoch is one pass over all rows of the phase
        total = round(epochs * sum(learner.epoch_batches(name, phase.subsets.get(name)) for name in phase.tasks))
    total = max(1, total if train.max_batches is None else min(total, train.max_batches))
    looks = min(total, train.evaluations or max(1, round(epochs)))
    return PhaseLength(total, tuple(round(total * (i + 1) / looks) for i in range(looks)))


def task_order(
    phase: Phase, start: int, stop: int, rng: np.random.Generator, primary: str | None = None
) -> list[tuple[str, int]]:
    """The tasks of batches start..stop-1 of a phase as runs (task, consecutive batches). A cycle begins with the primary; the
    others follow by name, the order that survives a JSON file."""
    names = sorted(phase.tasks, key=lambda name: (name != primary, name))
    shares = np.array([phase.shares[name] for name in names])
    if phase.order == "cycle":
        cycle = np.repeat(np.arange(len(names)), shares.astype(int))
        picks = cycle[np.arange(start, stop) % len(cycle)]
    elif phase.order == "shuffle":
        picks = rng.permutation(np.repeat(np.arange(len(names)), apportion(shares, stop - start, rng)))
    else:
        picks = rng.choice(len(names), size=stop - start, p=shares / shares.sum())
    return [(names[pick], sum(1 for _ in run)) for pick, run in groupby(picks.tolist())]


def apportion(shares: np.ndarray, total: int, rng: np.random.Generator) -> np.ndarray:
    """Whole numbers that add up to `total`, each within one of its share and equal to it in expectation.

    Systematic rounding: one uniform shift of the cumulated shares, so that a task worth a third of a batch gets one in every
    third stretch instead of never.
    """
    edges = np.concatenate([[0.0], np.cumsum(shares / shares.sum())]) * total
    edges[-1] = total
    return np.diff(np.floor(edges + rng.random())).astype(int)


def score_of(learner: Learner, goal: str) -> float:
    """The number that training and methods try to raise."""
    if goal == "average":
        return float(np.mean([learner.evaluate(task) for task in learner.tasks]))
    return learner.evaluate(learner.primary)


def fit(
    learner: Learner,
    phases: Sequence[Phase],
    train: TrainSettings,
    seed: int,
    *,
    goal: str = "primary",
    progress: OnBatches | None = None,
    checkpoints: Checkpoints | None = None,
    ends: Sequence[int] | None = None,
) -> FitResult:
    """Train the phases one after another; the learner ends as the last phase's best model on *select*, or as its last one.

    A phase begins where the kept model of the phase before it stands, but only models of the last phase can be the result: a
    recipe that ends with training on the primary alone ends there, whatever the mixture before it had reached. The first phase
    is also evaluated before its first step, because a model may start at a solution (its read-out) that training does not
    improve; at a tie the trained model is kept.

    ends: after how many evaluations each phase ends, as `kept` of an earlier fit says: *select* then decides nothing.
    checkpoints: states from which a killed fit continues, to the same result, and where it saves by time.
    """
    for phase in phases:
        _check_tasks(phase, learner)
    at, best = (None if checkpoints is None else _load(learner, checkpoints)) or (_Progress(), None)
    done = 0
    for index, phase in enumerate(phases):
        length = phase_length(phase, learner, train, goal)
        if index < at.phase:
            continue
        if at.look == 0:
            learner.begin(length.total)
            at.best, at.trained_best, best = -np.inf, -np.inf, None
            at.kept = [*at.kept[:index], 0]
            if index == 0:
                at.best, best = score_of(learner, goal), learner.snapshot(weights_only=True)
                at.history.append({"phase": 0, "batches": 0, "score": at.best})
        patience = train.patience if phase.stop_early else None
        last = len(length.looks) if ends is None else min(ends[index], len(length.looks))
        for look in range(at.look, last):
            start = length.looks[look - 1] if look else 0
            rng = np.random.default_rng([seed, index, look])
            for task, n_batches in task_order(phase, start, length.looks[look], rng, learner.primary):
                weight = phase.weights.get(task, 1.0) * train.loss_scale.get(task, 1.0)
                losses = learner.train(task, n_batches, weight=weight, subset=phase.subsets.get(task))
                _check_finite(losses, task, index, start + done)
                done += n_batches
                if progress is not None:
                    progress(start + done, length.total, at.best if at.history else None)
            done = 0
            score = score_of(learner, goal)
            at.history.append({"phase": index, "batches": length.looks[look], "score": score})
            at.stale += 1
            improved = score > at.trained_best or look == 0
            if improved:
                at.trained_best, at.stale = score, 0
            if train.keep == "last" or ends is not None or best is None or (improved and score >= at.best):
                at.best, best, at.kept[index] = score, learner.snapshot(weights_only=True), look + 1
            at.look = look + 1
            if patience is not None and at.stale >= patience:
                break
            if checkpoints is not None and checkpoints.due():
                _save(learner, best, at, checkpoints)
        if best is not None:  # the next phase starts from there; positions in the data go on
            learner.restore(best)
        at.phase, at.look, at.stale = index + 1, 0, 0
    return FitResult(at.best, at.history, tuple(at.kept))


def _check_finite(losses: Sequence[float], task: str, phase: int, before: int) -> None:
    """End a training that has diverged: what it would be scored as from here on says nothing about its mixture."""
    bad = np.flatnonzero(~np.isfinite(losses))
    if len(bad):
        raise Diverged(
            f"task {task!r}, batch {before + int(bad[0]) + 1} of phase {phase + 1}: the loss is {losses[bad[0]]}: the training "
            "has diverged. Lower train.learning_rate, or the task's weight"
        )


def kept_score(history: Sequence[dict[str, Any]], keep: str) -> float:
    """The score on *select* of the model that a fit with this history ended as."""
    last = history[-1]["phase"]
    if keep == "last":
        return float(history[-1]["score"])
    return max(entry["score"] for entry in history if entry["phase"] == last)


def _check_tasks(phase: Phase, learner: Learner) -> None:
    missing = [name for name in phase.tasks if name not in learner.tasks]
    if missing:
        raise SettingsError(
            f"the recipe trains on {', '.join(missing)}, which the suite lacks; it has {', '.join(learner.tasks)}"
        )


def _save(learner: Learner, best: Snapshot, at: _Progress, checkpoints: Checkpoints) -> None:
    parts = {
        "now": SavedLearner([at.phase, at.look], learner.save),
        "best": SavedLearner([at.phase, at.look], lambda place: learner.save(place, best)),
    }
    checkpoints.save({"progress": vars(at), "meter": learner.meter.to_json()}, parts)


def _load(learner: Learner, checkpoints: Checkpoints) -> tuple[_Progress, Snapshot] | None:
    if (state := checkpoints.load()) is None:
        return None
    record, place = state
    learner.load(place / "best")
    best = learner.snapshot(weights_only=True)
    learner.load(place / "now")
    learner.meter.tasks.clear()
    learner.meter.add(Meter.from_json(record["meter"]))
    return _Progress(**record["progress"]), best
