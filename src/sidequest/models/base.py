"""What a family of models gives to the training loop.

A *family* (`hf`, `bilstm`, `pooled`, `convnet`, `custom`) knows how to turn rows into tensors, to build a model with one head per
task, and to export the primary's part. The training loop knows nothing else about models.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import load_file
from torch import Tensor, nn

from sidequest.errors import SettingsError
from sidequest.model_settings import ModelSettings
from sidequest.models.kinds import EVERY_MODEL
from sidequest.models.readout import Features, ReadOut, read_out
from sidequest.tasks.examples import Examples
from sidequest.tasks.suite import Suite
from sidequest.tasks.task import Form, Task

CHAINS = "chains."  # where models keep which tag follows which: `tag_chain`
IGNORE = -100  # cross-entropy's own mark for positions without a label
Batch = dict[str, Tensor]
Progress = Callable[[int, int], None]  # (done, total)


class Inputs(ABC):
    """The rows of one split, ready to be batched. Holds no model and no random state."""

    lengths: (
        np.ndarray
    )  # int64 [n]: the cost of a row (tokens), by which batches are bucketed; all ones where rows are equal

    def __len__(self) -> int:
        return len(self.lengths)

    @abstractmethod
    def collate(self, positions: np.ndarray) -> Batch:
        """Tensors for these rows, padded to the longest of them.

        Has `labels` unless the rows have no target: int64 [n] (classification, choice), float32 [n, labels] of 0 and 1
        (multi-label), float32 [n] (regression, in standardised units), int64 [n, longest] with IGNORE where there is no label
        (tagging: one label per word, on the position whose output stands for that word). Tagging also has `words`, bool
        [n, longest]: those positions, labelled or not.

        The texts of a multiple-choice row are flat: the input tensors have one row per choice, and `choices`, int64 [n], says how
        many belong to each row. So rows may have different numbers of choices and none is computed twice or in vain.
        """


class MultiTaskModel(nn.Module):
    """A shared encoder and one head per task. Subclasses define `forward(task, batch)`:

    logits [n, classes] (classification), [n, labels] (multi-label), [n] (regression), [n, longest, tags] (tagging),
    [n, choices] (multiple choice).

    The logits of choices that a row does not have are the most negative number, so that their probability is 0.
    Initial values depend only on (seed, task name), never on which other tasks there are.
    """

    def layers_below_the_top(self) -> dict[str, int]:
        """How many layers of a pretrained encoder stand above each of its parameters, by name; what is not named has none."""
        return {}

    def rate_factors(self) -> dict[str, float]:
        """Factors on the learning rate, by the name of a parameter; what is not named learns at the whole rate."""
        return {}

    def refined(self, task: str, logits: Tensor, batch: Batch) -> Tensor:
        """What scores and predictions are made from; losses are of the logits as they are. The same but for tags that depend on
        each other (`tag_chain`)."""
        return logits

    def forward(self, task: str, batch: Batch) -> Tensor:
        raise TypeError(f"{type(self).__name__} has no forward pass")


class Family(ABC):
    """One kind of model for one suite. Expensive, seed-independent things (tokeniser, pretrained weights, cached states) live
    here and are shared by all models that `build` makes.

    kind: its name in `model.kind`. Settings: the class of its settings. forms: what this kind of model can be shown. powers: what
        methods may ask of its models beyond training (`learning.protocol`).
    progress: called with (done, total) while a slow preparation of inputs runs (encoding texts); set it to show a bar.
    """

    kind: ClassVar[str]
    Settings: ClassVar[type[ModelSettings]] = ModelSettings
    forms: ClassVar[tuple[Form, ...]] = tuple(Form)
    powers: ClassVar[frozenset[type]] = EVERY_MODEL
    default_learning_rate: float = 1e-3
    keeps_states: ClassVar[bool] = False  # whether making inputs computes something slow and keeps it on disk
    progress: Progress | None = None

    def __init__(self, suite: Suite, settings: ModelSettings) -> None:
        self.suite = suite
        self.settings = settings
        self.scales = {task.name: TargetScale.of(task) for task in suite.tasks.values()}
        self._read_outs: dict[str, ReadOut | None] = {}
        for task in suite.tasks.values():
            if task.form not in self.forms:
                shown = ", ".join(self.forms)
                raise SettingsError(
                    f"model.kind={self.kind}: task {task.name!r} has the form {task.form.value!r}, this model takes {shown}. "
                    f"{_ALTERNATIVES[task.form]}"
                )

    @abstractmethod
    def inputs(self, task: Task, examples: Examples) -> Inputs:
        """Rows of a task as inputs of this family's models."""

    def packed_states(self) -> dict[str, Any]:
        """What making inputs has computed and kept on disk, for a machine without this disk."""
        return {}

    def take_in_states(self, packed: dict[str, Any]) -> None:  # noqa: B027 - a family without states has nothing to keep
        """Keep what another machine has packed."""

    @abstractmethod
    def build(self, seed: int) -> MultiTaskModel:
        """A new model with a head for every task of the suite."""

    @abstractmethod
    def export(self, model: MultiTaskModel, task: Task, directory: Path) -> None:
        """Write the encoder and one task's head so that `sidequest.models.load` can predict with it."""

    def restore(self, directory: Path) -> MultiTaskModel:
        """The model that `export` wrote, in evaluation mode; `self` was made for a suite of the exported task alone."""
        path = directory / "model.safetensors"
        with torch.device("meta"):  # what the card promises, without its memory
            promised = {name: list(value.shape) for name, value in self.build(0).state_dict().items()}
        with safe_open(str(path), framework="pt") as file:
            found = {name: list(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
        if not any(
            name.startswith(CHAINS) for name in found
        ):  # written by an earlier version: a chain that changes nothing
            promised = {name: shape for name, shape in promised.items() if not name.startswith(CHAINS)}
        for name in sorted({*promised, *found}):
            if promised.get(name) != found.get(name):
                there = "none" if name not in found else f"one of {found[name]}"
                raise SettingsError(
                    f"{directory}: the weights do not fit the card: {name} has the shape {promised.get(name)} by the card's "
                    f"task and model, the file has {there}"
                )
        model = self.build(0)
        model.load_state_dict(load_file(path), strict=False)  # the names were compared above
        return model.eval()

    def features(self, task: Task, examples: Examples) -> Features | None:
        """What a linear read-out of the family's own encoder, or of the pixels, sees of some rows; None: it has none."""
        return None

    def features_key(self) -> Any:
        """Plain data that identifies `features`: equal keys, equal features of equal rows."""
        return None

    def read_out(self, task: Task) -> ReadOut | None:
        """The regularised linear read-out of the task's train rows, made when first asked for; None where there are no features.

        It depends on the rows and the encoder alone: not on a seed, not on the other tasks.
        """
        if task.name not in self._read_outs:
            made = None
            if len(task.train) and self.features(task, task.train.take(np.arange(1))) is not None:
                made = read_out(task, self.features, self.scales[task.name].standardise, self.features_key())
            self._read_outs[task.name] = made
        return self._read_outs[task.name]

    def make_power(self, power: type, core: Any) -> object | None:
        """A power of this family's own, over the learner's core (`learning.torch.core.Core`); None: not one of its own."""
        return None

    def fingerprint(self) -> str:
        """What identifies the pretrained weights (empty where there are none): part of the key of a trial."""
        return ""


# Where a task that one kind of model refuses can go instead.
_ALTERNATIVES = {
    Form.TEXT: "For texts set model.kind to hf, bilstm or pooled.",
    Form.PAIR: "For pairs of texts set model.kind to hf, bilstm or pooled.",
    Form.CHOICES: "For multiple choice set model.kind to hf, bilstm or pooled.",
    Form.TOKENS: "For tagging set model.kind to hf or bilstm.",
    Form.IMAGE: "For images set model.kind to convnet, or to hf with a vision encoder.",
}


class TargetScale:
    """Regression targets are learned in standardised units, so that a loss of 1 means the same for every task."""

    def __init__(self, mean: float = 0.0, deviation: float = 1.0) -> None:
        self.mean = mean
        self.deviation = deviation

    @classmethod
    def of(cls, task: Task) -> TargetScale:
        if task.objective != "regression" or "train" not in task.splits or task.train.target is None:
            return cls()
        target = np.asarray(task.train.target, dtype=np.float64)
        return cls(float(target.mean()), float(target.std()) or 1.0)

    def standardise(self, values: np.ndarray) -> np.ndarray:
        return ((values - self.mean) / self.deviation).astype(np.float32)

    def restore(self, values: np.ndarray) -> np.ndarray:
        return values.astype(np.float64) * self.deviation + self.mean


class Targets:
    """The target of one row each (not tagging), ready to be batched: class or choice indices, 0/1 per label, or standardised
    numbers."""

    def __init__(self, task: Task, examples: Examples, scale: TargetScale) -> None:
        self.values: Tensor | None = None
        if examples.target is None:
            return
        if task.objective == "regression":
            self.values = torch.from_numpy(scale.standardise(np.asarray(examples.target, dtype=np.float64)))
        elif task.objective == "multi-label":
            self.values = torch.from_numpy(np.array(examples.target, dtype=np.float32))
        else:
            self.values = torch.from_numpy(np.array(examples.target, dtype=np.int64))

    def into(self, batch: Batch, positions: np.ndarray) -> Batch:
        """Add `labels` to a batch, if there are any."""
        if self.values is not None:
            batch["labels"] = self.values[torch.from_numpy(positions)]
        return batch


def spread_choices(logits: Tensor, counts: Tensor) -> Tensor:
    """Flat logits [sum of counts] → [n, most choices]; choices that a row does not have get the most negative number."""
    present = torch.arange(int(counts.max()), device=counts.device) < counts[:, None]
    out = logits.new_full(present.shape, torch.finfo(logits.dtype).min)
    return out.masked_scatter(present, logits)


def head_key(task: str) -> str:
    """A task's key in a `ModuleDict`, which takes neither dots nor the names of its own methods."""
    return "task:" + task.replace("%", "%25").replace(".", "%2E")


def seed_of(seed: int, *names: str) -> int:
    """A seed that is a function of a number and names, equal in every process."""
    text = "\0".join((str(seed), *names))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little") >> 1


@contextmanager
def seeded(seed: int, *names: str) -> Iterator[None]:
    """Modules made inside get values that are a function of (seed, names) alone; the global random state is left as it was."""
    # The CPU's generator alone: `torch.manual_seed` would also seed every GPU's, and modules are made on the CPU.
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed_of(seed, *names))
        yield


def generator(seed: int, *names: str) -> torch.Generator:
    return torch.Generator().manual_seed(seed_of(seed, *names))
