"""States of a frozen encoder: computed once per text, kept on disk, shared by all tasks, suites and runs.

A state belongs to a *text*, not to a dataset: its place is the hash of the encoder's weights and configuration, the tokeniser,
the view (below) and the text itself. A suite with another row limit, another task with the same sentences, a second run: they
compute only what nobody has computed before.

What can be asked for:

- `tokens`: float16 [tokens, layers, width], the states of the last layers at every token, special tokens included;
- `words`: float16 [words, layers, width], for tagging: the mean over the sub-tokens of each word. The encoder is frozen and
  cannot learn to gather a word at its first sub-token, as a fine-tuned one does; the mean loses none of them;
- `pooled`: float32 [1, width], the mean of the last layer over the text's tokens, as sentence encoders pool;
- `layers`: float16 [1, layers, width], the mean of each of the last layers over the text's tokens.

States may differ in the last bit between machines and between batches in which they were computed. Once stored they stay.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np
import torch

from sidequest.errors import SidequestError
from sidequest.files import cache_directory, digest
from sidequest.models import bert
from sidequest.models.base import Progress
from sidequest.models.devices import batch_tokens, chosen_device, computes_bf16
from sidequest.models.encoders import (
    Encoder,
    load_base,
    load_config,
    load_tokeniser,
    longest_input,
)
from sidequest.models.ragged import Ragged, mask
from sidequest.models.store import Rows, Store, item_key
from sidequest.models.tokenising import Tokens, tokenise_texts, tokenise_words

VERSION = 1  # of what is stored: a change of meaning must not find old states
SHARD_BYTES = 128 << 20  # what an interruption can lose at most
HALF_MAX = float(np.finfo(np.float16).max)

View = Literal["tokens", "words", "pooled", "layers"]
Text = str | Sequence[str]  # a sentence to tag is given as its words
Encoded = tuple[np.ndarray, np.ndarray]  # values [sum of lengths, ...], lengths [n]
# Encodes batches of texts in other processes: each batch's number and states, in any order.
Elsewhere = Callable[[View, Sequence[list[Text]]], Iterator[tuple[int, Encoded]]]
Packed = tuple[np.ndarray, np.ndarray, np.ndarray]  # keys [n], lengths [n], values [sum of lengths, ...]


@dataclass(frozen=True)
class FrozenEncoder:
    """An encoder that is loaded when its first state is computed; with warm caches, never.

    layers: how many of the last layers' states to keep; None: all, with the embeddings as the first.
    cut: how many of the encoder's first layers there are; None: all of them.
    """

    encoder: Encoder
    layers: int | None = None
    max_length: int = 128
    precision: str = "fp32"
    cut: int | None = None

    @cached_property
    def config(self) -> Any:
        return bert.read_config(self.encoder.directory, self.cut) or load_config(self.encoder, layers=self.cut)

    def facts(self) -> list[Any]:
        """What decides the states of a text, plain data."""
        return [VERSION, self.fingerprint, self.depth, self.max_length, "bf16" if self.bf16 else "fp32", self.cut]

    @cached_property
    def device(self) -> torch.device:
        return chosen_device()

    @cached_property
    def model(self) -> Any:
        plain = bert.read_weights(self.encoder.directory, self.config) if self._is_plain else None
        return (plain or load_base(self.encoder, load_config(self.encoder, layers=self.cut)).model).to(self.device)

    @cached_property
    def tokeniser(self) -> Any:
        plain = bert.read_tokeniser(self.encoder.directory) if self._is_plain else None
        return plain or load_tokeniser(self.encoder)

    @property
    def _is_plain(self) -> bool:
        """Whether this is a BERT that can be read without transformers, which take seconds to import."""
        return isinstance(self.config, SimpleNamespace)

    @cached_property
    def word_tokeniser(self) -> Any:
        return load_tokeniser(self.encoder, words=True)

    @property
    def width(self) -> int:
        return int(self.config.hidden_size)

    @cached_property
    def depth(self) -> int:
        """How many layers' states are kept."""
        there = int(self.config.num_hidden_layers) + 1
        if self.layers is not None and self.layers > there:
            raise SidequestError(f"model.layers={self.layers}: {self.encoder.name} has {there} layers of states")
        return self.layers or there

    @property
    def bf16(self) -> bool:
        """bfloat16 only where it is asked for and the processor has it: elsewhere it is slower and coarser for nothing."""
        return self.precision == "bf16" and computes_bf16(self.device)

    @cached_property
    def fingerprint(self) -> str:
        return digest([self.encoder.fingerprint(), self.encoder.tokeniser_fingerprint()])

    def tokenise(self, texts: Sequence[Any], view: View) -> Tokens:
        if view == "words":
            limit = longest_input(self.config, self.word_tokeniser, self.model)
            return tokenise_words(self.word_tokeniser, texts, limit)
        limit = longest_input(self.config, self.tokeniser, self.model)
        length = self.max_length if limit is None else min(self.max_length, limit)
        return tokenise_texts(self.tokeniser, texts, None, length, types=False)

    def encode(self, tokens: Tokens, positions: np.ndarray, view: View) -> Encoded:
        """The states of these texts."""
        ids = tokens.ids
        lengths = ids.lengths[positions]
        inside = torch.from_numpy(mask(lengths, int(lengths.max()))).to(self.device)
        padded = torch.from_numpy(ids.pad(positions, self.tokeniser.pad_token_id or 0)).to(self.device)
        with torch.inference_mode(), torch.autocast(self.device.type, torch.bfloat16, enabled=self.bf16):
            out = self.model(input_ids=padded, attention_mask=inside.long(), output_hidden_states=view != "pooled")
            if view == "pooled":
                last = out.last_hidden_state.float() * inside[..., None]
                return (last.sum(1) / inside.sum(1, keepdim=True)).cpu().numpy(), np.ones(len(positions), np.int64)
            if view == "layers":
                counts = inside.sum(1, keepdim=True)
                means = [
                    (layer.float() * inside[..., None]).sum(1) / counts for layer in out.hidden_states[-self.depth :]
                ]
                values, lengths = torch.stack(means, dim=1), np.ones(len(positions), np.int64)
            else:
                values = torch.stack([layer[inside] for layer in out.hidden_states[-self.depth :]], dim=1).float()
        if view == "words":
            assert tokens.words is not None
            at = ids.index(positions)
            part = Tokens(Ragged.of_lengths(ids.values[at], lengths), words=tokens.words[at])
            values, lengths = _word_means(values, part)
        return values.clamp(-HALF_MAX, HALF_MAX).half().cpu().numpy(), lengths


def _word_means(values: torch.Tensor, tokens: Tokens) -> tuple[torch.Tensor, np.ndarray]:
    """Token states [tokens, layers, width] → word states; a sentence without words keeps one state of zeros."""
    assert tokens.words is not None
    heads = np.flatnonzero(tokens.heads())
    row_of_head = np.searchsorted(tokens.ids.offsets, heads, side="right") - 1
    words = np.bincount(row_of_head, minlength=len(tokens.ids))
    lengths = np.maximum(words, 1)
    # A word's place in the output: after the states of the earlier sentences.
    slot = np.repeat(np.cumsum(lengths) - lengths, words) + (
        np.arange(len(heads)) - np.repeat(np.cumsum(words) - words, words)
    )
    inside = tokens.words >= 0
    word_of_token = slot[np.cumsum(tokens.heads()) - 1][inside] if len(heads) else np.zeros(0, np.int64)
    index = torch.from_numpy(word_of_token).to(values.device)
    sums = values.new_zeros((int(lengths.sum()), *values.shape[1:]))
    sums.index_add_(0, index, values[torch.from_numpy(inside).to(values.device)])
    counts = torch.bincount(index, minlength=len(sums)).clamp(min=1)
    return sums / counts[:, None, None], lengths


class States:
    """The states of texts under one view. persist: False keeps them in memory (for predictions on passing rows)."""

    def __init__(self, encoder: FrozenEncoder, view: View, *, persist: bool = True) -> None:
        self.encoder, self.view = encoder, view
        tail = (encoder.width,) if view == "pooled" else (encoder.depth, encoder.width)
        dtype: type[np.generic] = np.float32 if view == "pooled" else np.float16
        self.store = Store(self._directory() if persist else None, tail, dtype)
        self._asked: list[np.ndarray] = []  # keys of all texts that were asked for

    def _directory(self) -> Any:
        frozen = self.encoder
        depth = 1 if self.view == "pooled" else frozen.depth
        length = None if self.view == "words" else frozen.max_length
        precision = "bf16" if frozen.bf16 else "fp32"
        cut = [] if frozen.cut is None else [frozen.cut]
        key = digest([VERSION, frozen.fingerprint, self.view, depth, length, precision, *cut])
        return cache_directory() / "states" / f"{self.view}-{key[:32]}"

    def rows(self, texts: Sequence[Text], progress: Progress | None = None, elsewhere: Elsewhere | None = None) -> Rows:
        """Where the states of these texts are; those that are missing are computed first, here or elsewhere."""
        keys = np.array([item_key(_plain(text)) for text in texts], dtype="S16")
        self._asked.append(keys)
        if (self.store.find(keys)[:, 0] < 0).any():
            with self.store.writing():
                unique, first = np.unique(keys, return_index=True)
                missing = self.store.find(unique)[:, 0] < 0
                if missing.any():
                    self._compute(unique[missing], [texts[i] for i in first[missing]], progress, elsewhere)
        return self.store.rows(keys)

    def packed(self) -> Packed:
        """The states of all texts that were asked for, for a machine without this disk."""
        keys = np.unique(np.concatenate([np.zeros(0, "S16"), *self._asked]))
        rows = self.store.rows(keys)
        return keys, rows.lengths, rows.gather(np.arange(len(keys)))

    def take_in(self, packed: Packed) -> None:
        """Keep what another machine has packed, unless it is here."""
        keys, lengths, values = packed
        with self.store.writing():
            if (self.store.find(keys)[:, 0] < 0).any():
                self.store.append(keys, lengths, values)

    def _compute(
        self, keys: np.ndarray, texts: list[Text], progress: Progress | None, elsewhere: Elsewhere | None
    ) -> None:
        tokens = self.encoder.tokenise(texts, self.view)
        lengths = tokens.ids.lengths
        if self.view in ("tokens", "words"):
            self._check_space(int(lengths.sum()))
        batches = _batches(lengths, batch_tokens(self.encoder.device))
        computed: Iterator[tuple[int, Encoded]]
        if elsewhere is not None and len(batches) > 1:
            computed = elsewhere(self.view, [[texts[i] for i in batch] for batch in batches])
        else:
            computed = enumerate(self.encoder.encode(tokens, batch, self.view) for batch in batches)
        shard = _Shard(self.store)
        done = 0
        try:
            for number, (values, counts) in computed:
                batch = batches[number]
                if not np.isfinite(values).all():
                    raise SidequestError(
                        f"model.encoder={self.encoder.encoder.name}: its states are not finite: its weights are damaged"
                    )
                shard.add(keys[batch], counts, values)
                done += len(batch)
                if progress is not None:
                    progress(done, len(texts))
        finally:  # an interruption keeps what was computed
            shard.flush()

    def _check_space(self, tokens: int) -> None:
        frozen = self.encoder
        needed = tokens * frozen.depth * frozen.width * 2
        if self.store.directory is None:
            return
        self.store.directory.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(self.store.directory).free
        if needed > free:
            raise SidequestError(
                f"the states of {tokens:,} tokens in {frozen.depth} layers take {needed / 1e9:.1f} GB, but "
                f"{free / 1e9:.1f} GB are free in {cache_directory()}: keep fewer layers (model.layers=2) or rows, or "
                "set SIDEQUEST_CACHE to another disk"
            )


def _batches(lengths: np.ndarray, room: int) -> list[np.ndarray]:
    """Positions of texts, the longest first, so many together as have room when padded to the longest of them."""
    order, done, batches = np.argsort(-lengths, kind="stable"), 0, []
    while done < len(order):
        batches.append(order[done : done + max(1, room // int(lengths[order[done]]))])
        done += len(batches[-1])
    return batches


class _Shard:
    """Collects states and writes them when they are many."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        self.bytes = 0

    def add(self, keys: np.ndarray, lengths: np.ndarray, values: np.ndarray) -> None:
        self.parts.append((keys, lengths, values))
        self.bytes += values.nbytes
        if self.bytes >= SHARD_BYTES:
            self.flush()

    def flush(self) -> None:
        if self.parts:
            keys, lengths, values = (np.concatenate(column) for column in zip(*self.parts, strict=True))
            self.parts, self.bytes = [], 0
            self.store.append(keys, lengths, values)


def _plain(text: Text) -> str:
    # Words are joined by a character that no word holds, after their number: ["a b"] and ["a", "b"] are different sentences.
    return text if isinstance(text, str) else "\0".join((str(len(text)), *text))
