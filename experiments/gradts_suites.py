"""The candidates, primaries, methods and sizes of `python -m experiments gradts`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from sidequest.model_settings import EncoderSettings, HfSettings
from sidequest.recipe import Phase, Recipe
from sidequest.runs.setup import Setup
from sidequest.settings import TrainSettings
from sidequest.tasks.loading import load_task
from sidequest.tasks.majority import majority_score
from sidequest.tasks.suite import Suite
from sidequest.tasks.task import Task

GLUE = ("cola", "mnli", "mrpc", "qnli", "qqp", "rte", "sst2", "wnli")
FOLDERS = {
    "cola": "glue/CoLA",
    "mnli": "glue/MNLI",
    "mrpc": "glue/MRPC",
    "qnli": "glue/QNLI",
    "qqp": "glue/QQP",
    "rte": "glue/RTE",
    "sst2": "glue/SST-2",
    "wnli": "glue/WNLI",
    "stsb": "glue/STS-B",
    "meld": "meld",
    "pos": "ud-english-ewt",
    "ner": "conll2003",
    "chunking": "conll2000",
}
ABOVE_CONSTANT = 0.03  # of `single`, for a table to be shown
GRADTS = ("gradts-thres", "gradts-trial", "gradts-fg")
HEURISTICS = ("heu-size", "heu-type", "heu-len")
AUTOSEM = ("autosem-p1", "autosem")
MIXING = ("autosem",)  # methods that choose a mixture; of the others the chosen rows are trained


@dataclass(frozen=True)
class TaskSet:
    """One set of candidates. table: what it is in the paper."""

    name: str
    table: str
    tasks: tuple[str, ...]
    primaries: tuple[str, ...]
    methods: tuple[str, ...]
    seeds: int


@dataclass(frozen=True)
class GradTSPlan:
    """limit: labelled rows per task, a quarter of them (at most 100, or a tenth) for *select*; None: all."""

    parts: tuple[TaskSet, ...]
    model: EncoderSettings
    train: TrainSettings
    limit: int | None
    report_limit: int | None
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def full_plan(seeds: int | None) -> GradTSPlan:
    every = ("single", "all", "random-subset", *AUTOSEM, *GRADTS)
    mixed = (*GLUE, "stsb", "pos", "ner", "chunking")
    parts = (
        TaskSet("glue", "Tables 2, 3, 6 and 9", GLUE, GLUE, (*every, *HEURISTICS), seeds or 3),
        TaskSet("difficult", "Table 4", (*GLUE, "meld"), (*GLUE, "meld"), every, seeds or 3),
        TaskSet("mixed", "Table 5", mixed, mixed, every, seeds or 3),
    )
    train = TrainSettings(epochs=7, learning_rate=5e-5, batch_size=32, patience=None)
    model = HfSettings(encoder="bert-base-cased", max_length=128)
    return GradTSPlan(parts, model, train, None, None)


def small_plan(seeds: int | None) -> GradTSPlan:
    """Two primaries, and the dearer methods on one seed. The paper's thresholds do not fit another encoder: the upper half of
    tasks and of rows is taken instead."""
    primaries = ("rte", "mrpc")
    mixed = (*GLUE, "stsb", "pos", "ner", "chunking")
    parts = (
        TaskSet("glue", "Tables 2 and 9", GLUE, primaries, ("single", "all", "random-subset", *GRADTS), seeds or 2),
        TaskSet("difficult", "Table 4", (*GLUE, "meld"), primaries, ("single", *GRADTS), 1),
        TaskSet("mixed", "Table 5", mixed, ("mrpc",), ("single", *GRADTS), 1),
        TaskSet("others", "Tables 2, 3 and 6", GLUE, primaries, ("single", *AUTOSEM, *HEURISTICS, *GRADTS), 1),
    )
    ranking: dict[str, Any] = {"warmup_epochs": 2}
    bandit: dict[str, Any] = {"rounds": 12, "batches": 3}
    settings = {
        "gradts-thres": {**ranking, "quantile": 0.5},
        "gradts-trial": ranking,
        "gradts-fg": {**ranking, "quantile": 0.5},
        "autosem-p1": bandit,
        "autosem": {**bandit, "trials": 4, "initial": 3, "max_primary": 2, "max_auxiliary": 1},
    }
    train = TrainSettings(epochs=2, learning_rate=1e-4, batch_size=16, patience=None)
    model = HfSettings(encoder="minilm", layers=3, max_length=48)
    return GradTSPlan(parts, model, train, 240, 200, settings)


def load_tasks(plan: GradTSPlan, data: Path) -> dict[str, Task]:
    """Each task as in every suite and role, so that what is learned from it is learned once."""
    names = dict.fromkeys(name for part in plan.parts for name in part.tasks)
    limits = {key: value for key, value in (("limit", plan.limit), ("report_limit", plan.report_limit)) if value}
    return {
        name: load_task(name, {"catalog": name, "path": str(data / FOLDERS[name]), **limits}, primary=True)
        for name in names
    }


def with_all_rows(recipe: Recipe, rows: Mapping[str, int]) -> Recipe:
    """The same tasks and rows in the paper's one mixture: all that was chosen, once per epoch of the primary, shuffled."""
    if recipe.method in MIXING or not recipe.auxiliaries:
        return recipe
    subsets = {name: subset for phase in recipe.phases for name, subset in phase.subsets.items()}
    counts = {name: len(subsets[name].ids) if name in subsets else rows[name] for name in recipe.auxiliaries}
    shares = {name: count / rows[recipe.primary] for name, count in counts.items() if count}
    phase = Phase(order="shuffle", shares={recipe.primary: 1.0, **shares}, subsets=subsets)
    return recipe.model_copy(update={"phases": (phase,)})


def has_learned(task: Task, single: Sequence[float]) -> bool:
    """Whether the primary alone is clearly above the best constant answer: below that a table would rank noise."""
    constant = majority_score(task)
    return constant is None or float(np.mean(single)) >= constant + ABOVE_CONSTANT


def setup_of(plan: GradTSPlan, part: TaskSet, tasks: Mapping[str, Task], primary: str) -> Setup:
    candidates = [tasks[name] for name in part.tasks if name != primary]
    return Setup(Suite.of(tasks[primary], candidates, name=f"gradts-{part.name}"), plan.model, plan.train)
