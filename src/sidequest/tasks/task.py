"""A task: a named dataset with an objective, three splits and a metric (higher is better, always)."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np

from sidequest.tasks.examples import Examples


class Objective(StrEnum):
    """What the model is asked for."""

    CLASSIFICATION = "classification"
    MULTILABEL = "multi-label"
    REGRESSION = "regression"
    TAGGING = "tagging"
    CHOICE = "multiple-choice"


class Form(StrEnum):
    """What the model is shown."""

    TEXT = "text"
    PAIR = "pair"
    CHOICES = "choices"
    TOKENS = "tokens"
    IMAGE = "image"


SPLITS = ("train", "select", "report")
LABELLED = (Objective.CLASSIFICATION, Objective.MULTILABEL, Objective.TAGGING)  # one output per name in `labels`


ClassWeights = tuple[float, ...] | tuple[tuple[float, float], ...]  # per class, or (without, with) per label


@dataclass(frozen=True)
class TaskCard:
    """What a method may know about a task without looking at its rows."""

    name: str
    objective: Objective
    form: Form
    kind: str
    rows: int
    mean_words: float
    classes: int
    select_rows: int = 0


@dataclass(frozen=True, repr=False)
class Task:
    """One dataset, read and split.

    kind: the papers' task type ("inference", "paraphrase", "sentiment", …), what `heu-type` compares; free text.
    class_weights: what rows of each class count in the loss, see `class_weights`; None: all the same.
    metric: the score of the task; `metrics` are all scores that a report shows, the first is `metric`.
    notes: what was decided while reading (a carved split, a limit), for `check` and the report.
    inputs: `columns`, `reading` and `target`: what the inputs are called in the user's files, how such files are read, and how
        labels are written there; plain data, with which `sidequest.tasks.rows` reads a file to predict.
    """

    name: str
    objective: Objective
    form: Form
    splits: Mapping[str, Examples]
    labels: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ("accuracy",)
    kind: str = ""
    notes: tuple[str, ...] = ()
    sources: Mapping[str, str] = field(default_factory=dict)
    inputs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    class_weights: ClassWeights | None = None

    def __repr__(self) -> str:
        rows = ", ".join(f"{len(rows)} {split}" for split, rows in self.splits.items())
        return f"Task {self.name!r}: {self.objective} of {self.form}, rows: {rows}"

    @property
    def metric(self) -> str:
        return self.metrics[0]

    @property
    def train(self) -> Examples:
        return self.splits["train"]

    @property
    def outputs(self) -> int:
        """How many numbers the head gives: per row, per token, or per choice."""
        return max(1, len(self.labels)) if self.objective in LABELLED else 1

    @functools.cached_property
    def loss_weights(self) -> ClassWeights | None:
        """What rows of each class count in the loss: `class_weights`. Where there are none and the score is the mean over classes
        (`macro_f1`), every class counts the same: else a model at the most frequent classes would have the least loss."""
        from sidequest.tasks.class_weights import class_weights  # which needs this module

        if self.class_weights is not None or self.metric != "macro_f1" or self.objective not in LABELLED:
            return self.class_weights
        target = self.train.target if "train" in self.splits else None
        return None if target is None else class_weights("balanced", self.objective, self.labels, target)

    @functools.cached_property
    def fingerprints(self) -> dict[str, str]:
        """A digest per split that covers its rows and how they are read as a task."""
        weights = [] if self.class_weights is None else [self.class_weights]
        facts = json.dumps([self.objective, self.form, list(self.labels), list(self.metrics), *weights])
        return {
            name: hashlib.sha256(f"{facts}{rows.fingerprint()}".encode()).hexdigest()
            for name, rows in sorted(self.splits.items())
        }

    @functools.cached_property
    def card(self) -> TaskCard:
        words = self.train.word_counts()
        mean = float(np.mean(words)) if len(words) else 0.0
        select = len(self.splits["select"]) if "select" in self.splits else 0
        return TaskCard(
            self.name, self.objective, self.form, self.kind, len(self.train), mean, len(self.labels), select
        )
