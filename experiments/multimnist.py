"""`python -m experiments multimnist`: αVIL's experiment on MultiMNIST (Kourdis et al. 2020, Table 1 and Figure 3).

Full size is the paper's: 50,000 images, 100 epochs, 20 seeds. With `--small` each seed draws its own images from the same splits.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from experiments import Options
from experiments.data import data_directory
from experiments.targets import METHODS, TargetsPlan, claims, claims_table, run_plan, scores, spread
from sidequest.files import write_json
from sidequest.model_settings import AlphaVILSettings
from sidequest.models import family as model_family
from sidequest.models.base import Family
from sidequest.report.alphavil import alphas_over_training, weights_over_training
from sidequest.report.images import save
from sidequest.report.tables import markdown_table
from sidequest.settings import TrainSettings
from sidequest.tasks.loading import load_task
from sidequest.tasks.suite import Suite
from sidequest.tasks.task import Task

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
SMALL_EPOCHS, SMALL_SEEDS, SMALL_PATIENCE = 12, 5, 4
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


def main(options: Options) -> dict[str, Any]:
    data = data_directory(options, "mnist")
    plan = small_plan(options, data) if options.small else full_plan(options, data)
    outcomes = run_plan(plan, options.out, options.workers)
    rows = table_rows(outcomes)
    found = claims(outcomes, TARGETS)
    images = plan.rows.get("train", 50_000)
    print(f"\nMultiMNIST, {plan.seeds} seeds, {plan.epochs} epochs, {images} training images: accuracy in per cent")
    print(table(rows))
    print("\nDifferences on report")
    print(claims_table(found))
    evidence = next(e["evidence"] for e in outcomes if e["method"] == "alphavil" and e["target"] == TARGETS[0])
    save(alphas_over_training(evidence), options.out / "alphas")
    save(weights_over_training(evidence), options.out / "weights")
    results = {"seeds": plan.seeds, "epochs": plan.epochs, "rows": dict(plan.rows), "table": rows, "claims": found}
    write_json(options.out / "results.json", results, seal=False)
    return results


def full_plan(options: Options, data: Any) -> TargetsPlan:
    seeds = options.seeds or SEEDS
    return TargetsPlan("multimnist", suite, family, data, TARGETS, TRAIN, EPOCHS, seeds)


def small_plan(options: Options, data: Any) -> TargetsPlan:
    seeds = options.seeds or SMALL_SEEDS
    settings = {"diw": {"patience": SMALL_PATIENCE}}
    return TargetsPlan(
        "multimnist", suite, family, data, TARGETS, TRAIN, SMALL_EPOCHS, seeds, settings=settings, rows=SMALL_ROWS
    )


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


def table_rows(outcomes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Table 1: a row per target, split and method, with the paper's mean beside it."""
    rows = []
    for target in TARGETS:
        for index, split in enumerate(("select", "report")):
            for method in METHODS:
                mine = spread(scores(outcomes, method, target, split))
                rows.append(
                    {"target": target, "split": split, "method": method, **mine, "paper": PAPER[method, target][index]}
                )
    return rows


def table(rows: list[dict[str, Any]]) -> str:
    names = ("min", "max", "mean", "deviation", "paper")
    cells = [
        [f"{row['target']}, {row['split']}", row["method"], *(f"{row[name]:.2f}" for name in names)] for row in rows
    ]
    return markdown_table(["", "", "min", "max", "mean", "dev.", "paper's mean"], cells)
