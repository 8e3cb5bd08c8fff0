"""`pooled`: a small network over frozen, cached sentence vectors. The fast proxy: thousands of examples a second.

Each text is one vector (the mean of the encoder's last states). A shared trunk maps it to u; pairs are combined as in AutoSeM's
Eq. 1, h = [u; v; u ⋆ v; |u − v|]; one projection per task. It cannot tag: a sentence vector knows nothing of single words.
What it cannot learn (word order across a pair, as in RTE) it cannot rank either: check it on the primary before trusting it.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from sidequest.model_settings import PooledSettings
from sidequest.models.base import Batch, Inputs, MultiTaskModel, Targets, head_key, seeded, spread_choices
from sidequest.models.frozen import FrozenFamily, Located, combine, combined_width
from sidequest.models.ragged import ranges
from sidequest.tasks.examples import Examples
from sidequest.tasks.suite import Suite
from sidequest.tasks.task import Form, Objective, Task


class VectorInputs(Inputs):
    """Batches: `first` and, for pairs, `second`: float32 [n, width]."""

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
        batch["first"] = torch.from_numpy(self.table[self.first[texts]])
        if self.second is not None:
            batch["second"] = torch.from_numpy(self.table[self.second[texts]])
        return self.targets.into(batch, positions)


class PooledModel(MultiTaskModel):
    """Shared trunk, Eq. 1, one linear head per task."""

    def __init__(self, suite: Suite, settings: PooledSettings, width: int, seed: int) -> None:
        super().__init__()
        hidden, depth = settings.hidden, settings.depth
        rate = settings.dropout
        # Sentence vectors differ much in length from encoder to encoder; only their direction and shape should matter.
        layers: list[nn.Module] = [nn.LayerNorm(width, elementwise_affine=False)]
        with seeded(seed, "trunk"):
            for entering in (width, *[hidden] * (depth - 1)):
                layers += [nn.Linear(entering, hidden), nn.GELU(), nn.Dropout(rate)]
        self.trunk = nn.Sequential(*layers)
        self.heads = nn.ModuleDict()
        for task in suite.tasks.values():
            with seeded(seed, "head", task.name):
                self.heads[head_key(task.name)] = nn.Linear(combined_width(task, hidden), task.outputs)
        self.objectives = {task.name: task.objective for task in suite.tasks.values()}

    def forward(self, task: str, batch: Batch) -> Tensor:
        u = self.trunk(batch["first"])
        v = self.trunk(batch["second"]) if "second" in batch else None
        logits = self.heads[head_key(task)](combine(u, v))
        objective = self.objectives[task]
        if objective == Objective.CHOICE:
            return spread_choices(logits[:, 0], batch["choices"])
        return logits[:, 0] if objective == Objective.REGRESSION else logits


class PooledFamily(FrozenFamily):
    """A small network over frozen sentence vectors."""

    kind: ClassVar[str] = "pooled"
    Settings = PooledSettings
    settings: PooledSettings
    forms: ClassVar[tuple[Form, ...]] = (Form.TEXT, Form.PAIR, Form.CHOICES)
    default_learning_rate = 1e-3

    def inputs(self, task: Task, examples: Examples) -> Inputs:
        return VectorInputs(self.locate(task, examples, "pooled"), Targets(task, examples, self.scales[task.name]))

    def build(self, seed: int) -> PooledModel:
        return PooledModel(self.suite, self.settings, self.frozen.width, seed)
