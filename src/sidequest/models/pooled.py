"""`pooled`: a linear read-out of frozen, cached sentence vectors, and beside it a small network that the tasks share.

Each text is one vector per layer of the encoder (the mean of its states). A task's logits are a linear read-out of these vectors
(of a pair: of u, v, u ⋆ v, |u − v| and the cosines), which starts at its regularised solution, plus a projection of what the
shared trunk makes of them (pairs combined as in AutoSeM's Eq. 1, h = [u; v; u ⋆ v; |u − v|]), which starts at zero. So training
begins at the level of a linear probe. It cannot tag: a sentence vector knows nothing of single words. What it cannot learn (word
order across a pair, as in RTE) it cannot rank either: check it on the primary before trusting it.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from sidequest.model_settings import PooledSettings
from sidequest.models.base import Batch, Inputs, MultiTaskModel, Targets, head_key, seeded
from sidequest.models.direct_path import (
    DirectPath,
    direct_rates,
    feature_widths,
    start_direct_paths,
    text_features,
    zero_head,
)
from sidequest.models.frozen import FrozenFamily, Located, Standardised, combine, combined_width
from sidequest.models.heads import answers
from sidequest.models.ragged import ranges
from sidequest.models.states import View
from sidequest.models.tokenising import has_pairs
from sidequest.tasks.examples import Examples
from sidequest.tasks.suite import Suite
from sidequest.tasks.task import Form, Task


class VectorInputs(Inputs):
    """Batches: `first` and, for pairs, `second`: float32 [n, layers, width]."""

    def __init__(self, located: Located, targets: Targets) -> None:
        self.table, place = located.rows.table()
        self.first = place[located.first]
        self.second = None if located.second is None else place[located.second]
        self.counts, self.start = located.counts, located.start
        self.targets = targets
        self.lengths = np.ones(len(self.first) if self.counts is None else len(self.counts), dtype=np.int64)

    def collate(self, positions: np.ndarray) -> Batch:
        batch: Batch = {}
        texts = positions
        if self.counts is not None and self.start is not None:
            texts = ranges(self.start[positions], self.counts[positions])
            batch["choices"] = torch.from_numpy(self.counts[positions])
        batch["first"] = torch.from_numpy(self.table[self.first[texts]]).float()
        if self.second is not None:
            batch["second"] = torch.from_numpy(self.table[self.second[texts]]).float()
        return self.targets.into(batch, positions)


class PooledModel(MultiTaskModel):
    """For each task a direct path, and a linear head on the shared trunk."""

    def __init__(self, suite: Suite, settings: PooledSettings, layers: int, width: int, seed: int) -> None:
        super().__init__()
        hidden, depth = settings.hidden, settings.depth
        self.standardised = Standardised(layers * width)
        modules: list[nn.Module] = []
        with seeded(seed, "trunk"):
            for entering in (layers * width, *[hidden] * (depth - 1)):
                modules += [nn.Linear(entering, hidden), nn.GELU(), nn.Dropout(settings.dropout)]
        self.trunk = nn.Sequential(*modules)
        self.heads, self.direct = nn.ModuleDict(), nn.ModuleDict()
        for task in suite.tasks.values():
            self.heads[head_key(task.name)] = zero_head(combined_width(task, hidden), task.outputs)
            features = sum(feature_widths(layers, width, pair=has_pairs(task)))
            self.direct[head_key(task.name)] = DirectPath(features, task.outputs)
        self.objectives = {task.name: task.objective for task in suite.tasks.values()}

    def rate_factors(self) -> dict[str, float]:
        return direct_rates(self)

    def forward(self, task: str, batch: Batch) -> Tensor:
        first, second = batch["first"], batch.get("second")
        u = self.trunk(self.standardised(first))
        v = None if second is None else self.trunk(self.standardised(second))
        key = head_key(task)
        logits = self.direct[key](text_features(first, second)) + self.heads[key](combine(u, v))
        return answers(logits, self.objectives[task], batch)


class PooledFamily(FrozenFamily):
    """A read-out of frozen sentence vectors, and a small shared network."""

    kind: ClassVar[str] = "pooled"
    Settings = PooledSettings
    settings: PooledSettings
    forms: ClassVar[tuple[Form, ...]] = (Form.TEXT, Form.PAIR, Form.CHOICES)
    text_view: ClassVar[View] = "layers"
    default_learning_rate = 1e-4

    def inputs(self, task: Task, examples: Examples) -> Inputs:
        return VectorInputs(
            self.locate(task, examples, self.text_view), Targets(task, examples, self.scales[task.name])
        )

    def build(self, seed: int) -> PooledModel:
        model = PooledModel(self.suite, self.settings, self.frozen.depth, self.frozen.width, seed)
        if (vectors := self.statistics()) is not None:
            model.standardised.fit(vectors)
            start_direct_paths(model.direct, self)
        return model
