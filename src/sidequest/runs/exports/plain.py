"""Exports without a trainer in mind: arguments of `datasets.interleave_datasets`, jsonl and parquet."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from sidequest.files import atomic_file, write_atomically, write_json
from sidequest.recipe import Recipe
from sidequest.runs.exports.rows import epoch_rows, epochs_of, plain_rows, seed_of, shares_of
from sidequest.settings import TrainSettings
from sidequest.tasks.suite import Suite


def interleave(recipe: Recipe, suite: Suite, train: TrainSettings, out: Path) -> list[Path]:
    """`datasets.interleave_datasets(datasets, probabilities=…, seed=…, stopping_strategy=…)` per phase."""
    phases = [
        {
            "datasets": list(phase.tasks),
            "arguments": {
                "probabilities": list(shares_of(phase).values()),
                "seed": seed_of(recipe),
                "stopping_strategy": "all_exhausted",
            },
            "loss_weights": {name: phase.weights.get(name, 1.0) for name in phase.tasks},
            "row_ids": {name: subset.ids.tolist() for name, subset in phase.subsets.items()},
            "rows": {name: len(rows) for name, rows in epoch_rows(phase, suite, seed_of(recipe)).items()},
            "epochs": epochs_of(phase, suite, train),
            "batch_size": train.batch_size,
        }
        for phase in recipe.phases
    ]
    path = out / "interleave.json"
    write_json(path, {"primary": recipe.primary, "phases": phases}, seal=False)
    return [path]


def jsonl(recipe: Recipe, suite: Suite, train: TrainSettings, out: Path) -> list[Path]:
    """One shuffled file per phase; each row names its task and its loss weight."""
    written = []
    for index, phase in enumerate(recipe.phases, start=1):
        lines = []
        for name, rows in epoch_rows(phase, suite, seed_of(recipe)).items():
            weight = phase.weights.get(name, 1.0)
            for row in plain_rows(suite.tasks[name], rows):
                lines.append(json.dumps({"task": name, "weight": weight, **row}, ensure_ascii=False))
        order = np.random.default_rng([seed_of(recipe), index]).permutation(len(lines))
        path = out / f"phase-{index}.jsonl"
        write_atomically(path, "".join(lines[i] + "\n" for i in order).encode())
        written.append(path)
    return written


def parquet(recipe: Recipe, suite: Suite, train: TrainSettings, out: Path) -> list[Path]:
    """One file per phase and task: the columns of tasks differ."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    written = []
    for index, phase in enumerate(recipe.phases, start=1):
        for name, rows in epoch_rows(phase, suite, seed_of(recipe)).items():
            path = out / f"phase-{index}" / f"{name}.parquet"
            table = pa.Table.from_pylist(list(plain_rows(suite.tasks[name], rows)))
            weights = pa.array([phase.weights.get(name, 1.0)] * len(rows))
            with atomic_file(path) as file:
                pq.write_table(table.append_column("weight", weights), file)
            written.append(path)
    return written
