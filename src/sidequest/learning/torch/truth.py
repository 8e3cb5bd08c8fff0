"""For a learner: how well its model, and the read-out beside it, know the truth of each row (`Probing`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from torch import Tensor

from sidequest.learning.likelihood import Items, joined, row_likelihood
from sidequest.learning.torch.losses import items
from sidequest.learning.torch.readout import probe_truth
from sidequest.models.base import Batch, Family
from sidequest.recipe import Subset
from sidequest.tasks.task import Task


class RowByRow:
    """What a torch learner is judged by, row by row. The learner itself says how its logits are read."""

    family: Family

    def task(self, name: str) -> Task:
        raise NotImplementedError

    def positions(self, task: str, subset: Subset) -> np.ndarray:
        raise NotImplementedError

    def read(
        self, task: str, split: str, read: Callable[[Tensor, Batch], Any], rows: np.ndarray | None = None
    ) -> tuple[list[Any], np.ndarray]:
        raise NotImplementedError

    def truth(self, task: str, learned_from: Subset | None = None) -> np.ndarray:
        spec = self.task(task)
        looks: list[tuple[str, np.ndarray | None]] = [("select", None)]
        if learned_from is not None:
            looks.append(("train", np.setdiff1d(np.arange(len(spec.train)), self.positions(task, learned_from))))
        found: list[Items] = []
        orders: list[np.ndarray] = []
        for split, rows in looks:
            read, order = self.read(task, split, lambda logits, batch: items(spec, logits, batch["labels"]), rows)
            found += read
            orders.append(order + sum(len(each) for each in orders))
        return row_likelihood(joined(found), spec.objective)[np.concatenate(orders)]

    def all_but(self, task: str, rows: int) -> Subset | None:
        ids = np.asarray(self.task(task).train.ids)
        return Subset(ids=np.sort(np.random.default_rng([len(ids), rows]).permutation(ids)[rows:]))

    def read_out_truth(self, task: str) -> np.ndarray | None:
        return probe_truth(self.family, self.task(task))
