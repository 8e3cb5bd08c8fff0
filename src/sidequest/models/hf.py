"""`hf`: fine-tune any Hugging Face encoder. One base model, and one native head per task on it.

Every task's head is the architecture's own class (see `native.py`), so an exported directory loads with plain transformers and
gives the same predictions. With `pooling: mean` the head is sidequest's own (mean of the last states, then a linear layer) and
loads with sidequest only.
"""

from __future__ import annotations

import copy
import inspect
import shutil
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from sidequest.errors import SettingsError
from sidequest.files import atomic_directory, digest, write_json
from sidequest.model_settings import HfSettings
from sidequest.models.base import Batch, Family, Inputs, MultiTaskModel, Targets, head_key, seeded, spread_choices
from sidequest.models.devices import computes_bf16
from sidequest.models.encoders import (
    Encoder,
    Pretrained,
    load_base,
    load_config,
    load_tokeniser,
    longest_input,
    quiet_transformers,
    resolve,
    skeleton,
)
from sidequest.models.frozen import EncoderStates
from sidequest.models.images import PROBE_SIDE, ImageInputs, Preparation, pixel_features
from sidequest.models.kinds import KINDS
from sidequest.models.native import Native, attach, auto_class, empty_native, save_native, uses_pooler
from sidequest.models.readout import Features
from sidequest.models.saved import ENCODER, WEIGHTS, write_card, write_weights
from sidequest.models.states import FrozenEncoder
from sidequest.models.tokenising import TextInputs, Texts, flat_tags, tokenise_texts, tokenise_words
from sidequest.models.tuning import add_adapters, freeze_layers, merged
from sidequest.tasks.examples import Examples
from sidequest.tasks.suite import Suite
from sidequest.tasks.task import Form, Objective, Task

MODEL_INPUTS = ("input_ids", "attention_mask", "token_type_ids", "pixel_values")


class MeanHead(nn.Module):
    """Mean of the last states over the text's tokens, then a linear layer."""

    def __init__(self, width: int, outputs: int, dropout: float) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.classifier = nn.Linear(width, outputs)
        nn.init.normal_(self.classifier.weight, std=0.02)
        nn.init.zeros_(self.classifier.bias)

    def forward(self, states: Tensor, attention_mask: Tensor) -> Tensor:
        """states [n, longest, width], attention_mask [n, longest] → logits [n, outputs]."""
        weights = attention_mask[..., None].to(states.dtype)
        return self.classifier(self.dropout((states * weights).sum(1) / weights.sum(1)))


class HfModel(MultiTaskModel):
    """`base` and `heads` hold every parameter once. The native models that join them are kept unregistered: each of them
    contains the base, which would otherwise be in the state dict once per task."""

    def __init__(self, base: nn.Module, precision: str) -> None:
        super().__init__()
        self.base = base
        self.heads = nn.ModuleDict()
        self.precision = precision
        self.bf16_evaluation = False  # float32, as an export predicts; whoever ranks many rows may choose otherwise
        self.objectives: dict[str, Objective] = {}
        self.natives: dict[str, Native] = {}

    def add_native(self, task: Task, native: Native, head: dict[str, nn.Module]) -> None:
        self.heads[head_key(task.name)] = nn.ModuleDict(head)
        self.natives[task.name] = native
        self.objectives[task.name] = task.objective

    def add_mean(self, task: Task, head: MeanHead) -> None:
        self.heads[head_key(task.name)] = head
        self.objectives[task.name] = task.objective

    def train(self, mode: bool = True) -> HfModel:
        super().train(mode)
        for native in self.natives.values():
            native.training = mode  # not its children: they are this model's own
        return self

    def forward(self, task: str, batch: Batch) -> Tensor:
        inputs = {name: batch[name] for name in MODEL_INPUTS if name in batch}
        with self._autocast(next(iter(inputs.values())).device):
            logits = self._logits(task, inputs)
        logits = logits.float()
        if self.objectives[task] == Objective.CHOICE:
            return spread_choices(logits.reshape(-1), batch["choices"])
        return logits[:, 0] if self.objectives[task] == Objective.REGRESSION else logits

    def _autocast(self, device: torch.device) -> AbstractContextManager[Any]:
        bf16 = self.bf16_evaluation
        if self.training:
            bf16 = self.precision == "bf16" or (self.precision == "auto" and computes_bf16(device))
        return torch.autocast(device.type, torch.bfloat16) if bf16 else nullcontext()

    def _logits(self, task: str, inputs: dict[str, Tensor]) -> Tensor:
        native = self.natives.get(task)
        if native is None:
            states = self.base(**inputs).last_hidden_state
            return self.heads[head_key(task)](states, inputs["attention_mask"])
        if self.objectives[task] == Objective.CHOICE:
            # One "row" with all the batch's texts as its choices: the class scores them one by one anyway.
            inputs = {name: value[None] for name, value in inputs.items()}
        return native(**inputs).logits


class HfFamily(Family):
    """Fine-tuning of a pretrained encoder."""

    kind: ClassVar[str] = "hf"
    Settings = HfSettings
    settings: HfSettings
    powers: ClassVar[frozenset[type]] = KINDS["hf"].powers
    default_learning_rate: ClassVar[float] = 5e-5

    def __init__(self, suite: Suite, settings: HfSettings) -> None:
        super().__init__(suite, settings)
        self.encoder: Encoder = resolve(settings.encoder)
        self.config = load_config(self.encoder, layers=settings.layers, dropout=settings.dropout)
        base = skeleton(self.encoder, self.config)
        self.vision = base.main_input_name == "pixel_values"
        for task in suite.tasks.values():
            if (task.form == Form.IMAGE) != self.vision:
                kind = "images" if self.vision else "texts"
                raise SettingsError(
                    f"model.encoder={settings.encoder} takes {kind}; task {task.name!r} has the form {task.form.value!r}"
                )
        if self.vision:
            self.prepare = Preparation.of_encoder(self.config, self.encoder.directory)
            return
        forms = {task.form for task in suite.tasks.values()}
        self.tokeniser = load_tokeniser(self.encoder) if forms - {Form.TOKENS} else None
        self.word_tokeniser = load_tokeniser(self.encoder, words=True) if Form.TOKENS in forms else None
        any_tokeniser: Any = self.tokeniser or self.word_tokeniser
        self.limit = longest_input(self.config, any_tokeniser, base)
        takes = inspect.signature(base.forward).parameters
        self.types = (
            "token_type_ids" in takes
            and "token_type_ids" in any_tokeniser.model_input_names
            and getattr(self.config, "type_vocab_size", 0) > 1
        )
        pads = (any_tokeniser.pad_token_id, getattr(self.config, "pad_token_id", None), 0)
        self.pad = next(pad for pad in pads if pad is not None)

    @cached_property
    def pretrained(self) -> Pretrained:
        """The weights, read when the first model is built."""
        return load_base(self.encoder, self.config)

    def inputs(self, task: Task, examples: Examples) -> Inputs:
        if self.vision:
            return ImageInputs(task, examples, self.scales[task.name], self.prepare, "pixel_values")
        if task.form == Form.TOKENS:
            rows = examples.columns["tokens"].to_pylist()
            tokens = tokenise_words(self.word_tokeniser, rows, self.limit)
            tags = None if examples.target is None else flat_tags(examples)
            return TextInputs(tokens, None, None, tags, self.pad)
        texts = Texts.of(task, examples)
        length = self.settings.max_length if self.limit is None else min(self.settings.max_length, self.limit)
        tokens = tokenise_texts(self.tokeniser, texts.first, texts.second, length, types=self.types)
        return TextInputs(tokens, Targets(task, examples, self.scales[task.name]), texts.counts, None, self.pad)

    @cached_property
    def states(self) -> EncoderStates:
        """The states of the encoder as it was pretrained, for the read-out."""
        length, cut = self.settings.max_length, self.settings.layers
        return EncoderStates(FrozenEncoder(self.encoder, None, length, self.settings.precision, cut))

    def features(self, task: Task, examples: Examples) -> Features:
        if self.vision:
            return pixel_features(task, examples)
        self.states.progress = self.progress
        return self.states.features(task, examples)

    def features_key(self) -> Any:
        return ["pixels", PROBE_SIDE] if self.vision else self.states.facts()

    def build(self, seed: int) -> HfModel:
        base = copy.deepcopy(self.pretrained.model)
        tasks = list(self.suite.tasks.values())
        natives = {task.name: empty_native(task, base.config) for task in tasks if not self._mean(task)}
        if not any(uses_pooler(native) for native in natives.values()):
            if getattr(base, "pooler", None) is not None:
                base.pooler = None
        elif self.pretrained.fresh:
            with seeded(seed, "pooler"), torch.no_grad():
                base.pooler.apply(base._init_weights)
        if self.settings.lora is not None:
            add_adapters(base, self.settings.lora, seed)
        freeze_layers(base, self.settings.freeze)
        model = HfModel(base, self.settings.precision)
        for task in tasks:
            if native := natives.get(task.name):
                model.add_native(task, native, attach(native, base, seed, task.name))
            else:
                with seeded(seed, "head", task.name):
                    model.add_mean(task, MeanHead(base.config.hidden_size, task.outputs, self._dropout()))
        return model

    def _mean(self, task: Task) -> bool:
        # Tags need a state per word and a vision transformer has its own pooling: both stay native.
        return self.settings.pooling == "mean" and task.form not in (Form.TOKENS, Form.IMAGE)

    def _dropout(self) -> float:
        rate = self.settings.dropout
        return rate if rate is not None else float(getattr(self.config, "hidden_dropout_prob", 0.1) or 0.0)

    def export(self, model: MultiTaskModel, task: Task, directory: Path) -> None:
        assert isinstance(model, HfModel)
        base: Any = model.base if self.settings.lora is None else merged(model.base)
        # What was done to the base is done: the exported encoder is a plain one. It predicts in float32, as plain transformers.
        done = {"layers": None, "freeze": 0, "lora": None, "precision": "fp32"}
        settings = self.settings.model_copy(update={"kind": self.kind, **done})
        with atomic_directory(directory) as place:
            if self._mean(task):
                with quiet_transformers():
                    base.save_pretrained(place / ENCODER)
                self._save_preparation(task, place / ENCODER)
                head = model.heads[head_key(task.name)].state_dict()
                write_weights(place, {f"heads.{head_key(task.name)}.{name}": value for name, value in head.items()})
                settings = settings.model_copy(update={"encoder": ENCODER})
                loads, scale = "sidequest.models.load", self.scales[task.name]
            else:
                save_native(model.natives[task.name], base, task, self.scales[task.name], place)
                self._save_preparation(task, place)
                settings = settings.model_copy(update={"encoder": "."})
                loads, scale = f"transformers.{auto_class(task)}", None  # the units are in the weights
            write_card(place, task, settings, loads_with=loads, scale=scale)

    def _save_preparation(self, task: Task, place: Path) -> None:
        if self.vision:
            own = self.encoder.directory / "preprocessor_config.json"
            if own.is_file():
                shutil.copyfile(own, place / own.name)
            else:
                write_json(place / own.name, self.prepare.to_processor(), seal=False)
            return
        tokeniser = self.word_tokeniser if task.form == Form.TOKENS else self.tokeniser
        assert tokeniser is not None
        tokeniser.backend_tokenizer.no_truncation()  # a limit used while tokenising is not the tokeniser's own
        with quiet_transformers():
            tokeniser.save_pretrained(place)

    def restore(self, directory: Path) -> HfModel:
        import transformers

        (task,) = self.suite.tasks.values()
        if self._mean(task):
            model = self.build(0)  # the base is the exported encoder; the weights beside it are the head's
            model.load_state_dict(model.base.state_dict(prefix="base.") | load_file(directory / WEIGHTS))
            return model.eval()
        with quiet_transformers():
            native = getattr(transformers, auto_class(task)).from_pretrained(directory, dtype=torch.float32)
        prefix = native.base_model_prefix
        model = HfModel(getattr(native, prefix), self.settings.precision)
        model.add_native(task, native, {name: child for name, child in native.named_children() if name != prefix})
        return model.eval()

    def fingerprint(self) -> str:
        return digest([self.encoder.fingerprint(), self.encoder.tokeniser_fingerprint()])
