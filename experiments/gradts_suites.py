"""The candidates, primaries, methods and sizes of `python -m experiments gradts`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sidequest.model_settings import EncoderSettings, HfSettings
from sidequest.recipe import Phase, Recipe
from sidequest.records.controls import PROBE, SINGLE_LONG
from sidequest.runs.setup import Setup
from sidequest.settings import TrainSettings
from sidequest.tasks.loading import load_task
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
GRADTS = ("gradts-thres", "gradts-trial", "gradts-fg")
HEURISTICS = ("heu-size", "heu-type", "heu-len")
AUTOSEM = ("autosem-p1", "autosem")
TUNED, TUNED_FG = "gradts-thres, tuned", "gradts-fg, tuned"
WITH = "with "  # a candidate: the primary with it alone
MISMATCHED = "mnli-mm"  # MNLI judged on genres that it was not trained on; never a candidate
MIXING = ("autosem",)  # methods that choose a mixture; of the others the chosen rows are trained


@dataclass(frozen=True)
class TaskSet:
    """One set of candidates. table: what it is in the paper. direct: train every candidate alone beside the primary as well."""

    name: str
    table: str
    tasks: tuple[str, ...]
    primaries: tuple[str, ...]
    methods: tuple[str, ...]
    direct: bool = False


@dataclass(frozen=True)
class GradTSPlan:
    """limit: labelled rows per task, a quarter of them (at most 100, or a tenth) for *select*; None: all. against: what the
    variants of GradTS are tested against; each test more makes all of them harder to pass (Holm)."""

    parts: tuple[TaskSet, ...]
    model: EncoderSettings
    train: TrainSettings
    limit: int | None
    report_limit: int | None
    seeds: int = 3
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    against: tuple[str, ...] = ("single", SINGLE_LONG, "all", "random-subset")


def full_plan() -> GradTSPlan:
    every = ("single", PROBE, "all", SINGLE_LONG, *AUTOSEM, *GRADTS, "random-subset", TUNED, TUNED_FG)
    mixed = (*GLUE, "stsb", "pos", "ner", "chunking")
    parts = (
        TaskSet("glue", "Tables 2, 3, 6 and 9", GLUE, (*GLUE, MISMATCHED), (*every, *HEURISTICS), direct=True),
        TaskSet("difficult", "Table 4", (*GLUE, "meld"), (*GLUE, "meld"), every),
        TaskSet("mixed", "Table 5", mixed, mixed, every),
    )
    train = TrainSettings(epochs=7, learning_rate=5e-5, batch_size=32, patience=None)
    model = HfSettings(encoder="bert-base-cased", max_length=128)
    return GradTSPlan(parts, model, train, None, None)


def small_plan() -> GradTSPlan:
    """Two primaries that three layers learn beyond their read-out in four epochs. The paper's thresholds do not fit another
    encoder: the upper half of tasks and of rows is taken instead. Tags start at their read-out, too: 52 steps teach a random head
    little."""
    tasks = ("chunking", "cola", "mrpc", "pos", "qqp", "sst2")
    methods = ("single", PROBE, "all", SINGLE_LONG, *GRADTS, "random-subset")
    parts = (TaskSet("mixed", "Table 5", tasks, ("sst2", "chunking"), methods, direct=True),)
    ranking: dict[str, Any] = {"warmup_epochs": 1}
    settings = {
        "gradts-thres": {**ranking, "quantile": 0.5},
        "gradts-trial": ranking,
        "gradts-fg": {**ranking, "quantile": 0.5},
    }
    train = TrainSettings(epochs=4, learning_rate=2e-4, batch_size=16, patience=None)
    model = HfSettings(encoder="minilm", layers=3, max_length=48, precision="bf16", start="readout")
    return GradTSPlan(parts, model, train, 267, 300, 1, settings, against=(SINGLE_LONG,))


def load_tasks(plan: GradTSPlan, data: Path) -> dict[str, Task]:
    """Each task as in every suite and role, so that what is learned from it is learned once."""
    names = dict.fromkeys(name for part in plan.parts for name in part.tasks)
    limits = {key: value for key, value in (("limit", plan.limit), ("report_limit", plan.report_limit)) if value}
    found = {
        name: load_task(name, {"catalog": name, "path": str(data / FOLDERS[name]), **limits}, primary=True)
        for name in names
    }
    if any(MISMATCHED in part.primaries for part in plan.parts):
        spec = {"catalog": "mnli", "path": str(data / FOLDERS["mnli"]), "report": "dev_mismatched.tsv", **limits}
        found[MISMATCHED] = load_task(MISMATCHED, spec, primary=True)
    return found


def with_all_rows(recipe: Recipe, rows: Mapping[str, int]) -> Recipe:
    """The same tasks and rows in the paper's one mixture: all that was chosen, once per epoch of the primary, shuffled."""
    if recipe.method in MIXING or not recipe.auxiliaries:
        return recipe
    subsets = {name: subset for phase in recipe.phases for name, subset in phase.subsets.items()}
    counts = {name: len(subsets[name].ids) if name in subsets else rows[name] for name in recipe.auxiliaries}
    shares = {name: count / rows[recipe.primary] for name, count in counts.items() if count}
    phase = Phase(order="shuffle", shares={recipe.primary: 1.0, **shares}, subsets=subsets)
    return recipe.model_copy(update={"phases": (phase,)})


def setup_of(plan: GradTSPlan, part: TaskSet, tasks: Mapping[str, Task], primary: str) -> Setup:
    alike = {primary, *(("mnli",) if primary == MISMATCHED else ())}
    candidates = [tasks[name] for name in part.tasks if name not in alike]
    return Setup(Suite.of(tasks[primary], candidates, name=f"gradts-{part.name}"), plan.model, plan.train)
