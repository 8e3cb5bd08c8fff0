"""`custom`: a user's own network. `model.factory` names a function, `file.py:function` or `package.module:function`::

    # mynet.py
    from torch import nn

    class Encoder(nn.Module):
        width = 64                                  # of the features

        def __init__(self, channels):
            super().__init__()
            self.net = nn.Sequential(nn.Conv2d(channels, 8, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(),
                                     nn.Linear(128, self.width), nn.ReLU())

        def forward(self, batch):
            return self.net(batch["image"])         # [n, width]; for tagging [n, longest, width]

    def build(tasks):                               # the suite's tasks, the primary first
        return Encoder(tasks[0].train.columns["image"].shape[1])

with `--set model.kind=custom --set model.factory=mynet.py:build`. sidequest adds one linear head per task. What a batch holds:

- images: `image`, float32 [n, channels, height, width], bytes divided by 255;
- texts, pairs, choices: `input_ids` and `attention_mask` [n, longest] (and `token_type_ids` if the tokeniser makes them) from the
  tokeniser of `model.encoder`; choices are flat, one row of features each;
- sentences to tag: the same, features per token; the one at a word's first token stands for the word.

A factory that needs other heads returns a whole `sidequest.models.base.MultiTaskModel` instead. An export holds weights and the
factory's name, never its code: `sidequest.models.load(directory, factory="mynet.py:build")` runs only what the caller names.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

from safetensors.torch import load_file
from torch import Tensor, nn

from sidequest.errors import SettingsError, speaking_for
from sidequest.files import atomic_directory, digest
from sidequest.model_settings import CustomSettings
from sidequest.models.base import Batch, Family, Inputs, MultiTaskModel, Targets, head_key, seeded
from sidequest.models.encoders import SMALL_FILES, load_tokeniser, resolve
from sidequest.models.heads import answers, linear_heads
from sidequest.models.images import PROBE_SIDE, ImageInputs, Preparation, pixel_features
from sidequest.models.kinds import KINDS
from sidequest.models.readout import Features
from sidequest.models.saved import ENCODER, WEIGHTS, task_state, write_card, write_weights
from sidequest.models.tokenising import TextInputs, Texts, flat_tags, tokenise_texts, tokenise_words
from sidequest.tasks.examples import Examples
from sidequest.tasks.suite import Suite
from sidequest.tasks.task import Form, Objective, Task


class CustomModel(MultiTaskModel):
    """The user's encoder and one linear head per task."""

    def __init__(self, encoder: nn.Module, tasks: list[Task], seed: int) -> None:
        super().__init__()
        self.encoder = encoder
        self.width = int(encoder.width)  # type: ignore[arg-type]
        self.heads = linear_heads(tasks, lambda task: self.width, seed)
        self.objectives = {task.name: task.objective for task in tasks}

    def forward(self, task: str, batch: Batch) -> Tensor:
        objective = self.objectives[task]
        with speaking_for("model.factory: the encoder's forward"):
            features = self.encoder(batch)
        if not isinstance(features, Tensor) or not features.is_floating_point():
            found = f"numbers of type {features.dtype}" if isinstance(features, Tensor) else type(features).__name__
            raise SettingsError(
                f"model.factory: the encoder's forward must return a floating-point tensor, found {found}"
            )
        dimensions = 3 if objective == Objective.TAGGING else 2
        if features.ndim != dimensions or features.shape[-1] != self.width:
            rule = "[n, longest, width]" if dimensions == 3 else "[n, width]"
            raise SettingsError(
                f"model.factory: for {objective.value} the encoder's forward must return {rule} with width {self.width}, "
                f"found {list(features.shape)}"
            )
        logits = self.heads[head_key(task)](features)
        return answers(logits, objective, batch)


class CustomFamily(Family):
    """A user's own network."""

    kind: ClassVar[str] = "custom"
    Settings = CustomSettings
    settings: CustomSettings
    powers: ClassVar[frozenset[type]] = KINDS["custom"].powers

    default_learning_rate = 1e-3

    def __init__(self, suite: Suite, settings: CustomSettings) -> None:
        super().__init__(suite, settings)
        if settings.factory is None:
            raise SettingsError("model.kind=custom needs model.factory=file.py:function or package.module:function")
        self.factory, self.source = find_factory(settings.factory, suite.path)
        forms = {task.form for task in suite.tasks.values()}
        self.text = bool(forms - {Form.IMAGE})
        if self.text:
            self.encoder = resolve(settings.encoder)
            self.tokeniser = load_tokeniser(self.encoder)
            self.word_tokeniser = load_tokeniser(self.encoder, words=True)
            self.types = "token_type_ids" in self.tokeniser.model_input_names

    def inputs(self, task: Task, examples: Examples) -> Inputs:
        if task.form == Form.IMAGE:
            return ImageInputs(task, examples, self.scales[task.name], Preparation(), "image")
        pad = self.tokeniser.pad_token_id or 0
        if task.form == Form.TOKENS:
            tokens = tokenise_words(self.word_tokeniser, examples.columns["tokens"].to_pylist(), None)
            return TextInputs(tokens, None, None, None if examples.target is None else flat_tags(examples), pad)
        texts = Texts.of(task, examples)
        tokens = tokenise_texts(self.tokeniser, texts.first, texts.second, self.settings.max_length, types=self.types)
        return TextInputs(tokens, Targets(task, examples, self.scales[task.name]), texts.counts, None, pad)

    def features(self, task: Task, examples: Examples) -> Features | None:
        return pixel_features(task, examples) if task.form == Form.IMAGE else None

    def features_key(self) -> Any:
        return ["pixels", PROBE_SIDE]

    def build(self, seed: int) -> MultiTaskModel:
        tasks = list(self.suite.tasks.values())
        with seeded(seed, "encoder"), speaking_for(f"model.factory={self.settings.factory}"):
            made = self.factory(tuple(tasks))
        if isinstance(made, MultiTaskModel):
            return made
        if not isinstance(made, nn.Module) or not isinstance(getattr(made, "width", None), int):
            raise SettingsError(
                f"model.factory={self.settings.factory} must return an nn.Module with a whole number `width`, or a "
                f"MultiTaskModel; found {type(made).__name__}"
            )
        return CustomModel(made, tasks, seed)

    def export(self, model: MultiTaskModel, task: Task, directory: Path) -> None:
        settings = self.settings.model_copy(update={"kind": self.kind, "encoder": ENCODER})
        with atomic_directory(directory) as place:
            state = task_state(model, task.name) if isinstance(model, CustomModel) else model.state_dict()
            write_weights(place, state)
            if self.text:
                (place / ENCODER).mkdir()
                for name in SMALL_FILES:
                    if (self.encoder.directory / name).is_file():
                        shutil.copyfile(self.encoder.directory / name, place / ENCODER / name)
            write_card(
                place,
                task,
                settings,
                loads_with="sidequest.models.load",
                scale=self.scales[task.name],
                tasks=list(self.suite.tasks.values()),
            )

    def restore(self, directory: Path) -> MultiTaskModel:
        model = self.build(0)
        if isinstance(model, CustomModel):  # the export holds the head of one task
            key = head_key(self.suite.primary)
            model.heads = nn.ModuleDict({key: model.heads[key]})
        try:
            model.load_state_dict(load_file(directory / WEIGHTS))
        except RuntimeError as error:
            raise SettingsError(
                f"{directory}: the weights do not fit what {self.settings.factory} builds: {error}"
            ) from None
        return model.eval()

    def fingerprint(self) -> str:
        code = hashlib.sha256(self.source.read_bytes()).hexdigest()
        return digest([code, self.encoder.tokeniser_fingerprint() if self.text else ""])


def find_factory(reference: str, suite_path: Path | None) -> tuple[Callable[[tuple[Task, ...]], Any], Path]:
    """The function that `file.py:function` or `package.module:function` names, and its source file.

    A relative file is looked for in the working directory, which is the user's own, then beside the suite file, which may be
    anybody's.
    """
    place, colon, name = reference.rpartition(":")
    if not colon or not name.isidentifier():
        raise SettingsError(f"model.factory is file.py:function or package.module:function, found {reference!r}")
    try:
        module = _load_file(place, suite_path) if place.endswith(".py") else importlib.import_module(place)
    except SettingsError:
        raise
    except Exception as error:
        raise SettingsError(
            f"model.factory={reference}: {place} cannot be imported: {type(error).__name__}: {error}"
        ) from error
    function = getattr(module, name, None)
    if not callable(function):
        raise SettingsError(f"model.factory={reference}: {place} has no function {name!r}")
    assert module.__file__ is not None
    return function, Path(module.__file__)


def _load_file(place: str, suite_path: Path | None) -> Any:
    roots = [Path.cwd(), *([] if suite_path is None else [suite_path.parent])]
    found = next((root / place for root in roots if (root / place).is_file()), None)
    if found is None:
        raise SettingsError(f"model.factory: no file {place!r} in {' or '.join(str(root) for root in roots)}")
    path = found.resolve()
    # A name of its own, so that a user's file called `random.py` hides no module.
    name = f"sidequest_custom_{digest(str(path))[:16]}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
