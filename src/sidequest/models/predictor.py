"""Predict with exported models: one, or an ensemble whose probabilities (or values) are averaged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from sidequest.errors import SettingsError, SidequestError, first_line
from sidequest.model_settings import CustomSettings, EncoderSettings
from sidequest.models.base import Family, MultiTaskModel, TargetScale
from sidequest.models.devices import chosen_device
from sidequest.models.frozen import FrozenFamily
from sidequest.models.kinds import family_class
from sidequest.models.predictions import Predictions
from sidequest.models.ragged import Ragged
from sidequest.models.saved import ModelCard, check_weights, rowless_task
from sidequest.tasks.examples import Examples
from sidequest.tasks.rows import examples_in_memory
from sidequest.tasks.suite import Suite
from sidequest.tasks.task import Objective, Task


@dataclass(frozen=True)
class Member:
    """A model with what it takes to predict with it. temperature: what its logits are divided by; 1 where not calibrated."""

    family: Family
    model: MultiTaskModel
    task: Task
    scale: TargetScale
    temperature: float = 1.0


class Predictor:
    """One or several exported models of the same task."""

    def __init__(self, members: Sequence[Member]) -> None:
        self.members = list(members)
        self.task = self.members[0].task

    @classmethod
    def load(cls, directory: Path | str, *, factory: str | None = None, device: str | None = None) -> Predictor:
        """A model that `Family.export` wrote. factory: for a `custom` model, the user's function that builds it. device: see
        `devices`."""
        directory = Path(directory)
        card = ModelCard.read_from(directory)
        settings, task = card.model, rowless_task(card.task)
        others = [rowless_task(facts) for facts in card.tasks if facts.name != task.name]
        if isinstance(settings, CustomSettings):
            if factory is None:
                raise SettingsError(
                    f"{directory}: this model was built by the user's own code, {settings.factory!r}, which is not part of the "
                    "export; name the function to run: load(directory, factory='file.py:function')"
                )
            settings = settings.model_copy(update={"factory": factory})
        elif factory is not None:
            raise SettingsError(f"{directory}: a factory is for models of the kind custom, this one is {settings.kind}")
        if isinstance(settings, EncoderSettings):
            settings = settings.model_copy(update={"encoder": str(_inside(directory, settings.encoder))})
        check_weights(directory, card)
        family = family_class(settings.kind)(Suite.of(task, others), settings)
        if isinstance(family, FrozenFamily):
            family.states.persist = False
        scale = TargetScale(card.target.mean, card.target.deviation)
        try:
            model = family.restore(directory)
        except SidequestError:
            raise
        except Exception as error:  # a stranger's directory, and libraries that read it: it may fail in any way
            raise SettingsError(
                f"{directory}: the model's weights cannot be read: {type(error).__name__}: {first_line(error)}"
            ) from None
        if not all(bool(torch.isfinite(parameter).all()) for parameter in model.parameters()):
            raise SettingsError(f"{directory}: the model's weights are not finite: its training has diverged")
        model.to(chosen_device(device))
        temperature = 1.0 if card.calibration is None else card.calibration.temperature
        return cls([Member(family, model, task, scale, temperature)])

    @classmethod
    def ensemble(cls, predictors: Sequence[Predictor]) -> Predictor:
        """Average the probabilities, or values, of several models of one task."""
        if not predictors:
            raise SettingsError("an ensemble needs at least one model")
        first = predictors[0].task
        for other in (predictor.task for predictor in predictors[1:]):
            if (other.objective, other.form, other.labels) != (first.objective, first.form, first.labels):
                raise SettingsError(
                    f"an ensemble takes models of one task: {first.name!r} ({first.objective.value}, labels "
                    f"{list(first.labels)}) and {other.name!r} ({other.objective.value}, labels {list(other.labels)}) differ"
                )
        return cls([member for predictor in predictors for member in predictor.members])

    def predict(self, rows: Any, *, batch_size: int = 128) -> Predictions:
        """Predictions for `Examples` of this task, or for a mapping of columns, a DataFrame or a table with its inputs; a target,
        if there is one, is not looked at. `load("model").predict({"text": ["what a day"]}).to_rows()` is a list such as
        `[{'label': 'good', 'probabilities': {'bad': 0.1, 'good': 0.9}}]`.
        """
        examples = rows if isinstance(rows, Examples) else examples_in_memory(rows, self.task)
        rows = Examples(examples.columns, None, examples.ids)
        outputs = [_probabilities(member, rows, batch_size) for member in self.members]
        mean = np.mean([output.values for output in outputs], axis=0)
        if self.task.objective == Objective.REGRESSION:
            return Predictions(self.task, values=mean)
        if self.task.objective == Objective.MULTILABEL:
            return Predictions(self.task, marks=mean > 0.5, probabilities=mean)
        indices = mean.argmax(-1) if mean.shape[1] else np.zeros(len(mean), np.int64)
        if self.task.objective == Objective.TAGGING:
            ends = outputs[0].offsets[1:-1]
            return Predictions(self.task, tags=_split(indices, ends, rows), tag_probabilities=_split(mean, ends, rows))
        return Predictions(self.task, indices=indices, probabilities=mean)


def _inside(directory: Path, name: str) -> Path:
    """The encoder that an export brings with it. A card may come from anybody: no other place is read."""
    place = (directory / name).resolve()
    if not place.is_relative_to(directory.resolve()):
        raise SettingsError(
            f"{directory}: model.encoder: an exported model brings its encoder, found {name!r} elsewhere"
        )
    return place


def _split(values: np.ndarray, ends: np.ndarray, rows: Examples) -> list[np.ndarray]:
    return np.split(values, ends) if len(rows) else []


def _probabilities(member: Member, rows: Examples, batch_size: int) -> Ragged:
    """Probabilities per row, or per word of each row; of a regression the values."""
    objective = member.task.objective
    outputs = logits_of(member, rows, batch_size)
    if objective == Objective.REGRESSION:
        return Ragged(member.scale.restore(outputs.values), outputs.offsets)
    logits = torch.from_numpy(outputs.values / member.temperature)
    shares = logits.sigmoid() if objective == Objective.MULTILABEL else logits.softmax(-1)
    return Ragged(shares.numpy(), outputs.offsets)


@torch.inference_mode()
def logits_of(member: Member, rows: Examples, batch_size: int = 128) -> Ragged:
    """Logits in row order, float64: [rows, classes, labels or most choices] (−inf for choices that a row does not have),
    [rows] in standardised units (regression), or [words, tags], all words of all rows with the offsets of each row.

    Batches hold rows of similar length, the longest first, so that too little memory shows at once.
    """
    task = member.task
    inputs = member.family.inputs(task, rows)
    order = np.argsort(-inputs.lengths, kind="stable")
    device = next(member.model.parameters()).device
    member.model.eval()
    parts, lengths = [], []
    for start in range(0, len(order), batch_size):
        batch = inputs.collate(order[start : start + batch_size])
        there = {name: tensor.to(device) for name, tensor in batch.items()}
        logits = member.model.refined(task.name, member.model(task.name, there), there).cpu().double()
        if task.objective == Objective.TAGGING:
            logits = logits[batch["words"]]
            lengths.append(batch["words"].sum(1).numpy())
        elif "choices" in batch:
            missing = torch.arange(logits.shape[1]) >= batch["choices"][:, None]
            logits = logits.masked_fill(missing, -torch.inf)
        parts.append(logits.numpy())
    if not parts:
        empty = (0,) if task.objective == Objective.REGRESSION else (0, task.outputs)
        return Ragged.of_lengths(np.zeros(empty), np.zeros(len(rows), np.int64))
    if task.objective == Objective.CHOICE:
        most = max(part.shape[1] for part in parts)
        parts = [np.pad(part, [(0, 0), (0, most - part.shape[1])], constant_values=-np.inf) for part in parts]
    counts = np.concatenate(lengths) if lengths else np.ones(len(rows), dtype=np.int64)
    in_batches = Ragged.of_lengths(np.concatenate(parts), counts)
    back = np.argsort(order, kind="stable")
    return Ragged.of_lengths(in_batches.values[in_batches.index(back)], counts[back])
