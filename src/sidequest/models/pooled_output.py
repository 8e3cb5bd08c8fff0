"""The pooled output of a model: one vector per row, of the same width for every task, taken where the tasks' heads begin.

- `hf`: the pooler's output or, where the encoder has none, the mean of the last states; with the encoder's dropout, as its own
  heads have it.
- Models with one head per task over shared features (`pooled`, `bilstm`, `convnet`, `custom`): what the task's head is given. A
  pair's features [u; v; u ⋆ v; |u − v|] are wider than a single text's u, which is padded with zeros. A sentence to tag has the
  mean over its words.

A multiple-choice row has the mean over its choices, a pair of texts that are encoded apart the mean over the two.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from sidequest.errors import SettingsError
from sidequest.models.base import Batch, MultiTaskModel, head_key
from sidequest.models.hf_model import HfModel


class PooledOutput:
    """Runs a model and keeps the features on their way to the head: one pass gives both."""

    def __init__(self, model: MultiTaskModel) -> None:
        self.model = model
        if isinstance(model, HfModel):
            self.base: nn.Module | None = model.base
            config: Any = model.base.config
            self.width = int(config.hidden_size)
            self.dropout = float(getattr(config, "hidden_dropout_prob", 0.0) or 0.0)
            return
        self.base, self.dropout = None, 0.0
        self.width = max(_entering(head) for head in self._heads().values())

    def __call__(self, task: str, batch: Batch) -> tuple[Tensor, Tensor]:
        """logits as `model(task, batch)` gives them, and features float32 [n, width]."""
        kept: list[Tensor] = []

        def after_base(module: nn.Module, inputs: Any, output: Any) -> None:
            kept.append(_pooled(output, batch))

        def before_head(module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
            kept.append(inputs[0])

        if self.base is not None:
            handle = self.base.register_forward_hook(after_base)
        else:
            handle = self._heads()[task].register_forward_pre_hook(before_head)
        try:
            logits = self.model(task, batch)
        finally:
            handle.remove()
        features = kept[0].float()
        if features.ndim == 3:
            features = _mean(features, batch["words"])
        if self.base is not None and "text_rows" in batch:
            features = _mean_of_texts(features, batch["text_rows"], len(logits))
        elif "choices" in batch:
            counts = batch["choices"]
            rows = torch.repeat_interleave(torch.arange(len(counts), device=counts.device), counts)
            features = _mean_of_texts(features, rows, len(counts))
        features = functional.dropout(features, self.dropout, self.model.training)
        return logits, functional.pad(features, (0, self.width - features.shape[1]))

    def _heads(self) -> dict[str, nn.Module]:
        heads = getattr(self.model, "heads", None)
        if not isinstance(heads, nn.ModuleDict) or not len(heads):
            raise SettingsError(
                f"{type(self.model).__name__} has no `heads`, one module per task: sidequest cannot find the features that "
                "tasks share. Let the factory return an encoder, or keep the heads in a ModuleDict called `heads`"
            )
        return {**heads, **{_task_of(key): head for key, head in heads.items()}}


def _task_of(key: str) -> str:
    """The task's name of a head's key; see `head_key`."""
    return key.removeprefix(head_key("")).replace("%2E", ".").replace("%25", "%")


def _entering(head: nn.Module) -> int:
    linear = next((module for module in head.modules() if isinstance(module, nn.Linear)), None)
    if linear is None:
        raise SettingsError(
            f"a head of type {type(head).__name__} begins with no linear layer: its inputs have no known width"
        )
    return linear.in_features


def _pooled(output: Any, batch: Batch) -> Tensor:
    """Of an encoder's output: the pooler's, or the mean of the last states over real tokens: [texts, width]."""
    pooled = getattr(output, "pooler_output", None)
    if pooled is not None:
        return pooled
    states: Tensor = output.last_hidden_state
    return _mean(states, batch["attention_mask"]) if "attention_mask" in batch else states.mean(1)


def _mean(states: Tensor, inside: Tensor) -> Tensor:
    """states [n, longest, width], inside [n, longest] → [n, width]; 0 where nothing is inside."""
    weights = inside[..., None].to(states.dtype)
    return (states * weights).sum(1) / weights.sum(1).clamp(min=1)


def _mean_of_texts(features: Tensor, rows: Tensor, count: int) -> Tensor:
    """features [texts, width], rows int64 [texts] → [count, width]: the mean over the texts of each row."""
    sums = features.new_zeros(count, features.shape[1]).index_add_(0, rows, features)
    return sums / torch.bincount(rows, minlength=count)[:, None]
