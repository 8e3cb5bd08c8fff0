"""Which parameters of a base model learn: frozen layers, and low-rank adapters through `peft`."""

from __future__ import annotations

import copy
from typing import Any

from torch import nn

from sidequest.errors import SettingsError
from sidequest.model_settings import LoraSettings
from sidequest.models.base import seeded


def freeze_layers(base: Any, count: int) -> None:
    """Keep the first `count` layers, and all that feeds them, as they were pretrained: their states never change.

    Embeddings (relative positions too) are frozen with the first layer, a norm after the last layer only with that. A pooler
    always learns: it belongs to the heads, and many encoders come without a trained one.
    """
    if count == 0:
        return
    layers = layer_list(base)
    if count > len(layers):
        raise SettingsError(f"model.freeze={count}: the encoder has {len(layers)} layers")
    learning = {name: parameter.requires_grad for name, parameter in base.named_parameters()}
    base.requires_grad_(False)
    kept: list[nn.Module] = list(layers[count:])
    if kept:
        kept += [child for child in base.children() if "Norm" in type(child).__name__]
    if (pooler := getattr(base, "pooler", None)) is not None:
        kept.append(pooler)
    free = {id(parameter) for module in kept for parameter in module.parameters()}
    for name, parameter in base.named_parameters():
        parameter.requires_grad_(learning[name] and id(parameter) in free)


def layers_above(base: Any) -> dict[str, int]:
    """How many of the encoder's layers stand above each of its parameters, by name: all of them above the embeddings, none above
    the last layer, a norm after it and a pooler."""
    layers = layer_list(base, "train.layer_decay")
    at = {id(p): len(layers) - 1 - depth for depth, layer in enumerate(layers) for p in layer.parameters()}
    last = [
        child for child in base.children() if "Norm" in type(child).__name__ or child is getattr(base, "pooler", None)
    ]
    at |= {id(p): 0 for child in last for p in child.parameters()}
    return {name: at.get(id(p), len(layers)) for name, p in base.named_parameters()}


def layer_list(base: Any, setting: str = "model.freeze") -> nn.ModuleList:
    """The encoder's layers, first to last, whatever the architecture calls them. setting: what needs them, for the message."""
    depth = base.config.num_hidden_layers
    for module in base.modules():
        if isinstance(module, nn.ModuleList) and len(module) == depth:
            # ALBERT keeps one group of layers and runs it `depth` times: nothing to cut between its layers.
            if getattr(base.config, "num_hidden_groups", depth) != depth:
                break
            return module
    raise SettingsError(
        f"{setting}: the layers of the architecture {base.config.model_type!r} share their weights, so they cannot be told "
        "apart; leave it out, or use model.kind=bilstm or pooled, where the whole encoder is frozen"
    )


def add_adapters(base: Any, settings: LoraSettings, seed: int) -> None:
    """Put low-rank adapters into the base model, in place; only they and a pooler learn."""
    peft = _peft()
    targets = list(settings.targets) if settings.targets is not None else None
    config = peft.LoraConfig(
        r=settings.r, lora_alpha=settings.alpha, lora_dropout=settings.dropout, target_modules=targets, bias="none"
    )
    try:
        with seeded(seed, "adapters"):
            peft.inject_adapter_in_model(config, base)
    except ValueError:
        linear = sorted({name.split(".")[-1] for name, module in base.named_modules() if isinstance(module, nn.Linear)})
        what = f"names none of its layers: {targets}" if targets else "is needed for this architecture"
        raise SettingsError(
            f"model.lora.targets {what} ({base.config.model_type}). Its linear layers: {', '.join(linear)}"
        ) from None
    if (pooler := getattr(base, "pooler", None)) is not None:
        pooler.requires_grad_(True)


def merged(base: nn.Module) -> nn.Module:
    """A copy of the base model with its adapters added to the weights: the plain architecture again."""
    from peft.tuners.tuners_utils import BaseTunerLayer

    plain = copy.deepcopy(base)
    for name, module in list(plain.named_modules()):
        if isinstance(module, BaseTunerLayer):
            module.merge()
            parent, _, child = name.rpartition(".")
            setattr(plain.get_submodule(parent), child, module.get_base_layer())
    return plain


def _peft() -> Any:
    try:
        import peft
    except ImportError:
        raise SettingsError("model.lora needs the `peft` extra: pip install 'sidequest[peft]'") from None
    return peft
