"""The tasks, sizes and runs of `python -m experiments similarity`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from experiments.data import GLUE_FOLDERS
from sidequest.model_settings import EncoderSettings, HfSettings
from sidequest.records.controls import PROBE, SINGLE_LONG
from sidequest.runs.setup import Setup
from sidequest.settings import TrainSettings
from sidequest.tasks.loading import load_task
from sidequest.tasks.suite import Suite
from sidequest.tasks.task import Task

PRIMARIES = ("rte", "mrpc", "stsb")
METHODS = {"bce": "similarity", "ce": "similarity-ce", "random": "random-data"}


@dataclass(frozen=True)
class SimilarityPlan:
    """One size of the experiment.

    limits: labelled rows per task (None: all). counts: N of the curves. count: N of the other studies. few: rows of a few-shot
    primary. shown: rows per task of the t-SNE. studies: more than BCE against random rows and the controls.
    """

    model: EncoderSettings
    train: TrainSettings
    limits: Mapping[str, int] | None
    report_limit: int | None
    rows: int
    counts: tuple[int, ...]
    count: int
    few: tuple[int, ...]
    epochs: float
    finetune_epochs: float
    discriminator_epochs: float
    shown: int
    seeds: int
    primaries: tuple[str, ...] = PRIMARIES
    studies: bool = True

    def facts(self) -> dict[str, Any]:
        """All that decides a result besides the run, the primary and the seed."""
        return {
            "model": self.model.model_dump(mode="json"),
            "train": self.train.model_dump(mode="json"),
            "limits": None if self.limits is None else dict(self.limits),
            "report": self.report_limit,
        }

    @property
    def primary_rows(self) -> dict[str, int]:
        """Of each task's whole train split: the right end of the few-shot figure."""
        return ROWS if self.limits is None else {name: 3 * count // 4 for name, count in self.limits.items()}


# Of GLUE's train files
ROWS = {
    "cola": 8551,
    "mnli": 392_702,
    "mrpc": 3668,
    "qnli": 104_743,
    "qqp": 363_846,
    "rte": 2490,
    "sst2": 67_349,
    "stsb": 5749,
}


def full_plan() -> SimilarityPlan:
    """The paper's model, data and training; days on one GPU."""
    counts = (*(500 * 2**i for i in range(11)), 600_000, 700_000, 800_000)
    model = HfSettings(encoder="bert-base-cased", max_length=128)
    train = TrainSettings(epochs=8, learning_rate=2e-5, batch_size=32, patience=None)
    few = (100, 200, 400, 800, 1600)
    return SimilarityPlan(
        model, train, None, None, 500, counts, 4000, few, 3, 5, 5, 2000, 10, primaries=tuple(GLUE_FOLDERS)
    )


def small_plan() -> SimilarityPlan:
    """A fine-tuned MiniLM, whole: three of its layers lose a tenth of what its cosine knows of STS-B. 400 labelled rows of it,
    about 3,000 others to choose from.
    The claim and its controls alone: seeds say more than further studies of one seed. N stays below a third of the rows: two
    choices of 2,000 among 3,000 would have most rows in common, and differ little whatever they are worth."""
    limits = dict.fromkeys(GLUE_FOLDERS, 600) | {"stsb": 400}
    model = HfSettings(max_length=48, precision="bf16")
    # As many epochs as the two phases of a recipe have together: all see the primary equally often.
    train = TrainSettings(epochs=3, batch_size=16, learning_rate=1e-4, patience=None)
    return SimilarityPlan(
        model, train, limits, 500, 100, (500, 1000), 1000, (), 1, 2, 1, 150, 1, primaries=("stsb",), studies=False
    )


@dataclass(frozen=True)
class StudyRun:
    """One variant of one study. few: rows of the primary, None: all."""

    label: str
    method: str
    settings: Mapping[str, Any]
    few: int | None = None


def runs_of(plan: SimilarityPlan) -> list[StudyRun]:
    """All that is trained for one primary and one seed. N beyond the pool would repeat `all`."""
    common = {"rows": plan.rows, "epochs": plan.epochs, "finetune_epochs": plan.finetune_epochs}
    found = {**common, "discriminator_epochs": plan.discriminator_epochs}
    settings = {"bce": found, "ce": found, "random": common}
    losses = METHODS if plan.studies else ("bce", "random")
    runs = [
        StudyRun("single", "single", {}),
        StudyRun(PROBE, PROBE, {}),
        *(
            StudyRun(f"{name}-{count}", METHODS[name], {**settings[name], "count": count})
            for name in losses
            for count in dict.fromkeys((*plan.counts, plan.count))
        ),
        StudyRun(SINGLE_LONG, SINGLE_LONG, {}),  # as many batches as BCE with `count` rows
    ]
    return runs + _other_studies(plan, settings) if plan.studies else runs


def _other_studies(plan: SimilarityPlan, settings: Mapping[str, Mapping[str, Any]]) -> list[StudyRun]:
    """All rows, rows drawn again from the chosen tasks, a discriminator without task losses, and few rows of the primary."""
    found = settings["bce"]
    runs = [StudyRun("all", "random-data", {**settings["random"], "rows": 0, "share": 1.0})]
    for name in ("bce", "ce"):
        runs.append(StudyRun(f"{name}-resampled", METHODS[name], {**found, "count": plan.count, "resample": True}))
    counts = plan.counts if plan.limits is None else (plan.count,)
    runs += [
        StudyRun(f"apart-{count}", "similarity", {**found, "count": count, "task_losses": False}) for count in counts
    ]
    for few in plan.few:
        runs.append(StudyRun(f"few-{few}-single", "single", {}, few))
        runs += [
            StudyRun(f"few-{few}-{name}", METHODS[name], {**settings[name], "count": plan.count}, few)
            for name in ("bce", "random")
        ]
    return runs


def load_tasks(plan: SimilarityPlan, data: Path) -> dict[str, Task]:
    """Each task as in every suite and role, so that one discriminator serves every primary."""
    tasks = {}
    for name, folder in GLUE_FOLDERS.items():
        limits = {"limit": plan.limits[name]} if plan.limits else {}
        limits |= {"report_limit": plan.report_limit} if plan.report_limit else {}
        spec = {"catalog": name, "path": str(data / folder), **limits}
        tasks[name] = load_task(name, spec, primary=True)
    return tasks


def setup_of(
    plan: SimilarityPlan, tasks: Mapping[str, Task], primary: str, few: int | None = None, seed: int = 0
) -> Setup:
    """few: so many random rows of the primary's train split, the same for every method, others for each seed."""
    own = tasks[primary]
    if few is not None and few < len(own.train):
        kept = np.sort(np.random.default_rng([few, seed]).permutation(len(own.train))[:few])
        own = replace(own, splits={**own.splits, "train": own.train.take(kept)})
    others = [task for name, task in tasks.items() if name != primary]
    return Setup(Suite.of(own, others, name="similarity"), plan.model, plan.train)
