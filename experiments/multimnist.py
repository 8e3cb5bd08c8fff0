"""`python -m experiments multimnist`: αVIL's experiment on MultiMNIST (Kourdis et al. 2020, Table 1 and Figure 3).

Full size is the paper's: 50,000 images, 100 epochs, 20 seeds, αVIL as published. With `--small` each seed draws its own images
from the same splits, and αVIL's rate is ten times the paper's, since there are twelve epochs to move the weights in; `alphavil
as published` stands beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from experiments import Options
from experiments.data import data_directory
from experiments.jobs import ExperimentJob
from experiments.targets import CLAIMS, TargetsPlan, claims, claims_table, outcomes_of, run_job, scores, spread
from sidequest.files import write_json
from sidequest.model_settings import AlphaVILSettings
from sidequest.models import family as model_family
from sidequest.models.base import Family
from sidequest.records.evidence import WeightCourse
from sidequest.report.alphavil import alphas_over_training, weights_over_training
from sidequest.report.images import save
from sidequest.report.tables import markdown_table
from sidequest.settings import TrainSettings
from sidequest.tasks.loading import load_task
from sidequest.tasks.suite import Suite
from sidequest.tasks.task import Task

__all__ = ["jobs_of", "run_job", "shared_of", "show"]

TARGETS = ("top-left", "bottom-right")
# Batch 256, SGD 0.05 with momentum 0.9, no dropout: the paper's. It names neither decay nor clipping, so there is none.
TRAIN = TrainSettings(
    batch_size=256,
    eval_batch_size=512,
    optimizer="sgd",
    learning_rate=0.05,
    momentum=0.9,
    weight_decay=0.0,
    warmup=0.0,
    decay="constant",
    clip=None,
    patience=None,
)
# Rows of each split; no entry takes all.
SMALL_ROWS = {"train": 8000, "select": 2000}
SMALL_EPOCHS, SMALL_SEEDS, SMALL_PATIENCE = 12, 1, 4
PUBLISHED = "alphavil as published"
SMALL_SETTINGS: dict[str, dict[str, Any]] = {
    "alphavil": {"alpha_rate": 0.05},
    PUBLISHED: {"as_published": True},
    "diw": {"patience": SMALL_PATIENCE},
}
EPOCHS, SEEDS = 100, 20

# Means of the paper's Table 1, in per cent: (development, test).
PAPER = {
    ("single", "top-left"): (96.73, 96.44),
    ("multitask", "top-left"): (96.37, 95.92),
    ("diw", "top-left"): (96.84, 96.46),
    ("alphavil", "top-left"): (96.91, 96.56),
    ("single", "bottom-right"): (95.57, 94.83),
    ("multitask", "bottom-right"): (95.00, 94.67),
    ("diw", "bottom-right"): (95.60, 94.93),
    ("alphavil", "bottom-right"): (95.89, 95.16),
}


def jobs_of(options: Options) -> list[ExperimentJob]:
    return plan_of(options, None).jobs()


def shared_of(options: Options) -> TargetsPlan:
    return plan_of(options, data_directory(options, "mnist"))


def plan_of(options: Options, data: Path | None) -> TargetsPlan:
    full = TargetsPlan(
        "multimnist",
        suite,
        family,
        data,
        TARGETS,
        TRAIN,
        EPOCHS,
        options.seed_range(SEEDS),
        options.out,
        settings={"alphavil": {"as_published": True}},
        model="alphavil",
    )
    if not options.small:
        return full
    return replace(
        full,
        epochs=SMALL_EPOCHS,
        seeds=options.seed_range(SMALL_SEEDS),
        settings=SMALL_SETTINGS,
        rows=SMALL_ROWS,
        methods=("single", "multitask", "alphavil", PUBLISHED, "diw"),
    )


def show(options: Options, by_job: Mapping[str, Any]) -> dict[str, Any]:
    plan, outcomes = plan_of(options, None), outcomes_of(by_job)
    rows, images = table_rows(plan.methods, outcomes), plan.rows.get("train", 50_000)
    pairs = [*CLAIMS, *([("alphavil", PUBLISHED)] if PUBLISHED in plan.methods else [])]
    claimed = claims(outcomes, TARGETS, pairs)
    print(f"\nMultiMNIST, {plan.epochs} epochs, {images} training images: accuracy in per cent")
    print(table(rows))
    if claimed:
        print("\nDifferences on report")
        print(claims_table(claimed))
    for target in TARGETS:
        evidence = [e["evidence"] for e in outcomes if e["method"] == "alphavil" and e["target"] == target]
        if evidence:
            course = WeightCourse.of(evidence[0])
            save(alphas_over_training(course), options.out / f"alphas-{target}")
            save(weights_over_training(course), options.out / f"weights-{target}")
    results = {"epochs": plan.epochs, "rows": dict(plan.rows), "table": rows, "claims": claimed}
    write_json(options.out / "results.json", results, seal=False)
    return results


def suite(plan: TargetsPlan, seed: int) -> Suite:
    """Both corners' tasks on the same images, drawn again for each seed where a split is cut."""
    tasks = [load_task(name, {"catalog": f"multimnist-{name}", "path": str(plan.data)}) for name in TARGETS]
    first, second = (_cut(task, plan, seed) for task in tasks)
    return Suite.of(first, [second], name="multimnist")


def _cut(task: Task, plan: TargetsPlan, seed: int) -> Task:
    splits = dict(task.splits)
    for number, (split, count) in enumerate(sorted(plan.rows.items())):
        # Not a function of the task: the corners share their images.
        rows = np.random.default_rng([seed, number]).permutation(len(splits[split]))[:count]
        splits[split] = splits[split].take(np.sort(rows))
    return replace(task, splits=splits)


def family(suite: Suite) -> Family:
    return model_family(suite, AlphaVILSettings())


def table_rows(methods: Sequence[str], outcomes: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Table 1: a row per target, split and method, with the paper's mean beside it."""
    rows = []
    for target in TARGETS:
        for index, split in enumerate(("select", "report")):
            for method in methods:
                values = list(scores(outcomes, method, target, split).values())
                if values:
                    paper = PAPER[method.split()[0], target][index]
                    place = {"target": target, "split": split, "method": method, "seeds": len(values)}
                    rows.append({**place, **spread(values), "paper": paper})
    return rows


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    names = ("min", "max", "mean", "deviation", "paper")
    cells = [
        [
            f"{row['target']}, {row['split']}",
            row["method"],
            str(row["seeds"]),
            *(f"{row[name]:.2f}" for name in names),
        ]
        for row in rows
    ]
    return markdown_table(["", "", "seeds", "min", "max", "mean", "dev.", "paper's mean"], cells)
