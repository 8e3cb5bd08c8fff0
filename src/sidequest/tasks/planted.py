"""The embedded suite `planted`: generated English sentences whose tasks share hidden features to a known degree.

A sentence mentions a few *features*, each in a clause of its own and each either present (`the cook looked cheerful`) or absent
(`the cook looked gloomy`), in many words. A task asks about three features: classification whether most of them are present (for
`same`: how many), several labels for which of them are, regression for their mean, tagging for the words that say so. How
related a candidate is to the primary is the share of the primary's features that it asks about:

========== ============================ ===========
task       features                     relatedness
========== ============================ ===========
`target`   mood, weather, size          the primary, with few labels
`same`     mood, weather, size          1
`close`    mood, weather, speed         2/3
`distant`  size, age, noise             1/3
`foreign`  taste, price, dirt           0
`shuffled` mood, weather, size          0: the labels of `same`, shuffled
========== ============================ ===========

The words are real English, so any pretrained encoder can read them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
import pyarrow as pa

from sidequest.errors import SettingsError, unknown
from sidequest.tasks.examples import Examples
from sidequest.tasks.planted_words import FEATURES, Feature
from sidequest.tasks.splits import generator
from sidequest.tasks.suite import Suite
from sidequest.tasks.task import SPLITS, Form, Objective, Task

PRIMARY = "target"
ASKED: Mapping[str, tuple[str, str, str]] = MappingProxyType(
    {
        PRIMARY: ("mood", "weather", "size"),
        "same": ("mood", "weather", "size"),
        "close": ("mood", "weather", "speed"),
        "distant": ("size", "age", "noise"),
        "foreign": ("taste", "price", "dirt"),
        "shuffled": ("mood", "weather", "size"),
        "mixed": ("taste", "price", "dirt"),
    }
)
COUNTED = ("same", "shuffled")  # they ask how many features are present, not whether most are
OPTIONAL = ("mixed",)
DISTRACTORS = tuple(name for name in FEATURES if name not in ASKED[PRIMARY])
MENTIONED_BESIDES = 2  # features that a sentence mentions beside those that its task asks about
DEFAULTS: dict[str, dict[str, object]] = {
    # A narrow trunk: tasks must share it, so that what they share matters.
    "model": {"kind": "pooled", "hidden": 16},
    "train": {"epochs": 75, "batch_size": 32, "learning_rate": 0.01, "patience": None, "max_batches": 2000},
}


@dataclass(frozen=True)
class PlantedTruth:
    """What is known about the suite by construction.

    relatedness: share of the primary's features that a candidate asks about, 0 for shuffled labels. best: the candidates that
    share most of them. primary_like: of `mixed`, the ids of its train rows that are drawn from the primary's own distribution.
    """

    relatedness: dict[str, float]
    best: tuple[str, ...]
    primary_like: dict[str, np.ndarray] = field(default_factory=dict)


@dataclass(frozen=True)
class _Sentences:
    """words: per sentence. present: bool [n, 3], whether each asked feature is. tags: per word, 0 or 1 + 3·absent + which."""

    words: list[list[str]]
    present: np.ndarray
    tags: list[list[int]]


def planted_suite(
    seed: int = 0,
    *,
    primary_rows: int = 100,
    rows: int = 1000,
    select_rows: int = 200,
    report_rows: int = 1000,
    mixed: bool = False,
    objectives: Mapping[str, Objective | str] | None = None,
) -> Suite:
    """The suite; everything random in it is a function of the seed.

    rows: train rows of each candidate. mixed: add `mixed`, a third of whose train rows is drawn from the primary's own
    distribution with the primary's labels while the others are `foreign` (see `planted_truth`). objectives:
    `multi-label`, `regression` or `tagging` for tasks by name instead of classification.
    """
    wanted = _objectives(objectives or {}, mixed)
    counts = {"train": rows, "select": select_rows, "report": report_rows}
    for name, count in {**counts, "primary": primary_rows}.items():
        if count < 4:
            raise SettingsError(f"planted: {name} rows: at least 4, found {count}")
    tasks = {
        name: _task(name, objective, counts | ({"train": primary_rows} if name == PRIMARY else {}), seed)
        for name, objective in wanted.items()
    }
    primary = tasks.pop(PRIMARY)
    return Suite.of(primary, tasks.values(), name="planted", seed=seed, defaults=DEFAULTS)


def planted_truth(seed: int = 0, *, rows: int = 1000, mixed: bool = False) -> PlantedTruth:
    """The truth about `planted_suite` with the same arguments."""
    names = [name for name in ASKED if name != PRIMARY and (mixed or name not in OPTIONAL)]
    relatedness = {name: len(set(ASKED[name]) & set(ASKED[PRIMARY])) / 3 for name in names} | {"shuffled": 0.0}
    like = {"mixed": np.flatnonzero(_primary_like(seed, "train", rows))} if mixed else {}
    return PlantedTruth(relatedness, tuple(sorted(n for n, r in relatedness.items() if r > 0.5)), like)


def sentences(asked: tuple[str, ...], besides: tuple[str, ...], n: int, rng: np.random.Generator) -> _Sentences:
    """`n` sentences that mention the asked features and `MENTIONED_BESIDES` of the others, in random order."""
    clauses = len(asked) + MENTIONED_BESIDES
    others = rng.permuted(np.tile(np.arange(len(besides)), (n, 1)), axis=1)[:, :MENTIONED_BESIDES]
    order = rng.permuted(np.tile(np.arange(clauses), (n, 1)), axis=1)
    present = rng.integers(0, 2, (n, clauses)).astype(bool)
    picks = rng.integers(0, 2**31, (n, clauses, 2))  # which clause, which word
    words, tags = [], []
    for row in range(n):
        mentioned = [*asked, *(besides[i] for i in others[row])]
        sentence: list[str] = []
        marks: list[int] = []
        for position, index in enumerate(order[row]):
            is_present = bool(present[row, index])
            clause, at = _clause(FEATURES[mentioned[index]], is_present, *picks[row, index].tolist())
            mark = 0 if index >= len(asked) else 1 + int(index) + (0 if is_present else len(asked))
            joint = [] if position == 0 else [","] if position < clauses - 1 else ["and"]
            marks += [0] * len(joint) + [mark if i == at else 0 for i in range(len(clause))]
            sentence += joint + clause
        words.append([*sentence, "."])
        tags.append([*marks, 0])
    return _Sentences(words, present[:, : len(asked)], tags)


def _clause(feature: Feature, present: bool, which: int, word: int) -> tuple[list[str], int]:
    """A clause's words, and the position of the word that says whether the feature is present."""
    choices = feature.present if present else feature.absent
    clause = feature.clauses[which % len(feature.clauses)].split()
    blank = clause.index("_")
    clause[blank] = choices[word % len(choices)]
    if blank and clause[blank - 1] == "a" and clause[blank][0] in "aeiou":
        clause[blank - 1] = "an"
    return clause, blank


def _objectives(given: Mapping[str, Objective | str], mixed: bool) -> dict[str, Objective]:
    wanted = {name: Objective.CLASSIFICATION for name in ASKED if mixed or name not in OPTIONAL}
    allowed = (Objective.CLASSIFICATION, Objective.MULTILABEL, Objective.REGRESSION, Objective.TAGGING)
    for name, objective in given.items():
        if name not in wanted:
            raise unknown("task of the planted suite", name, wanted)
        if objective not in list(allowed):
            raise unknown(f"objective of {name!r}", str(objective), [str(each) for each in allowed])
        if name == "mixed" and objective in (Objective.MULTILABEL, Objective.TAGGING):
            raise SettingsError(f"planted: 'mixed' cannot be {objective}: its rows ask about two sets of features")
        wanted[name] = Objective(objective)
    return wanted


def _primary_like(seed: int, split: str, n: int) -> np.ndarray:
    """bool [n]: which rows of `mixed` come from the primary's own distribution, a third of them."""
    like = np.arange(n) < round(n / 3)
    return generator(seed, "planted", "mixed", split, "which").permutation(like)


def _draw(name: str, split: str, n: int, seed: int) -> _Sentences:
    rng = generator(seed, "planted", name, split)
    drawn = sentences(ASKED[name], _besides(name), n, rng)
    if name != "mixed":
        return drawn
    own = sentences(ASKED[PRIMARY], _besides(PRIMARY), n, rng)
    like = _primary_like(seed, split, n)
    return _Sentences(
        [a if chosen else b for chosen, a, b in zip(like, own.words, drawn.words, strict=True)],
        np.where(like[:, None], own.present, drawn.present),
        [a if chosen else b for chosen, a, b in zip(like, own.tags, drawn.tags, strict=True)],
    )


def _besides(name: str) -> tuple[str, ...]:
    return tuple(feature for feature in DISTRACTORS if feature not in ASKED[name])


def _task(name: str, objective: Objective, counts: Mapping[str, int], seed: int) -> Task:
    splits, offset = {}, 0
    for split in SPLITS:
        drawn = _draw(name, split, counts[split], seed)
        ids = np.arange(offset, offset + counts[split])
        offset += counts[split]
        shuffle = generator(seed, "planted", name, split, "labels") if name == "shuffled" else None
        splits[split] = _examples(name, objective, drawn, ids, shuffle)
    metrics = {
        Objective.CLASSIFICATION: ("accuracy",),
        Objective.MULTILABEL: ("micro_f1", "subset_accuracy"),
        Objective.REGRESSION: ("pearson", "r2"),
        Objective.TAGGING: ("accuracy",),
    }[objective]
    return Task(
        name=name,
        objective=objective,
        form=Form.TOKENS if objective == Objective.TAGGING else Form.TEXT,
        splits=splits,
        labels=_labels(name, objective),
        metrics=metrics,
        kind="count" if name in COUNTED else "majority",
        sources=dict.fromkeys(SPLITS, "generated"),
    )


def _labels(name: str, objective: Objective) -> tuple[str, ...]:
    if objective == Objective.REGRESSION:
        return ()
    if objective == Objective.MULTILABEL:
        return ASKED[name]
    if objective == Objective.TAGGING:
        return ("O", *ASKED[name], *(f"no-{feature}" for feature in ASKED[name]))
    return ("none", "one", "two", "all") if name in COUNTED else ("few", "most")


def _examples(
    name: str, objective: Objective, drawn: _Sentences, ids: np.ndarray, shuffle: np.random.Generator | None
) -> Examples:
    """Rows with their targets; `shuffle` gives rows each other's, and the words of a sentence each other's tags."""
    if objective == Objective.TAGGING:
        tags = drawn.tags if shuffle is None else [shuffle.permutation(each).tolist() for each in drawn.tags]
        return Examples({"tokens": pa.array(drawn.words)}, pa.array(tags, pa.list_(pa.int64())), ids)
    count = drawn.present.sum(axis=1)
    classes = (count if name in COUNTED else count >= 2).astype(np.int64)
    target = count / 3 if objective == Objective.REGRESSION else classes
    if objective == Objective.MULTILABEL:
        target = drawn.present.astype(np.uint8)
    if shuffle is not None:
        target = shuffle.permutation(target)
    return Examples({"text": pa.array([_written(words) for words in drawn.words])}, target, ids)


def _written(words: list[str]) -> str:
    text = " ".join(words).replace(" ,", ",").replace(" .", ".")
    return text[0].upper() + text[1:]
