"""The primaries, candidates, arms and sizes of `python -m experiments autosem`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sidequest.model_settings import AutosemSettings, BiLstmSettings, EncoderSettings
from sidequest.records.controls import PROBE, SINGLE_LONG
from sidequest.runs.setup import Setup
from sidequest.tasks.loading import load_task
from sidequest.tasks.suite import Suite
from sidequest.tasks.task import Task

FOLDERS = {
    "chunking": "conll2000",
    "ner": "conll2003",
    "pos": "ud-english-ewt",
    "cola": "glue/CoLA",
    "mnli": "glue/MNLI",
    "mrpc": "glue/MRPC",
    "qnli": "glue/QNLI",
    "qqp": "glue/QQP",
    "rte": "glue/RTE",
    "sst2": "glue/SST-2",
    "stsb": "glue/STS-B",
    "wnli": "glue/WNLI",
}
SHUFFLED = "pos-shuffled"
# What the paper calls its rows, and ours beside them
ROWS = {
    "single": "Baseline (single)",
    SINGLE_LONG: "single, as many batches as autosem",
    PROBE: "plain read-out",
    "random pair": "Random pair",
    "educated guess": "Educated guess",
    "no stage 1": "w/o Stage-1",
    "grid": "w/o Stage-2",
    "autosem": "Final MTL (autosem)",
    "autosem as published": "autosem, the paper's own settings",
}


@dataclass(frozen=True)
class AutoSeMSuite:
    """One primary and its candidates, and how they are trained. train: what differs from the model's defaults. train_rows,
    select_rows: of a few-shot primary, drawn for each seed; None: all, and *select* as the loader carves it. auxiliary_limit:
    labelled rows of each candidate."""

    primary: str
    candidates: tuple[str, ...]
    model: EncoderSettings
    train: Mapping[str, Any] = field(default_factory=dict)
    train_rows: int | None = None
    select_rows: int | None = None
    auxiliary_limit: int | None = None
    report_limit: int | None = None

    def facts(self) -> dict[str, Any]:
        """All that decides a result besides the arm and the seed."""
        return {
            "model": self.model.model_dump(mode="json"),
            "train": dict(self.train),
            "candidates": self.candidates,
            "rows": [self.train_rows, self.select_rows, self.auxiliary_limit, self.report_limit],
        }


@dataclass(frozen=True)
class AutoSeMPart(AutoSeMSuite):
    """guess: the educated guess. stage1, stage2: settings."""

    guess: tuple[str, ...] = ()
    stage1: Mapping[str, Any] = field(default_factory=dict)
    stage2: Mapping[str, Any] = field(default_factory=dict)
    arms: tuple[str, ...] = tuple(ROWS)

    def method(self, arm: str) -> tuple[str, dict[str, Any]]:
        """The method behind an arm, and its settings."""
        both = {**self.stage1, **self.stage2}
        trials = {"trials": self.stage2["trials"]} if "trials" in self.stage2 else {}
        return {
            "random pair": ("random-subset", {"size": 2}),
            "educated guess": ("autosem-no-stage1", {**self.stage2, "tasks": self.guess}),
            "no stage 1": ("autosem-no-stage1", dict(self.stage2)),
            "grid": ("autosem-grid", {**self.stage1, **trials}),
            "autosem": ("autosem", both),
            "autosem as published": (
                "autosem",
                {**{k: v for k, v in both.items() if k != "initial"}, "as_published": True},
            ),
        }.get(arm, (arm, {}))


TAGGING = AutoSeMPart(
    "chunking",
    ("cola", "ner", "pos", SHUFFLED),
    BiLstmSettings(),
    guess=("ner", "pos"),
    stage1={"rounds": 200, "batches": 10},
    stage2={"trials": 20},
    train_rows=200,
    select_rows=1000,
    auxiliary_limit=3000,
)
SMALL_TAGGING = replace(
    TAGGING,
    train={"steps": 200},
    stage1={"rounds": 50, "batches": 10},
    stage2={"trials": 6, "initial": 4, "max_primary": 4, "max_auxiliary": 2},
    select_rows=300,
    auxiliary_limit=600,
    report_limit=500,
    arms=("single", PROBE, "random pair", "autosem", SINGLE_LONG),
)
PAIRS = ("mnli", "mrpc", "qnli", "qqp", "rte", "wnli")
TEXTS = ("cola", "sst2", *PAIRS)
GUESSES = {
    "rte": ("mnli", "qnli"),
    "mrpc": ("mnli", "qqp"),
    "qnli": ("mnli", "rte"),
    "cola": ("mnli", "sst2"),
    "sst2": ("cola", "mnli"),
}
PAPER_TRAIN = {"epochs": 20, "batch_size": 32, "patience": 4}


def parts(small: bool) -> dict[str, AutoSeMPart]:
    """By primary. In the paper pairs have pairs as candidates, single sentences all tasks."""
    if small:
        return {"chunking": SMALL_TAGGING}
    found = {"chunking": TAGGING}
    for name, guess in GUESSES.items():
        others = tuple(each for each in (PAIRS if name in PAIRS else TEXTS) if each != name)
        wide = AutosemSettings(hidden=512 if name == "mrpc" else 1024, depth=2)
        budget = {"trials": 15 if name == "mrpc" else 20, "runs": 2}
        found[name] = AutoSeMPart(name, others, wide, PAPER_TRAIN, guess=guess, stage2=budget)
    return found


def make_setup(part: AutoSeMSuite, data: Path, seed: int, encoder: str | None = None) -> Setup:
    limits = {} if part.report_limit is None else {"report_limit": part.report_limit}
    primary = drawn(load(part.primary, data, limits), part, seed)
    some = {} if part.auxiliary_limit is None else {"limit": part.auxiliary_limit, "report_limit": 10}
    named = {name: load(name, data, some) for name in part.candidates if name != SHUFFLED}
    if SHUFFLED in part.candidates:
        named[SHUFFLED] = shuffled(named["pos"])
    suite = Suite.of(primary, named.values(), name=f"autosem-{part.primary}")
    model = part.model if encoder is None else part.model.model_copy(update={"encoder": encoder})
    return Setup.of(suite, model, dict(part.train))


def drawn(task: Task, part: AutoSeMSuite, seed: int) -> Task:
    """A few-shot primary: other rows of its train file for each seed, none of them both in train and in *select*."""
    if part.train_rows is None or part.select_rows is None:
        return task
    rows = np.random.default_rng([seed, 19]).permutation(len(task.train))
    few, others = rows[: part.train_rows], rows[part.train_rows : part.train_rows + part.select_rows]
    splits = {"train": task.train.take(np.sort(few)), "select": task.train.take(np.sort(others))}
    return replace(task, splits={**task.splits, **splits})


def load(name: str, data: Path, limits: Mapping[str, int]) -> Task:
    return load_task(name, {"catalog": name, "path": str(data / FOLDERS[name]), **limits}, primary=True)


def shuffled(task: Task) -> Task:
    """The same sentences with their tags dealt out again: nothing to learn but how frequent each tag is."""
    tags: Any = task.train.target  # list<int64>, one list per sentence
    values = np.random.default_rng(0).permutation(tags.flatten().to_numpy())
    offsets = np.concatenate([[0], np.cumsum(pc.list_value_length(tags).to_numpy())]).astype(np.int32)
    target = pa.ListArray.from_arrays(pa.array(offsets), pa.array(values)).cast(tags.type)
    splits = {**task.splits, "train": replace(task.train, target=target)}
    return replace(task, name=f"{task.name}-shuffled", splits=splits, notes=(*task.notes, "train: tags shuffled"))
