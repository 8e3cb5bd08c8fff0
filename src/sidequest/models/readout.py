"""The linear read-out of a task from a frozen encoder's features: what an engineer tries first, and what models start from.

Classification is a softmax, multiple choice one over the scores of a row's choices, tagging a softmax per word, several
labels a sigmoid each, regression a ridge. The strength of regularisation is chosen by cross-validation on *train*, and nothing
but *train* is looked at. A read-out is a function of the features and the rows, not of any seed of training; it is kept on disk
under the content of both.

Classes count in the fit what they count in the loss (`Task.loss_weights`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from sidequest.errors import SidequestError
from sidequest.files import digest
from sidequest.models.cosine_start import or_cosine
from sidequest.numerics.likelihoods import Choice, Sigmoids, Softmax
from sidequest.numerics.linear_models import LinearModel, logistic, ridge
from sidequest.store import ContentStore, Entry, save_arrays
from sidequest.tasks.examples import Examples
from sidequest.tasks.splits import generator, limit
from sidequest.tasks.task import Objective, Task

VERSION = 3  # of the fit: a change of meaning must not find old read-outs
# Rows × features of a fit, at most: 160 MB in float64. Of more rows a stratified sample is taken.
FIT_VALUES = 20_000_000
CHUNK = 2_000  # rows whose features are in memory at once when predicting


@dataclass(frozen=True)
class Features:
    """What a read-out sees of some rows.

    values: float [units, width]; a unit is a row, a choice or a word. counts: int64 [rows], the units of each row; None: one
        each. widths: how many columns in turn say the same kind of thing (the vector, the cosine); empty: all of them.
    """

    values: np.ndarray
    counts: np.ndarray | None = None
    widths: tuple[int, ...] = ()

    @property
    def importance(self) -> np.ndarray | None:
        """Factors on the standardised columns with which each kind of thing varies as much in all, however many columns it has:
        one cosine is not drowned by hundreds of products. None: all the same."""
        if len(set(self.widths)) < 2:
            return None
        return np.concatenate([np.full(width, math.sqrt(max(self.widths) / width)) for width in self.widths])


FeaturesOf = Callable[[Task, Examples], Features | None]


@dataclass(frozen=True)
class ReadOut:
    """A fitted read-out. `model` gives logits per unit, or a regression's standardised value."""

    task: Task
    model: LinearModel
    features_of: FeaturesOf

    def logits(self, examples: Examples) -> tuple[np.ndarray, np.ndarray]:
        """Logits float64 [units, outputs], and the units of each row, int64 [rows]."""
        parts = [_features(self.features_of, self.task, part) for part in _chunks(examples)]
        logits = [self.model(part.values) for part in parts]
        counts = [np.ones(len(part.values), np.int64) if part.counts is None else part.counts for part in parts]
        return np.concatenate(logits), np.concatenate(counts)

    def predict(self, examples: Examples, restore: Callable[[np.ndarray], np.ndarray]) -> Any:
        """Predictions in row order, as a learner gives them: class or choice indices [n], values [n] in the task's units, or a
        list of tag arrays; whether it has each label [n, labels]. restore: from standardised to the task's own units."""
        logits, counts = self.logits(examples)
        if self.task.objective == Objective.REGRESSION:
            return restore(logits[:, 0])
        if self.task.objective == Objective.MULTILABEL:
            return logits > 0
        if self.task.objective == Objective.CLASSIFICATION:
            return logits.argmax(axis=1)
        units = np.split(logits, np.cumsum(counts)[:-1]) if len(counts) else []
        if self.task.objective == Objective.TAGGING:
            return [unit.argmax(axis=1) for unit in units]
        return np.array([unit[:, 0].argmax() for unit in units], dtype=np.int64)


def read_out(
    task: Task,
    features_of: FeaturesOf,
    standardise: Callable[[np.ndarray], np.ndarray],
    key: Any,
    *,
    persist: bool = True,
    ridge_factor: float = 1.0,
) -> ReadOut:
    """The read-out of a task's train rows. key: plain data that identifies the features; standardise: a regression's targets;
    ridge_factor: on the strength that cross-validation chooses for a regression."""
    if not persist:
        return ReadOut(task, fit(task, features_of, standardise, ridge_factor), features_of)
    factor = [ridge_factor] if ridge_factor != 1.0 and task.objective == Objective.REGRESSION else []
    name = digest([VERSION, key, task.fingerprints["train"], *factor])

    def make(directory: Path) -> dict[str, Any]:
        return _save(fit(task, features_of, standardise, ridge_factor), directory)

    return ReadOut(task, _load(ContentStore("readouts").get_or_make(name, make)), features_of)


def fit(
    task: Task, features_of: FeaturesOf, standardise: Callable[[np.ndarray], np.ndarray], ridge_factor: float = 1.0
) -> LinearModel:
    rows = _rows_to_fit(task, features_of)
    features = _features(features_of, task, rows)
    model, importance = _fitted(task, rows, features, standardise, ridge_factor), features.importance
    if importance is None:
        return model
    return replace(model, scale=model.scale * importance, weight=model.weight * importance[:, None])


def _fitted(
    task: Task,
    rows: Examples,
    features: Features,
    standardise: Callable[[np.ndarray], np.ndarray],
    ridge_factor: float,
) -> LinearModel:
    x, importance = features.values, features.importance
    if not np.isfinite(x).all():
        raise SidequestError(f"task {task.name!r}: the encoder gives features that are not finite")
    target: Any = rows.target
    weights = None if task.loss_weights is None else np.array(task.loss_weights)
    if task.objective == Objective.REGRESSION:
        y = standardise(np.asarray(target, dtype=np.float64))
        model = ridge(x, y, importance=importance)
        if ridge_factor == 1.0:
            return model
        return ridge(x, y, ridge_factor * model.strength, importance=importance)
    if task.objective == Objective.MULTILABEL:
        return logistic(x, Sigmoids(np.asarray(target), weights), importance=importance)
    if task.objective == Objective.CHOICE:
        assert features.counts is not None
        choice = Choice(np.asarray(target), features.counts)
        model = logistic(x, choice, importance=importance)
        return model if importance is None else or_cosine(model, x, choice, importance)
    if task.objective == Objective.TAGGING:
        assert features.counts is not None
        tags = target.flatten().to_numpy(zero_copy_only=False)
        sentences = np.repeat(np.arange(len(rows)), features.counts)
        return logistic(x, Softmax(tags, task.outputs, weights), groups=sentences)
    labels = np.asarray(target, dtype=np.int64)
    return logistic(x, Softmax(labels, task.outputs, weights), importance=importance)


def _features(features_of: FeaturesOf, task: Task, examples: Examples) -> Features:
    features = features_of(task, examples)
    assert features is not None, f"the family has no features for {task.name!r}"
    return features


def _rows_to_fit(task: Task, features_of: FeaturesOf) -> Examples:
    rows = task.train
    first = _features(features_of, task, rows.take(np.arange(min(len(rows), CHUNK))))
    values_per_row = first.values.size / max(1, min(len(rows), CHUNK))
    most = max(1, int(FIT_VALUES / max(1.0, values_per_row)))
    return limit(rows, most, task.objective, generator(0, task.name, "read-out"))


def _chunks(examples: Examples) -> Iterator[Examples]:
    for start in range(0, max(1, len(examples)), CHUNK):
        yield examples.take(np.arange(start, min(start + CHUNK, len(examples))))


def _save(model: LinearModel, directory: Path) -> dict[str, Any]:
    arrays = {name: getattr(model, name) for name in ("mean", "scale", "weight", "bias", "strength")}
    save_arrays(directory, {**arrays, "tried": np.array(list(model.losses.items()), dtype=np.float64).reshape(-1, 2)})
    return {}


def _load(entry: Entry) -> LinearModel:
    stored = entry.arrays()
    tried = {float(strength): float(loss) for strength, loss in stored["tried"]}
    mean, scale, weight, bias = (stored[name] for name in ("mean", "scale", "weight", "bias"))
    return LinearModel(mean, scale, weight, bias, float(stored["strength"]), tried)
