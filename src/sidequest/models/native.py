"""Native heads: each task gets its architecture's own classification class, and all of them stand on one base model.

A class such as `BertForSequenceClassification` is a base model (`.bert`) with a few small modules beside it (the head). It is
built on torch's meta device, which costs no memory and no random numbers; its empty base is exchanged for the shared one, and
only the head is given values, by the architecture's own rule, from (seed, task name).
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from sidequest.errors import SettingsError
from sidequest.models.base import TargetScale, seeded
from sidequest.models.encoders import quiet_transformers
from sidequest.tasks.task import Form, Objective, Task

Native = Any  # a transformers PreTrainedModel: logits = native(**inputs).logits


def auto_class(task: Task) -> str:
    """The name of the transformers class that loads an export of this task."""
    if task.form == Form.IMAGE:
        return "AutoModelForImageClassification"
    return {
        Objective.CLASSIFICATION: "AutoModelForSequenceClassification",
        Objective.MULTILABEL: "AutoModelForSequenceClassification",
        Objective.REGRESSION: "AutoModelForSequenceClassification",
        Objective.TAGGING: "AutoModelForTokenClassification",
        Objective.CHOICE: "AutoModelForMultipleChoice",
    }[task.objective]


def empty_native(task: Task, base_config: Any, name: str | None = None) -> Native:
    """The task's class, or the one named, without values (on the meta device), its labels and problem type configured."""
    import transformers

    config = copy.deepcopy(base_config)
    if task.objective == Objective.REGRESSION:
        config.num_labels, config.problem_type = 1, "regression"
    elif task.objective != Objective.CHOICE:
        config.id2label = dict(enumerate(task.labels))
        config.label2id = {label: index for index, label in enumerate(task.labels)}
        config.problem_type = {
            Objective.CLASSIFICATION: "single_label_classification",
            Objective.MULTILABEL: "multi_label_classification",
        }.get(task.objective)
        if len(task.labels) < 2:
            config.problem_type = None  # transformers reads one label as a regression and refuses the other word
    elif name is not None:  # a class that does not score choices by itself
        config.num_labels = 1
    name = name or auto_class(task)
    with quiet_transformers(), torch.device("meta"):
        try:
            return getattr(transformers, name).from_config(config)
        except (ValueError, KeyError):
            raise SettingsError(
                f"task {task.name!r}: the architecture {base_config.model_type!r} has no {name.removeprefix('AutoModelFor')} "
                "head; set model.pooling=mean, or model.kind to bilstm or pooled"
            ) from None


def uses_pooler(native: Native) -> bool:
    """Whether the class's own base has a pooler: only then is it part of the export."""
    return getattr(getattr(native, native.base_model_prefix), "pooler", None) is not None


def attach(native: Native, base: nn.Module, seed: int, task: str) -> dict[str, nn.Module]:
    """Exchange the empty base for the shared one and give the head its first values; the head's modules by name."""
    prefix = native.base_model_prefix
    head = {name: child for name, child in native.named_children() if name != prefix}
    setattr(native, prefix, base)
    if native._parameters or native._buffers:
        raise SettingsError(
            f"{type(native).__name__} keeps parameters outside its head modules; sidequest cannot share its base"
        )
    for child in head.values():
        child.to_empty(device="cpu")
        # A value that the architecture's rule forgets must be found below, not trained from whatever was in memory.
        for parameter in child.parameters():
            nn.init.constant_(parameter, torch.nan)
    with seeded(seed, "head", task), torch.no_grad():
        for child in head.values():
            child.apply(native._init_weights)
        native._init_weights(native)  # ModernBERT gives its classifier values here
    for name, child in head.items():
        if not all(bool(torch.isfinite(parameter).all()) for parameter in child.parameters()):
            raise SettingsError(f"{type(native).__name__} leaves its module {name!r} without initial values")
        child.requires_grad_(True)
    return head


def last_linear(native: Native, outputs: int) -> str:
    """The name of the layer that gives the logits: the last linear layer of the head with as many outputs."""
    prefix = native.base_model_prefix + "."
    found = [
        name
        for name, module in native.named_modules()
        if isinstance(module, nn.Linear) and module.out_features == outputs and not name.startswith(prefix)
    ]
    if not found:
        raise SettingsError(f"{type(native).__name__} does not end in a linear layer, so its target cannot be rescaled")
    return found[-1]


def final_layer(native: Native, outputs: int) -> nn.Linear | None:
    """The layer that gives the logits, if the head ends in a linear one with a bias."""
    try:
        layer = native.get_submodule(last_linear(native, outputs))
    except SettingsError:
        return None
    return layer if layer.bias is not None else None


def fold_target(state: dict[str, Tensor], layer: str, scale: TargetScale) -> None:
    """Change the last layer of an exported copy from standardised to original units: y = (Wx + b)·deviation + mean."""
    state[f"{layer}.weight"] = state[f"{layer}.weight"] * scale.deviation
    bias = state.get(f"{layer}.bias")
    if bias is None:
        raise SettingsError(f"{layer} has no bias, so the mean of the target cannot be part of the export")
    state[f"{layer}.bias"] = bias * scale.deviation + scale.mean


def save_native(native: Native, base: nn.Module, task: Task, scale: TargetScale, directory: Path) -> None:
    """Write a model directory for plain transformers. `base` is the shared base, with adapters merged."""
    plain = empty_native(task, base.config)
    wanted = set(plain.state_dict())
    prefix = native.base_model_prefix
    state = {f"{prefix}.{name}": value for name, value in base.state_dict().items()}
    for name, child in native.named_children():
        if name != prefix:
            state |= {f"{name}.{key}": value for key, value in child.state_dict().items()}
    # A pooler that only other tasks use is not part of this class, and plain transformers would warn about it.
    state = {name: value.detach().cpu() for name, value in state.items() if name in wanted}
    if task.objective == Objective.REGRESSION:
        fold_target(state, last_linear(plain, 1), scale)
    with quiet_transformers():
        plain.save_pretrained(directory, state_dict=state)
