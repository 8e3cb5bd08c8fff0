"""The model of `hf`: one base model, and one head per task on it, the architecture's own or sidequest's linear one."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from sidequest.models.base import Batch, MultiTaskModel, head_key
from sidequest.models.devices import computes_bf16
from sidequest.models.heads import answers
from sidequest.models.native import Native
from sidequest.models.tag_chain import TagChains
from sidequest.models.tuning import layers_above
from sidequest.tasks.task import Objective, Task

MODEL_INPUTS = ("input_ids", "attention_mask", "token_type_ids", "pixel_values")


class LinearHead(nn.Module):
    """A linear layer on a text's vector, or on what two texts' vectors have in common: features that a linear read-out sees too.

    Features are standardised first, with numbers that are fixed when the head is made (a read-out's own; 0 and 1 without one):
    so dropout sets a feature to its mean instead of to a value that it never has, and every weight learns at the same pace.
    """

    mean: Tensor
    scale: Tensor

    def __init__(self, width: int, outputs: int, dropout: float) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("scale", torch.ones(width))
        self.dropout = nn.Dropout(dropout)
        self.classifier = nn.Linear(width, outputs)
        nn.init.normal_(self.classifier.weight, std=0.02)
        nn.init.zeros_(self.classifier.bias)

    def forward(self, states: Tensor, batch: Batch) -> Tensor:
        """states [texts, longest, width] → logits [units, outputs]."""
        return self.classifier(self.dropout((self.features(states, batch) - self.mean) / self.scale))

    def features(self, states: Tensor, batch: Batch) -> Tensor:
        """float32 [units, width]; a unit is a text, a pair, or a choice."""
        vectors = mean_of_tokens(states.float(), batch["attention_mask"])
        if "first" not in batch:
            return vectors
        return pair_features(vectors[batch["first"]], vectors[batch["second"]])

    def folded(self) -> tuple[Tensor, Tensor]:
        """Weight and bias of the plain linear layer that gives the same logits without standardising."""
        weight = self.classifier.weight.detach() / self.scale
        return weight, self.classifier.bias.detach() - weight @ self.mean


def mean_of_tokens(states: Tensor, attention_mask: Tensor) -> Tensor:
    """states [texts, longest, width], attention_mask [texts, longest] → [texts, width]."""
    weights = attention_mask[..., None].to(states.dtype)
    return (states * weights).sum(1) / weights.sum(1)


def pair_features(u: Tensor, v: Tensor) -> Tensor:
    """[u, v, u ⋆ v, |u − v|, cosine]: [units, width] twice → [units, 4 width + 1]; see `EncoderStates.features`."""
    lengths = u.norm(dim=-1) * v.norm(dim=-1)
    cosine = (u * v).sum(-1) / lengths.clamp(min=torch.finfo(u.dtype).tiny)
    return torch.cat([u, v, u * v, (u - v).abs(), cosine[:, None]], dim=-1)


class HfModel(MultiTaskModel):
    """`base` and `heads` hold every parameter once. The native models that join them are kept unregistered: each of them
    contains the base, which would otherwise be in the state dict once per task."""

    def __init__(self, base: nn.Module, precision: str, tasks: Iterable[Task] = ()) -> None:
        super().__init__()
        self.base = base
        self.heads = nn.ModuleDict()
        self.chains = TagChains(tasks)
        self.precision = precision
        self.bf16_evaluation = False  # float32, as an export predicts; whoever ranks many rows may choose otherwise
        self.objectives: dict[str, Objective] = {}
        self.natives: dict[str, Native] = {}

    def add_native(self, task: Task, native: Native, head: dict[str, nn.Module]) -> None:
        self.heads[head_key(task.name)] = nn.ModuleDict(head)
        self.natives[task.name] = native
        self.objectives[task.name] = task.objective

    def add_head(self, task: Task, head: nn.Module) -> None:
        """A head of sidequest's own: `head(states, batch)` gives logits per unit."""
        self.heads[head_key(task.name)] = head
        self.objectives[task.name] = task.objective

    def layers_below_the_top(self) -> dict[str, int]:
        return {f"base.{name}": above for name, above in layers_above(self.base).items()}

    def train(self, mode: bool = True) -> HfModel:
        super().train(mode)
        for native in self.natives.values():
            native.training = mode  # not its children: they are this model's own
        return self

    def forward(self, task: str, batch: Batch) -> Tensor:
        inputs = {name: batch[name] for name in MODEL_INPUTS if name in batch}
        device = next(iter(inputs.values())).device
        if (native := self.natives.get(task)) is not None:
            with self._autocast(device):
                logits = self._native_logits(task, native, inputs).float()
        else:
            with self._autocast(device):
                states = self.base(**inputs).last_hidden_state
            logits = self.heads[head_key(task)](states.float(), batch)  # a cosine in bfloat16 would have two digits
        return answers(logits, self.objectives[task], batch)

    def refined(self, task: str, logits: Tensor, batch: Batch) -> Tensor:
        return self.chains.refined(task, logits, batch)

    def _native_logits(self, task: str, native: Native, inputs: dict[str, Tensor]) -> Tensor:
        if self.objectives[task] == Objective.CHOICE:
            # One "row" with all the batch's texts as its choices: the class scores them one by one anyway.
            inputs = {name: value[None] for name, value in inputs.items()}
        return native(**inputs).logits

    def _autocast(self, device: torch.device) -> AbstractContextManager[Any]:
        bf16 = self.bf16_evaluation
        if self.training:
            bf16 = self.precision == "bf16" or (self.precision == "auto" and computes_bf16(device))
        return torch.autocast(device.type, torch.bfloat16) if bf16 else nullcontext()
