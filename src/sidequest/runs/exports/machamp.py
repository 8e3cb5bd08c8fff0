"""Exports for MaChAmp: its dataset configuration, its column files and a complete parameter file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sidequest.errors import SettingsError
from sidequest.files import write_atomically, write_json
from sidequest.recipe import Recipe
from sidequest.runs.exports.rows import epoch_rows, epochs_of, plain_rows, seed_of
from sidequest.settings import TrainSettings
from sidequest.tasks.examples import Examples
from sidequest.tasks.suite import Suite
from sidequest.tasks.task import Form, Objective, Task

# MaChAmp has no defaults but those of its configs/params.json: a file that lacks a key ends in a KeyError. These are its values;
# the encoder is the user's choice, and `sampling_smoothing` 1 draws by the files' sizes.
PARAMETERS: dict[str, Any] = {
    "transformer_model": "bert-base-multilingual-cased",
    "reset_transformer_model": False,
    "default_dec_dataset_embeds_dim": 12,
    "encoder": {"dropout": 0.2, "max_input_length": 128, "update_weights_encoder": True},
    "decoders": {
        "default_decoder": {"loss_weight": 1.0, "metric": "accuracy", "topn": 1, "layers_to_use": [-1]},
        "classification": {},
        "multiclas": {"metric": "multi_acc", "threshold": 0.7},
        "regression": {"metric": "avg_dist"},
        "seq": {},
        "seq_bio": {"metric": "span_f1"},
    },
    "batching": {
        "max_tokens": 1024,
        "shuffle": True,
        "sort_by_size": True,
        "diverse": False,
        "sampling_smoothing": 1.0,
    },
    "training": {
        "keep_top_n": 1,
        "learning_rate_scheduler": {
            "cut_frac": 0.3,
            "decay_factor": 0.38,
            "discriminative_fine_tuning": True,
            "gradual_unfreezing": True,
        },
        "optimizer": {"betas": [0.9, 0.99], "lr": 0.0001, "weight_decay": 0.01},
    },
}


def machamp(recipe: Recipe, suite: Suite, train: TrainSettings, out: Path) -> list[Path]:
    """MaChAmp's dataset configuration with its column files; `sampling_smoothing` 1 keeps the sizes, and so the shares."""
    written = []
    for index, phase in enumerate(recipe.phases, start=1):
        config: dict[str, Any] = {}
        for name, rows in epoch_rows(phase, suite, seed_of(recipe)).items():
            task = suite.tasks[name]
            if task.form not in (Form.TEXT, Form.PAIR, Form.TOKENS):
                raise SettingsError(f"MaChAmp has no task type for {name!r} ({task.form}); use --to jsonl or parquet")
            files = {"train_data_path": rows}
            if name == suite.primary and "select" in task.splits:
                files["dev_data_path"] = task.splits["select"]
            entry: dict[str, Any] = {}
            for key, content in files.items():
                path = out / f"phase-{index}" / f"{name}.{key.split('_')[0]}"
                write_atomically(path, _columns(task, content).encode())
                entry[key] = str(path.relative_to(out))
                written.append(path)
            config[name] = entry | _machamp_head(task, phase.weights.get(name, 1.0))
        path, parameters = out / f"machamp-phase-{index}.json", out / f"machamp-parameters-{index}.json"
        write_json(path, config, seal=False)
        batching = PARAMETERS["batching"] | {"batch_size": train.batch_size}
        training = PARAMETERS["training"] | {"num_epochs": max(1, round(epochs_of(phase, suite, train)))}
        own = {"random_seed": seed_of(recipe), "batching": batching, "training": training}
        write_json(parameters, PARAMETERS | own, seal=False)
        written += [path, parameters]
    return written


def _machamp_head(task: Task, weight: float) -> dict[str, Any]:
    if task.form == Form.TOKENS:
        kind = "seq_bio" if task.metric == "span_f1" else "seq"
        return {"word_idx": 0, "tasks": {task.name: {"task_type": kind, "column_idx": 1, "loss_weight": weight}}}
    texts = [0, 1] if task.form == Form.PAIR else [0]
    kinds = {Objective.REGRESSION: "regression", Objective.MULTILABEL: "multiclas"}
    head = {
        "task_type": kinds.get(task.objective, "classification"),
        "column_idx": len(texts),
        "loss_weight": weight,
    }
    return {"sent_idxs": texts, "tasks": {task.name: head}}


def _columns(task: Task, rows: Examples) -> str:
    if task.form == Form.TOKENS:
        blocks = []
        for row in plain_rows(task, rows):
            blocks.append("".join(f"{word}\t{tag}\n" for word, tag in zip(row["tokens"], row["label"], strict=True)))
        return "\n".join(blocks)
    names = ["text", "text_b"] if task.form == Form.PAIR else ["text"]
    lines = []
    for row in plain_rows(task, rows):
        label = "|".join(row["label"]) if task.objective == Objective.MULTILABEL else row["label"]
        lines.append("\t".join(" ".join(str(value).split()) for value in [*(row[n] for n in names), label]))
    return "\n".join(lines) + "\n"
