"""Directories of fine-tuned models, for `HfFamily.export` and `restore` and, wherever it has a class, for plain transformers.

- A native head: the architecture's own class.
- A linear head on the mean of a text's states: the architecture's *token* classifier, whose logits are averaged over the attended
  tokens. W · mean(h) + b = mean(W · h + b), so this is the same model.
- Two texts encoded apart, or an architecture whose token classifier is more than a linear layer: transformers has no class. The
  encoder is a plain one in a directory of its own, the head is in `model.safetensors`, and `sidequest.models.load` joins them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save
from torch import Tensor, nn

from sidequest.errors import SettingsError
from sidequest.files import write_atomically
from sidequest.models.base import TargetScale, head_key
from sidequest.models.encoders import quiet_transformers
from sidequest.models.hf_model import HfModel, LinearHead
from sidequest.models.native import Native, empty_native, final_layer, fold_target, last_linear
from sidequest.models.saved import ENCODER, WEIGHTS, write_weights
from sidequest.tasks.task import Form, Objective, Task

TOKEN_CLASS = "AutoModelForTokenClassification"
TAG_CHAIN = "tag_chain.safetensors"


def token_classifier(task: Task, base_config: Any) -> Native | None:
    """The architecture's empty token classifier, if its head is one linear layer (and dropout)."""
    try:
        native = empty_native(task, base_config, TOKEN_CLASS)
    except SettingsError:
        return None
    head = [child for name, child in native.named_children() if name != native.base_model_prefix]
    plain = all(isinstance(child, nn.Linear | nn.Dropout) for child in head)
    return native if plain and final_layer(native, task.outputs) is not None else None


def save_token_classifier(
    native: Native, head: LinearHead, base: nn.Module, task: Task, scale: TargetScale, directory: Path
) -> None:
    """Write a mean-pooled head as the token classifier `native`."""
    prefix, layer = native.base_model_prefix, last_linear(native, task.outputs)
    state: dict[str, Tensor] = {f"{prefix}.{name}": value for name, value in base.state_dict().items()}
    state[f"{layer}.weight"], state[f"{layer}.bias"] = head.folded()
    if task.objective == Objective.REGRESSION:
        fold_target(state, layer, scale)
    wanted = set(native.state_dict())
    kept = {name: value.detach().cpu().contiguous() for name, value in state.items() if name in wanted}
    with quiet_transformers():
        native.save_pretrained(directory, state_dict=kept)


def load_token_classifier(task: Task, directory: Path, precision: str) -> HfModel:
    import transformers

    with quiet_transformers():
        native = getattr(transformers, TOKEN_CLASS).from_pretrained(
            directory, dtype=torch.float32, use_safetensors=True
        )
    layer = final_layer(native, task.outputs)
    assert layer is not None
    head = LinearHead(layer.in_features, task.outputs, 0.0)
    head.classifier.load_state_dict(layer.state_dict())
    model = HfModel(getattr(native, native.base_model_prefix), precision, [task])
    model.add_head(task, head)
    return model.eval()


def save_chain(model: HfModel, task: Task, directory: Path) -> None:
    """Which tag follows which: what transformers has no place for."""
    if (key := head_key(task.name)) in model.chains:
        state = model.chains[key].state_dict()
        write_atomically(directory / TAG_CHAIN, save({name: value.cpu() for name, value in state.items()}))


def load_chain(model: HfModel, directory: Path) -> None:
    """Directories of earlier versions have none: there a word's tag is its own best."""
    for chain in model.chains.values():
        if (path := directory / TAG_CHAIN).is_file():
            try:
                chain.load_state_dict(load_file(path))
            except RuntimeError:
                raise SettingsError(f"{path}: not of the tags that {directory.name}'s card has") from None


def save_apart(head: nn.Module, base: Any, task: Task, directory: Path) -> None:
    """The encoder in a directory of its own, the head beside it."""
    with quiet_transformers():
        base.save_pretrained(directory / ENCODER)
    write_weights(directory, {f"{_place(task)}{name}": value for name, value in head.state_dict().items()})


def load_head(model: HfModel, task: Task, directory: Path) -> HfModel:
    """`model` has the exported encoder as its base; its head gets the weights beside it."""
    weights = load_file(directory / WEIGHTS)
    head = model.heads[head_key(task.name)]
    # Directories written before heads standardised their inputs have a classifier alone: the head's own 0 and 1 are right then.
    buffers = {f"{_place(task)}{name}": value for name, value in head.named_buffers()}
    model.load_state_dict(model.base.state_dict(prefix="base.") | buffers | weights)
    return model.eval()


def _place(task: Task) -> str:
    return f"heads.{head_key(task.name)}."


def how_to_load(task: Task, loads_with: str, max_length: int) -> str:
    """A README for the directory: how its model is used without this library, and what it answers."""
    lines = [f"# {task.name}", "", f"A model for {task.objective} of {task.form}, written by sidequest.", ""]
    lines += [
        "With sidequest: `sidequest predict DIRECTORY FILE`, or `sidequest.models.load(DIRECTORY).predict(rows)`.",
        "",
    ]
    if not loads_with.startswith("transformers."):
        return "\n".join(
            [
                *lines,
                "transformers has no class for this model: `encoder/` is a plain encoder (`AutoModel.from_pretrained`), and",
                "`model.safetensors` is the head. A text's vector is the mean of the encoder's last states over attended tokens;",
                "with u and v the vectors of the two texts, logits = W · ([u, v, u ⋆ v, |u − v|, cos(u, v)] − mean) / scale + b.",
                "A single text has u alone." if task.form != Form.PAIR else "",
                "",
            ]
        )
    name = loads_with.removeprefix("transformers.")
    if task.form == Form.IMAGE:
        return "\n".join([*lines, f"With transformers: `{name}.from_pretrained(DIRECTORY)`.", ""])
    words = task.form == Form.TOKENS
    arguments = "sentences, is_split_into_words=True" if words else f"*texts, truncation=True, max_length={max_length}"
    code = [
        "```python",
        f"from transformers import {name}, AutoTokenizer",
        "",
        "tokenizer = AutoTokenizer.from_pretrained(DIRECTORY)",
        f"model = {name}.from_pretrained(DIRECTORY)",
        f'inputs = tokenizer({arguments}, padding=True, return_tensors="pt")',
        "logits = model(**inputs).logits",
    ]
    if name == TOKEN_CLASS and not words:
        code += [
            'attended = inputs["attention_mask"][..., None]',
            "logits = (logits * attended).sum(1) / attended.sum(1)  # the mean over a text's tokens",
        ]
    if words:
        code += ["tags = logits.argmax(-1)  # of each word by itself, at its first sub-token"]
    note = [
        "",
        "The class is a token classifier because the head reads the mean of a text's states: average its logits.",
    ]
    if words:
        note = [
            "",
            f"sidequest also weighs which tag follows which (`{TAG_CHAIN}`): its tags are those of a whole sentence.",
        ]
    return "\n".join([*lines, "With transformers:", "", *code, "```", *(note if name == TOKEN_CLASS else []), ""])
