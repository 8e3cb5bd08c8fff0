"""Exports for trainers: Axolotl, TRL, LLaMA-Factory and sentence-transformers; MaChAmp has a module of its own.

All of them get files with one epoch of a phase, in which each task has as many rows as its share says; where a trainer also takes
shares, those of the files are given, so that its own sampling keeps every row.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from sidequest.errors import SettingsError
from sidequest.files import write_atomically, write_json
from sidequest.recipe import Phase, Recipe
from sidequest.runs.exports.rows import epoch_rows, epochs_of, plain_rows, seed_of, shares_of
from sidequest.settings import TrainSettings
from sidequest.tasks.suite import Suite
from sidequest.tasks.task import Form, Objective, Task


def axolotl(recipe: Recipe, suite: Suite, train: TrainSettings, out: Path) -> list[Path]:
    """Axolotl's `datasets:` list with alpaca-style rows (instruction, input, output), one file per phase and task."""
    written = []
    for index, phase, files in _instruction_files(recipe, suite, out, "Axolotl", _alpaca):
        entries = [{"path": str(path.relative_to(out)), "ds_type": "json", "type": "alpaca"} for path in files.values()]
        settings = {
            "datasets": entries,
            "shuffle_merged_datasets": True,
            "num_epochs": _rounded(epochs_of(phase, suite, train)),
        }
        config = out / f"axolotl-phase-{index}.yaml"
        write_atomically(config, yaml.safe_dump(settings, sort_keys=False).encode())
        written += [*files.values(), config]
    return written


def trl(recipe: Recipe, suite: Suite, train: TrainSettings, out: Path) -> list[Path]:
    """TRL's `datasets:` mixture with prompt and completion. Its `fraction` is a task's part of the mixture, and never repeats a
    row: so the files hold the rows as often as the recipe wants them, and the fractions keep all of them."""
    written = []
    for index, phase, files in _instruction_files(recipe, suite, out, "TRL", _prompt):
        counts = {name: len(path.read_text(encoding="utf-8").splitlines()) for name, path in files.items()}
        entries = [
            {
                "path": "json",
                "data_files": str(path.relative_to(out)),
                "split": "train",
                "columns": ["prompt", "completion"],
                "fraction": counts[name] / sum(counts.values()),
            }
            for name, path in files.items()
        ]
        settings = {"datasets": entries, "num_train_epochs": _rounded(epochs_of(phase, suite, train))}
        config = out / f"trl-phase-{index}.yaml"
        write_atomically(config, yaml.safe_dump(settings, sort_keys=False).encode())
        written += [*files.values(), config]
    return written


def llama_factory(recipe: Recipe, suite: Suite, train: TrainSettings, out: Path) -> list[Path]:
    """LLaMA-Factory's `dataset_info.json` and a training file per phase. `concat` shuffles all files together: an epoch has
    every row once. `interleave_probs` are for streaming, where files cannot be shuffled; they stand in a comment, because
    LLaMA-Factory refuses them beside `concat`, and its `interleave_once` fails with the `datasets` that it pins (4.0)."""
    written: list[Path] = []
    info: dict[str, Any] = {}
    for index, phase, files in _instruction_files(recipe, suite, out, "LLaMA-Factory", _alpaca):
        names = {name: f"{name}-phase-{index}" for name in files}
        for name, path in files.items():
            columns = {"prompt": "instruction", "query": "input", "response": "output"}
            info[names[name]] = {"file_name": str(path.relative_to(out)), "formatting": "alpaca", "columns": columns}
        shares = shares_of(phase)
        settings = {
            "dataset_dir": ".",
            "dataset": ",".join(names.values()),
            "mix_strategy": "concat",
            "num_train_epochs": _rounded(epochs_of(phase, suite, train)),
        }
        streaming = {
            "streaming": True,
            "mix_strategy": "interleave_over",
            "interleave_probs": ",".join(f"{shares[name]:.6f}" for name in files),
        }
        comment = "".join(f"# {line}\n" for line in yaml.safe_dump(streaming, sort_keys=False).splitlines())
        text = f"{yaml.safe_dump(settings, sort_keys=False)}# For streaming, instead of concat:\n{comment}"
        config = out / f"llama-factory-phase-{index}.yaml"
        write_atomically(config, text.encode())
        written += [*files.values(), config]
    path = out / "dataset_info.json"
    write_json(path, info, seal=False)
    return [*written, path]


def sentence_transformers(recipe: Recipe, suite: Suite, train: TrainSettings, out: Path) -> list[Path]:
    """A jsonl per phase and task with the columns that sentence-transformers' losses take, and which loss: `training.json`. Its
    `proportional` sampler draws batches by the number of rows, which are the shares here."""
    written, phases = [], []
    for index, phase in enumerate(recipe.phases, start=1):
        datasets = {}
        for name, rows in epoch_rows(phase, suite, seed_of(recipe)).items():
            task = suite.tasks[name]
            loss, convert = _sentence_columns(task)
            path = out / f"phase-{index}" / f"{name}.jsonl"
            lines = [json.dumps(convert(row), ensure_ascii=False) + "\n" for row in plain_rows(task, rows)]
            write_atomically(path, "".join(lines).encode())
            datasets[name] = {"file": str(path.relative_to(out)), "loss": loss, "classes": list(task.labels)}
            written.append(path)
        phases.append(
            {
                "datasets": datasets,
                "multi_dataset_batch_sampler": "proportional",
                "num_train_epochs": _rounded(epochs_of(phase, suite, train)),
                "per_device_train_batch_size": train.batch_size,
            }
        )
    path = out / "training.json"
    write_json(path, {"primary": recipe.primary, "phases": phases}, seal=False)
    return [*written, path]


def _sentence_columns(task: Task) -> tuple[str, Callable[[dict[str, Any]], dict[str, Any]]]:
    """The loss of a task, and its row with that loss's columns: texts first, then `label` or `score`."""
    classes = {label: number for number, label in enumerate(task.labels)}
    if task.form == Form.PAIR and task.objective == Objective.REGRESSION:
        target = np.asarray(task.train.target, dtype=np.float64)
        low, width = float(target.min()), float(np.ptp(target)) or 1.0

        def scored(row: dict[str, Any]) -> dict[str, Any]:
            return {"sentence1": row["text"], "sentence2": row["text_b"], "score": (row["label"] - low) / width}

        return "CosineSimilarityLoss", scored
    if task.form == Form.PAIR and task.objective == Objective.CLASSIFICATION:
        return "SoftmaxLoss", lambda row: {
            "sentence1": row["text"],
            "sentence2": row["text_b"],
            "label": classes[row["label"]],
        }
    if task.form == Form.TEXT and task.objective == Objective.CLASSIFICATION:
        return "BatchAllTripletLoss", lambda row: {"sentence": row["text"], "label": classes[row["label"]]}
    raise SettingsError(
        f"sentence-transformers has no loss for {task.name!r} ({task.objective} of {task.form}); use --to jsonl or parquet"
    )


Convert = Callable[[Task, dict[str, Any]], dict[str, Any]]


def _instruction_files(
    recipe: Recipe, suite: Suite, out: Path, trainer: str, convert: Convert
) -> Iterator[tuple[int, Phase, dict[str, Path]]]:
    """A jsonl per phase and task for trainers of language models."""
    for index, phase in enumerate(recipe.phases, start=1):
        files = {}
        for name, rows in epoch_rows(phase, suite, seed_of(recipe)).items():
            task = suite.tasks[name]
            if task.form == Form.IMAGE:
                raise SettingsError(f"{trainer} trains on text; {name!r} has images. Use --to parquet")
            path = out / f"phase-{index}" / f"{name}.jsonl"
            lines = [json.dumps(convert(task, row), ensure_ascii=False) + "\n" for row in plain_rows(task, rows)]
            write_atomically(path, "".join(lines).encode())
            files[name] = path
        yield index, phase, files


def _alpaca(task: Task, row: dict[str, Any]) -> dict[str, str]:
    parts = [str(row[key]) for key in ("text", "text_b") if key in row]
    parts += ["\n".join(f"{i}: {choice}" for i, choice in enumerate(row["choices"]))] if "choices" in row else []
    parts += [" ".join(row["tokens"])] if "tokens" in row else []
    several = task.objective == Objective.MULTILABEL
    which = "all that fit" if several else "one"
    answers = f" Answer with {which} of: {', '.join(task.labels)}." if task.labels else ""
    between = ", " if several else " "
    output = between.join(row["label"]) if isinstance(row["label"], list) else str(row["label"])
    return {
        "instruction": f"Task {task.name} ({task.objective}).{answers}",
        "input": "\n\n".join(parts),
        "output": output,
    }


def _prompt(task: Task, row: dict[str, Any]) -> dict[str, str]:
    plain = _alpaca(task, row)
    return {"prompt": f"{plain['instruction']}\n\n{plain['input']}\n\n", "completion": plain["output"]}


def _rounded(epochs: float) -> float:
    return round(epochs, 3)
