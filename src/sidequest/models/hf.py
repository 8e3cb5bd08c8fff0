"""`hf`: fine-tune any Hugging Face encoder. One base model, and one head per task on it.

A head is the architecture's own class (see `native.py`), or a linear layer on the mean of the last states where the encoder was
trained to mean something by it, or on what the vectors of two texts have in common. Either starts at the read-out of the
untouched encoder (see `head_start.py`) and is exported so that plain transformers gives the same predictions wherever it has a
class (see `hf_export.py`).
"""

from __future__ import annotations

import copy
import inspect
import shutil
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch

from sidequest.errors import SettingsError
from sidequest.files import atomic_directory, digest, write_atomically, write_json
from sidequest.model_settings import HfSettings
from sidequest.models import hf_export
from sidequest.models.base import Family, Inputs, MultiTaskModel, Targets, head_key, seeded
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
from sidequest.models.head_start import HEAD_VERSION, has_drawn_layers, layer_inputs, start_at_read_out
from sidequest.models.hf_model import HfModel, LinearHead
from sidequest.models.images import PROBE_SIDE, ImageInputs, Preparation, pixel_features
from sidequest.models.kinds import KINDS
from sidequest.models.native import attach, auto_class, empty_native, save_native, uses_pooler
from sidequest.models.readout import Features
from sidequest.models.saved import ENCODER, write_card
from sidequest.models.states import FrozenEncoder
from sidequest.models.tokenising import (
    SeparateTexts,
    TextInputs,
    Texts,
    flat_tags,
    has_pairs,
    tokenise_texts,
    tokenise_words,
)
from sidequest.models.tuning import add_adapters, freeze_layers, merged
from sidequest.tasks.examples import Examples
from sidequest.tasks.suite import Suite
from sidequest.tasks.task import Form, Task


class HfFamily(Family):
    """Fine-tuning of a pretrained encoder."""

    kind: ClassVar[str] = "hf"
    Settings = HfSettings
    settings: HfSettings
    powers: ClassVar[frozenset[type]] = KINDS["hf"].powers

    def __init__(self, suite: Suite, settings: HfSettings) -> None:
        super().__init__(suite, settings)
        self.encoder: Encoder = resolve(settings.encoder)
        self.config = load_config(self.encoder, layers=settings.layers, dropout=settings.dropout)
        base = skeleton(self.encoder, self.config)
        # Adam's best rate falls with the width (Yang et al., 2022): 5e-5 for BERT-base, 1e-4 for MiniLM.
        self.default_learning_rate = 1e-4 * min(1.0, 384 / base.config.hidden_size)
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
        texts, targets = Texts.of(task, examples), Targets(task, examples, self.scales[task.name])
        length = self.settings.max_length if self.limit is None else min(self.settings.max_length, self.limit)
        if self.apart(task):
            assert texts.second is not None
            of_rows = texts.first if texts.counts is None else _first_of_each(texts.first, texts.counts)
            first = tokenise_texts(self.tokeniser, of_rows, None, length, types=False)
            second = tokenise_texts(self.tokeniser, texts.second, None, length, types=False)
            return SeparateTexts(first, second, targets, texts.counts, self.pad)
        tokens = tokenise_texts(self.tokeniser, texts.first, texts.second, length, types=self.types)
        return TextInputs(tokens, targets, texts.counts, None, self.pad)

    @cached_property
    def pooling(self) -> str:
        """`native` or `mean`: what heads read of a text."""
        if self.settings.pooling != "auto":
            return self.settings.pooling
        return "mean" if self.encoder.pools_by_mean() else "native"

    def apart(self, task: Task) -> bool:
        """Whether the two texts of a task's pairs are encoded each by itself."""
        if not has_pairs(task):
            return False
        if self.settings.pairing == "auto":
            return self.encoder.pools_by_mean()
        return self.settings.pairing == "bi"

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
        natives = {task.name: empty_native(task, base.config) for task in tasks if not self._linear(task)}
        if not any(uses_pooler(native) for native in natives.values()):
            if getattr(base, "pooler", None) is not None:
                base.pooler = None
        elif self.pretrained.fresh:
            with seeded(seed, "pooler"), torch.no_grad():
                base.pooler.apply(base._init_weights)
        if self.settings.lora is not None:
            add_adapters(base, self.settings.lora, seed)
        freeze_layers(base, self.settings.freeze)
        model = HfModel(base, self.settings.precision, tasks)
        for task in tasks:
            if native := natives.get(task.name):
                model.add_native(task, native, attach(native, base, seed, task.name))
            else:
                with seeded(seed, "head", task.name):
                    width = base.config.hidden_size * (4 if self.apart(task) else 1) + self.apart(task)
                    model.add_head(task, LinearHead(width, task.outputs, self._dropout()))
        for task in tasks:
            if self.settings.start == "readout" or (self.settings.start == "auto" and task.form != Form.TOKENS):
                self._start(model, task, seed)
        return model

    def _linear(self, task: Task) -> bool:
        """Whether a task's head is sidequest's linear one. Tags need a state per word and a vision transformer has its own
        pooling: both stay native."""
        return task.form not in (Form.TOKENS, Form.IMAGE) and (self.pooling == "mean" or self.apart(task))

    def _start(self, model: HfModel, task: Task, seed: int) -> None:
        """Start a task's head at a read-out: of the cached states where the head reads these, else of what reaches it."""
        standardise = self.scales[task.name].standardise
        if self._linear(task) and self.apart(task) == has_pairs(task):
            start_at_read_out(model, task, self.features, standardise, self.features_key())
            return
        own = seed if self.pretrained.fresh or has_drawn_layers(model, task) else None
        read = [self.pooling, self.settings.layers, self.settings.max_length, own]
        key = ["head", HEAD_VERSION, self.encoder.fingerprint(), self.encoder.tokeniser_fingerprint(), *read]
        start_at_read_out(model, task, layer_inputs(model, self.inputs), standardise, key)

    def _dropout(self) -> float:
        rate = self.settings.dropout
        return rate if rate is not None else float(getattr(self.config, "hidden_dropout_prob", 0.1) or 0.0)

    def export(self, model: MultiTaskModel, task: Task, directory: Path) -> None:
        assert isinstance(model, HfModel)
        base: Any = model.base if self.settings.lora is None else merged(model.base)
        # What was done to the base is done: the exported encoder is a plain one. It predicts in float32, as plain transformers.
        done = {"layers": None, "freeze": 0, "lora": None, "precision": "fp32"}
        settings = self.settings.model_copy(update={"kind": self.kind, **done})
        settings = settings.model_copy(
            update={"pooling": self.pooling, "pairing": "bi" if self.apart(task) else "cross", "encoder": "."}
        )
        scale, units = self.scales[task.name], None  # units: of a regression, where they are not in the weights
        with atomic_directory(directory) as place:
            preparation = place
            if not self._linear(task):
                save_native(model.natives[task.name], base, task, scale, place)
                hf_export.save_chain(model, task, place)
                loads_with = f"transformers.{auto_class(task)}"
            else:
                head = model.heads[head_key(task.name)]
                assert isinstance(head, LinearHead)
                classifier = None if self.apart(task) else hf_export.token_classifier(task, base.config)
                if classifier is not None:
                    hf_export.save_token_classifier(classifier, head, base, task, scale, place)
                    loads_with = f"transformers.{hf_export.TOKEN_CLASS}"
                else:
                    hf_export.save_apart(head, base, task, place)
                    settings, preparation = settings.model_copy(update={"encoder": ENCODER}), place / ENCODER
                    loads_with, units = "sidequest.models.load", scale
            self._save_preparation(task, preparation)
            write_card(place, task, settings, loads_with=loads_with, scale=units)
            text = hf_export.how_to_load(task, loads_with, self.settings.max_length)
            write_atomically(place / "README.md", text.encode())

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
        if self._linear(task):
            if (directory / ENCODER).is_dir():
                return hf_export.load_head(self.build(0), task, directory)
            return hf_export.load_token_classifier(task, directory, self.settings.precision)
        with quiet_transformers():
            native = getattr(transformers, auto_class(task)).from_pretrained(
                directory, dtype=torch.float32, use_safetensors=True
            )
        prefix = native.base_model_prefix
        model = HfModel(getattr(native, prefix), self.settings.precision, [task])
        model.add_native(task, native, {name: child for name, child in native.named_children() if name != prefix})
        hf_export.load_chain(model, directory)
        return model.eval()

    def fingerprint(self) -> str:
        return digest([self.encoder.fingerprint(), self.encoder.tokeniser_fingerprint(), self.pooling])


def _first_of_each(texts: list[str], counts: np.ndarray) -> list[str]:
    """Of texts that are repeated for each unit of a row: one for each row."""
    return [texts[start] for start in np.cumsum(counts) - counts]
