"""Predict with exported models: one, or an ensemble whose probabilities (or values) are averaged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError

from sidequest.errors import SettingsError
from sidequest.models.base import Family, MultiTaskModel, TargetScale
from sidequest.models.devices import chosen_device
from sidequest.models.frozen import FrozenFamily
from sidequest.models.kinds import kind
from sidequest.models.saved import read_card, rowless_task
from sidequest.settings import ModelSettings, parse
from sidequest.tasks.examples import Examples
from sidequest.tasks.suite import Suite
from sidequest.tasks.task import Objective, Task


@dataclass(frozen=True)
class Predictions:
    """What a model says about rows, in the order of the rows.

    indices: int64 [n], the class or choice (classification, multiple choice);
    marks: bool [n, labels], whether a row has each label (multi-label);
    probabilities: float64 [n, classes] (0 for choices that a row does not have), or of each label on its own;
    values: float64 [n], in the target's own units (regression);
    tags: per row, int64 [words] (tagging); tag_probabilities: per row, float64 [words, tags].
    """

    task: Task
    indices: np.ndarray | None = None
    marks: np.ndarray | None = None
    probabilities: np.ndarray | None = None
    values: np.ndarray | None = None
    tags: list[np.ndarray] | None = None
    tag_probabilities: list[np.ndarray] | None = None

    def to_rows(self) -> list[dict[str, Any]]:
        """One plain dict per row: `label`, `labels` or `choice`, and `probabilities`; or `value`; or `tags`."""
        labels = self.task.labels
        if self.values is not None:
            return [{"value": float(value)} for value in self.values]
        if self.tags is not None:
            return [{"tags": [labels[tag] for tag in row]} for row in self.tags]
        assert self.probabilities is not None
        shares = self.probabilities.tolist()
        if self.marks is not None:
            return [
                {"labels": [labels[i] for i in np.flatnonzero(row)], "probabilities": dict(zip(labels, p, strict=True))}
                for row, p in zip(self.marks, shares, strict=True)
            ]
        assert self.indices is not None
        if self.task.objective == Objective.CHOICE:
            return [{"choice": int(i), "probabilities": p} for i, p in zip(self.indices, shares, strict=True)]
        return [
            {"label": labels[i], "probabilities": dict(zip(labels, p, strict=True))}
            for i, p in zip(self.indices, shares, strict=True)
        ]


@dataclass(frozen=True)
class _Member:
    family: Family
    model: MultiTaskModel
    task: Task
    scale: TargetScale


class Predictor:
    """One or several exported models of the same task."""

    def __init__(self, members: Sequence[_Member]) -> None:
        self.members = list(members)
        self.task = self.members[0].task

    @classmethod
    def load(cls, directory: Path | str, *, factory: str | None = None) -> Predictor:
        """A model that `Family.export` wrote. factory: for a `custom` model, the user's function that builds it."""
        directory = Path(directory)
        card = read_card(directory)
        settings = parse(ModelSettings, card["model"], str(directory / "sidequest.json"))
        task = rowless_task(card["task"])
        others = [rowless_task(facts) for facts in card.get("tasks", []) if facts["name"] != task.name]
        if settings.kind == "custom":
            if factory is None:
                raise SettingsError(
                    f"{directory}: this model was built by the user's own code, {settings.factory!r}, which is not part of the "
                    "export; name the function to run: load(directory, factory='file.py:function')"
                )
            settings = settings.model_copy(update={"factory": factory})
        if settings.kind in ("hf", "bilstm", "pooled", "custom"):
            settings = settings.model_copy(update={"encoder": str((directory / settings.encoder).resolve())})
        family = kind(settings.kind).load()(Suite.of(task, others), settings)
        if isinstance(family, FrozenFamily):
            family.states.persist = False
        scale = TargetScale(card["target"]["mean"], card["target"]["deviation"])
        try:
            model = family.restore(directory)
        except (OSError, RuntimeError, SafetensorError) as error:
            raise SettingsError(
                f"{directory}: the model's weights cannot be read: {str(error).splitlines()[0]}"
            ) from None
        return cls([_Member(family, model, task, scale)])

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

    def predict(self, examples: Examples, *, batch_size: int = 128) -> Predictions:
        """Predictions for rows with this task's input columns; a target, if there is one, is not looked at."""
        rows = Examples(examples.columns, None, examples.ids)
        outputs = [_outputs(member, rows, batch_size) for member in self.members]
        objective = self.task.objective
        if objective == Objective.TAGGING:
            shares = [np.mean(row, axis=0) for row in zip(*outputs, strict=True)]
            tags = [row.argmax(-1) if len(row) else np.zeros(0, np.int64) for row in shares]
            return Predictions(self.task, tags=tags, tag_probabilities=shares)
        if objective == Objective.REGRESSION:
            return Predictions(self.task, values=np.mean([np.array(output) for output in outputs], axis=0))
        widest = max((len(row) for row in outputs[0]), default=0)
        mean = np.zeros((len(rows), widest))
        for output in outputs:
            for share, row in zip(mean, output, strict=True):
                share[: len(row)] += row / len(outputs)
        if objective == Objective.MULTILABEL:
            return Predictions(self.task, marks=mean > 0.5, probabilities=mean)
        indices = mean.argmax(-1) if widest else np.zeros(len(rows), np.int64)
        return Predictions(self.task, indices=indices, probabilities=mean)


@torch.inference_mode()
def _outputs(member: _Member, rows: Examples, batch_size: int) -> list[Any]:
    """Per row: probabilities [classes or choices], a value, or probabilities [words, tags]. Batches hold rows of like length."""
    task = member.task
    inputs = member.family.inputs(task, rows)
    order = np.argsort(-inputs.lengths, kind="stable")
    results: list[Any] = [None] * len(rows)
    device = chosen_device()
    member.model.to(device)
    for start in range(0, len(order), batch_size):
        positions = order[start : start + batch_size]
        batch = inputs.collate(positions)
        logits = member.model(task.name, {name: tensor.to(device) for name, tensor in batch.items()}).cpu().double()
        if task.objective == Objective.REGRESSION:
            found: list[Any] = member.scale.restore(logits.numpy()).tolist()
        elif task.objective == Objective.TAGGING:
            shares = logits.softmax(-1)
            found = [row[words].numpy() for row, words in zip(shares, batch["words"], strict=True)]
        elif task.objective == Objective.MULTILABEL:
            found = list(logits.sigmoid().numpy())
        else:
            shares = logits.softmax(-1)
            counts = batch["choices"].tolist() if "choices" in batch else [shares.shape[1]] * len(positions)
            found = [row[:count].numpy() for row, count in zip(shares, counts, strict=True)]
        for position, result in zip(positions, found, strict=True):
            results[position] = result
    return results
