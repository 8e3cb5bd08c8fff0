"""What a candidate's labels know of the primary's, by read-outs of frozen features: the `LabelScreen` power of `TorchLearner`.

A candidate's read-out, fitted on its own rows, is applied to the primary's train rows; how well its outputs alone tell the
primary's targets, by cross-validation, is the score, less what the outputs of a read-out of its shuffled labels tell: ten random
directions of the features know more of the targets than one, whatever they were fitted to. No training run, and only *train* is
looked at. What it cannot see is what shared layers would learn, so it may order candidates but not choose among them.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from sidequest.learning.torch.core import Core
from sidequest.models.readout import Features, ReadOut, fit
from sidequest.tasks.examples import Examples
from sidequest.tasks.permuted import permuted
from sidequest.tasks.task import Form, Objective, Task

ROWS = 400  # of the primary, at most


class LabelScreening:
    """Keeps the `LabelScreen` protocol for a torch learner; see there for what it promises."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def label_relatedness(self, task: str) -> float:
        core = self._core
        candidate, primary = core.task(task), core.task(core.suite.primary)
        if (
            candidate.form is not primary.form
            or primary.form is Form.CHOICES
            or candidate.objective is Objective.CHOICE
        ):
            return math.nan  # their read-outs do not see the same features
        own = core.family.read_out(candidate)
        if own is None:
            return math.nan
        standardise = core.family.scales[task].standardise
        shuffled = replace(own, model=fit(permuted(candidate, 0), own.features_of, standardise))
        return self._told(task, own) - self._told(task, shuffled)

    def _told(self, task: str, read_out: ReadOut) -> float:
        """How much better than a constant a read-out's outputs tell the primary's targets."""
        core = self._core
        primary = core.task(core.suite.primary)
        apart = replace(read_out, task=primary)

        def outputs(_: Task, examples: Examples) -> Features:
            values, counts = apart.logits(examples)
            return Features(values, counts if primary.form is Form.TOKENS else None)

        rows = primary.train.take(np.arange(min(ROWS, len(primary.train))))
        with core.meter.timed(task) as count:
            count.evaluated_examples += len(rows)
            small = replace(primary, splits={**primary.splits, "train": rows})
            losses = fit(small, outputs, core.family.scales[primary.name].standardise).losses
        return losses[max(losses)] - min(losses.values())  # the strongest penalty is nearly a constant answer
