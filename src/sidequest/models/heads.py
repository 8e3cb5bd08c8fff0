"""Heads of tasks on a network that they share: how plain ones are made, and what a head's numbers are for each objective."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from torch import Tensor, nn

from sidequest.models.base import Batch, head_key, seeded, spread_choices
from sidequest.tasks.task import Objective, Task


def linear_heads(tasks: Iterable[Task], width: Callable[[Task], int], seed: int) -> nn.ModuleDict:
    """A linear head for each task, whose values depend on (seed, the task's name) alone. width: of what enters it."""
    heads = nn.ModuleDict()
    for task in tasks:
        with seeded(seed, "head", task.name):
            heads[head_key(task.name)] = nn.Linear(width(task), task.outputs)
    return heads


def answers(logits: Tensor, objective: Objective, batch: Batch) -> Tensor:
    """A head's output as losses and predictions take it.

    Multiple choice: one number per choice, [sum of choices, 1] → [n, most choices]. Regression: [n, 1] → [n]. Else as it is.
    """
    if objective == Objective.CHOICE:
        return spread_choices(logits.reshape(-1), batch["choices"])
    return logits[:, 0] if objective == Objective.REGRESSION else logits
