"""What the two families over frozen encoder states (`bilstm`, `pooled`) have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np
import torch
from torch import Tensor, nn

from sidequest.files import atomic_directory
from sidequest.model_settings import AutosemSettings, BiLstmSettings, PooledSettings
from sidequest.models.base import Family, MultiTaskModel, Progress
from sidequest.models.direct_path import feature_widths, text_features
from sidequest.models.encoders import resolve
from sidequest.models.readout import Features
from sidequest.models.saved import ENCODER, copy_encoder, task_state, write_card, write_weights
from sidequest.models.states import Elsewhere, FrozenEncoder, Packed, States, View
from sidequest.models.store import Rows
from sidequest.models.tokenising import Texts, has_pairs
from sidequest.tasks.examples import Examples
from sidequest.tasks.suite import Suite
from sidequest.tasks.task import Form, Task

STATISTICS_ROWS = 2_000  # texts of the primary that means and deviations are taken over
FEATURES = 2  # a number for what a read-out sees: a change of meaning must not find old read-outs


@dataclass(frozen=True)
class Located:
    """The states of a task's different texts, and which of them each text (or choice) is.

    first, second: int64 [texts], positions in `rows`; second is None for single texts.
    counts, start: int64 [examples], how many texts an example has (its choices) and its first one; None: one each.
    """

    rows: Rows
    first: np.ndarray
    second: np.ndarray | None
    counts: np.ndarray | None

    @property
    def start(self) -> np.ndarray | None:
        return None if self.counts is None else np.cumsum(self.counts) - self.counts


class EncoderStates:
    """The states of a frozen encoder for the rows of tasks, computed once per text.

    persist: whether states go to the cache on disk; predictions on passing rows set it to False.
    """

    def __init__(self, frozen: FrozenEncoder, *, persist: bool = True) -> None:
        self.frozen, self.persist = frozen, persist
        self.progress: Progress | None = None
        self.elsewhere: Elsewhere | None = None  # computes what is missing in other processes
        self._states: dict[View, States] = {}

    def of(self, view: View) -> States:
        if view not in self._states:
            self._states[view] = States(self.frozen, view, persist=self.persist)
        return self._states[view]

    def packed(self) -> dict[str, Packed]:
        """The states of all texts that were asked for, for a machine without this disk."""
        return {view: states.packed() for view, states in self._states.items()}

    def take_in(self, packed: Mapping[str, Packed]) -> None:
        for view, states in packed.items():
            self.of(cast(View, view)).take_in(states)

    def locate(self, task: Task, examples: Examples, view: View) -> Located:
        """Find (and where needed compute) the states of a task's texts, each different text once."""
        texts = Texts.of(task, examples)
        places: dict[str, int] = {}
        first = _number(texts.first, places)
        second = None if texts.second is None else _number(texts.second, places)
        return Located(self.of(view).rows(list(places), self.progress, self.elsewhere), first, second, texts.counts)

    def words(self, examples: Examples) -> tuple[Rows, np.ndarray]:
        """The states of sentences to tag, and the number of words of each; one without words still has a state."""
        sentences = examples.columns["tokens"].to_pylist()
        counts = np.array([len(sentence) for sentence in sentences], dtype=np.int64)
        return self.of("words").rows(sentences, self.progress, self.elsewhere), counts

    def features(self, task: Task, examples: Examples, view: View = "pooled") -> Features:
        """What a linear read-out sees: a text's vector u; of a pair u, v, u ⋆ v, |u − v| and the cosine; a word's states of all
        layers. view: `pooled` for the last layer's vector, `layers` for those of all layers; `tokens` gives the same from the
        states of all tokens."""
        if task.form == Form.TOKENS:
            rows, counts = self.words(examples)
            states = rows.gather(np.flatnonzero(counts))
            return Features(states.reshape(len(states), -1), counts)
        located = self.locate(task, examples, view)
        if view == "tokens":
            table, place = _means(located.rows), np.arange(len(located.rows))
        else:
            table, place = located.rows.table()
        layers = 1 if view == "pooled" else self.frozen.depth

        def vectors(which: np.ndarray) -> Tensor:
            return torch.from_numpy(table[place[which]].astype(np.float32)).view(len(which), layers, self.frozen.width)

        second = None if located.second is None else vectors(located.second)
        values = text_features(vectors(located.first), second).numpy()
        return Features(
            values, located.counts, feature_widths(layers, self.frozen.width, pair=located.second is not None)
        )

    def facts(self) -> list[Any]:
        """What identifies the features, plain data."""
        return ["states", FEATURES, *self.frozen.facts()]


class FrozenFamily(Family):
    """A family whose encoder stays as it is, so that its states are computed once and kept."""

    keeps_states: ClassVar[bool] = True
    text_view: ClassVar[View] = "tokens"  # the states that its models, and read-outs, see of a text

    def __init__(self, suite: Suite, settings: AutosemSettings | BiLstmSettings | PooledSettings) -> None:
        super().__init__(suite, settings)
        self.frozen = FrozenEncoder(resolve(settings.encoder), settings.layers, settings.max_length, settings.precision)
        self.states = EncoderStates(self.frozen)

    def locate(self, task: Task, examples: Examples, view: View) -> Located:
        self.states.progress = self.progress
        return self.states.locate(task, examples, view)

    def words(self, examples: Examples) -> tuple[Rows, np.ndarray]:
        self.states.progress = self.progress
        return self.states.words(examples)

    def features(self, task: Task, examples: Examples) -> Features:
        self.states.progress = self.progress
        return self.states.features(task, examples, self.text_view)

    def features_key(self) -> Any:
        return [self.text_view, *self.states.facts()]

    def packed_states(self) -> dict[str, Any]:
        return self.states.packed()

    def take_in_states(self, packed: dict[str, Any]) -> None:
        self.states.take_in(packed)

    def statistics(self) -> np.ndarray | None:
        """States of the primary's train rows, over which means and deviations are taken; None for an exported model, which
        brings its own."""
        task = self.suite.tasks[self.suite.primary]
        if "train" not in task.splits or not len(task.train):
            return None
        if self._sample is None:
            count = min(len(task.train), STATISTICS_ROWS)
            some = task.train.take(np.linspace(0, len(task.train) - 1, count).astype(int))
            if task.form == Form.TOKENS:
                rows, words = self.words(some)
                self._sample = rows.gather(np.flatnonzero(words))
            else:
                located = self.locate(task, some, self.text_view)
                self._sample = located.rows.gather(np.unique(located.first))
        return self._sample

    _sample: np.ndarray | None = None

    def export(self, model: MultiTaskModel, task: Task, directory: Path) -> None:
        with atomic_directory(directory) as place:
            write_weights(place, task_state(model, task.name))
            copy_encoder(self.frozen.encoder, place)
            settings = self.settings.model_copy(update={"kind": self.kind, "encoder": ENCODER})
            write_card(place, task, settings, loads_with="sidequest.models.load", scale=self.scales[task.name])

    def fingerprint(self) -> str:
        return self.frozen.fingerprint


def _means(rows: Rows) -> np.ndarray:
    """The mean of each text's states, float32 [texts, layers, width]; few texts' states are in memory at once."""
    out = np.empty((len(rows), *rows.shards[0].shape[1:]), dtype=np.float32)
    for position in range(len(rows)):
        out[position] = rows.gather(np.array([position])).mean(axis=0, dtype=np.float32)
    return out


class Standardised(nn.Module):
    """States [n, layers, width] → [n, layers · width], each feature with mean 0 and deviation 1.

    A few features of a transformer are tens of times as large as the others and drown them.
    """

    mean: Tensor
    scale: Tensor

    def __init__(self, width: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("scale", torch.ones(width))

    def fit(self, states: np.ndarray) -> None:
        """states: float16 [n, layers, width]."""
        flat = torch.from_numpy(states.reshape(len(states), -1)).double()
        self.mean.copy_(flat.mean(0))
        self.scale.copy_(1 / flat.std(0, correction=0).clamp(min=1e-6))

    def forward(self, states: Tensor) -> Tensor:
        return (states.flatten(1).float() - self.mean) * self.scale


def _number(texts: Sequence[str], places: dict[str, int]) -> np.ndarray:
    return np.fromiter((places.setdefault(text, len(places)) for text in texts), dtype=np.int64, count=len(texts))


def combine(u: Tensor, v: Tensor | None) -> Tensor:
    """AutoSeM's Eq. 1, h = [u; v; u ⋆ v; |u − v|]; a single sentence is u alone. u, v [n, width] → [n, width or 4·width]."""
    return u if v is None else torch.cat([u, v, u * v, (u - v).abs()], dim=-1)


def combined_width(task: Task, width: int) -> int:
    """The width of `combine`'s result for a task."""
    return 4 * width if has_pairs(task) else width
