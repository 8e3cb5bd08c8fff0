"""Which texts have more tokens than a model reads. Neither torch nor transformers here: `check` answers at once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sidequest.errors import SettingsError
from sidequest.model_settings import AUTO, EncoderSettings, HfSettings, ModelSettings, model_settings
from sidequest.models import resolved_kind
from sidequest.models.local_encoders import local_encoder, pools_by_mean
from sidequest.models.texts import Texts
from sidequest.tasks.examples import Examples
from sidequest.tasks.lengths import READ_IN_PART, Limit, LongRows, WordLimit
from sidequest.tasks.suite import Suite
from sidequest.tasks.task import Task

if TYPE_CHECKING:
    from tokenizers import Tokenizer

COUNTED = 3_000  # rows of a split that are tokenised; of more, so many are drawn and the number is an estimate
MARKS = 8  # special tokens, and the space that some tokenisers put before a text
LETTERS = 12  # per token, and more than any language needs: if so long a beginning fills the model, the rest need not be counted


def section_limit(suite: Suite, section: Mapping[str, Any]) -> Limit | None:
    """The limit of the model that a suite's `model:` section asks for; of the default where the section is wrong."""
    kind = resolved_kind(suite, str(section.get("kind", AUTO)))
    try:
        settings = model_settings({**section, "kind": kind})
    except SettingsError:  # an error of its own, said while the suite was read
        settings = EncoderSettings(kind="hf")
    return token_limit(settings)


def token_limit(settings: ModelSettings) -> Limit | None:
    """What a model reads at once: by its tokeniser where that is on this machine, else by words; None for images."""
    if not isinstance(settings, EncoderSettings):
        return None
    directory = local_encoder(settings.encoder)
    if directory is None or not (directory / "tokenizer.json").is_file():
        return WordLimit(settings.max_length)
    return TokenLimit(
        directory, _own_limit(directory, settings.max_length), together=_reads_together(settings, directory)
    )


@dataclass(frozen=True)
class TokenLimit:
    """directory: of the encoder. together: whether the two texts of a pair are one sequence, or read one by one."""

    directory: Path
    most: int
    together: bool

    @cached_property
    def tokeniser(self) -> Tokenizer:
        from tokenizers import Tokenizer

        tokeniser = Tokenizer.from_file(str(self.directory / "tokenizer.json"))
        tokeniser.no_truncation()
        tokeniser.no_padding()
        return tokeniser

    def long_rows(self, task: Task, rows: Examples) -> LongRows:
        if task.form not in READ_IN_PART or not len(rows):
            return LongRows(np.zeros(0, dtype=np.int64), 0)
        texts = Texts.of(task, rows)
        # A token has at least one byte (but for marks at the ends and between), so that most texts need no tokeniser.
        sizes = np.array([len(text.encode()) for text in texts.first], dtype=np.int64)
        if texts.second is not None:
            others = np.array([len(text.encode()) for text in texts.second], dtype=np.int64)
            sizes = sizes + others if self.together else np.maximum(sizes, others)
        row_of = np.arange(len(rows)) if texts.counts is None else np.repeat(np.arange(len(rows)), texts.counts)
        possible = np.unique(row_of[sizes + MARKS > self.most])
        drawn = possible
        if len(possible) > COUNTED:
            drawn = np.sort(np.random.default_rng(0).choice(possible, COUNTED, replace=False))
        chosen = np.flatnonzero(np.isin(row_of, drawn))
        long = np.unique(row_of[chosen[self._longer(texts, chosen)]])
        if len(drawn) == len(possible):
            return LongRows(long, len(long))
        return LongRows(long, round(len(long) * len(possible) / len(drawn)), "about")

    def _longer(self, texts: Texts, chosen: np.ndarray) -> np.ndarray:
        """bool [chosen]: whether these texts, or pairs, have too many tokens."""
        first = [texts.first[i] for i in chosen]
        second = None if texts.second is None else [texts.second[i] for i in chosen]
        if second is not None and not self.together:
            return self._too_many(first) | self._too_many(second)
        return self._too_many(first, second)

    def _too_many(self, first: list[str], second: list[str] | None = None) -> np.ndarray:
        beginning = LETTERS * self.most
        pairs = list(zip(first, second or [""] * len(first), strict=True))
        starts = [(one[:beginning], two[:beginning]) for one, two in pairs]
        many = self._counts(starts, second is not None) > self.most
        unsure = np.flatnonzero(
            [not known and start != pair for known, start, pair in zip(many, starts, pairs, strict=True)]
        )
        if len(unsure):
            many[unsure] = self._counts([pairs[i] for i in unsure], second is not None) > self.most
        return many

    def _counts(self, pairs: list[tuple[str, str]], both: bool) -> np.ndarray:
        given: list[Any] = pairs if both else [one for one, _ in pairs]
        return np.array([len(encoding.ids) for encoding in self.tokeniser.encode_batch_fast(given)], dtype=np.int64)


def _reads_together(settings: EncoderSettings, directory: Path) -> bool:
    """Whether a model reads the two texts of a pair as one sequence."""
    if not isinstance(settings, HfSettings):
        return settings.kind == "custom"
    return settings.pairing == "cross" or (settings.pairing == "auto" and not pools_by_mean(directory))


def _own_limit(directory: Path, most: int) -> int:
    """The smaller of the setting and what the encoder itself takes."""
    for file, field in (("tokenizer_config.json", "model_max_length"), ("config.json", "max_position_embeddings")):
        try:
            own = json.loads((directory / file).read_text(encoding="utf-8")).get(field)
        except (OSError, ValueError, AttributeError):
            continue  # whoever loads the encoder says what is wrong with it
        if isinstance(own, (int, float)) and own > 0:
            most = min(most, int(own))
    return most
