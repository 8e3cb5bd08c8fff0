"""Recipes for other trainers: `sidequest export recipe.json --to FORMAT`.

`interleave` gives the arguments of `datasets.interleave_datasets`. The other formats hold rows: one *epoch* of a phase, in
which each task appears as often as its share says (the primary's rows once, an auxiliary's rows repeated or cut as needed). A
trainer that goes through such files in random order trains the recipe's mixture without knowing about shares.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from sidequest.errors import SettingsError, unknown
from sidequest.files import atomic_file, write_atomically, write_json
from sidequest.recipe import Phase, Recipe
from sidequest.tasks.examples import Examples
from sidequest.tasks.suite import Suite
from sidequest.tasks.task import Form, Objective, Task


def export_recipe(recipe: Recipe, suite: Suite, to: str, out: Path) -> list[Path]:
    """Write the recipe in another trainer's format into the directory `out`; the files written."""
    if to not in FORMATS:
        raise unknown("export format", to, FORMATS)
    if out.is_file():
        raise SettingsError(f"{out}: is a file; -o takes a directory for the export")
    return FORMATS[to](recipe, suite, out)


def epoch_rows(phase: Phase, suite: Suite, seed: int) -> dict[str, Examples]:
    """The rows of one epoch of a phase per task: the first of a seeded shuffle and, beyond one pass, of a new one."""
    anchor = suite.primary if phase.shares.get(suite.primary, 0) > 0 else phase.tasks[0]
    rows = {name: _chosen(suite.tasks[name], phase) for name in phase.tasks}
    unit = len(rows[anchor]) / phase.shares[anchor]
    return {
        name: _repeat(rows[name], round(unit * phase.shares[name]), [seed, i]) for i, name in enumerate(phase.tasks)
    }


def _chosen(task: Task, phase: Phase) -> Examples:
    subset = phase.subsets.get(task.name)
    return task.train if subset is None else task.train.with_ids(np.asarray(subset.ids, dtype=np.int64))


def _repeat(rows: Examples, count: int, seed: list[int]) -> Examples:
    if count == len(rows):
        return rows
    rng = np.random.default_rng(seed)
    passes = [rng.permutation(len(rows)) for _ in range(-(-count // len(rows)))]
    return rows.take(np.concatenate([*passes, np.empty(0, dtype=np.int64)])[:count])


def plain_rows(task: Task, rows: Examples) -> Iterator[dict[str, Any]]:
    """Rows as dicts of plain values, labels by name."""
    columns = {name: _plain(column) for name, column in rows.columns.items()}
    for i in range(len(rows)):
        yield {
            "id": int(rows.ids[i]),
            **{name: column[i] for name, column in columns.items()},
            "label": _label(task, rows, i),
        }


def _plain(column: Any) -> list[Any]:
    return column.tolist() if isinstance(column, np.ndarray) else column.to_pylist()


def _label(task: Task, rows: Examples, i: int) -> Any:
    if rows.target is None:
        return None
    if task.objective == Objective.TAGGING:
        return [task.labels[tag] for tag in rows.target[i].as_py()]
    if task.objective == Objective.CLASSIFICATION:
        return task.labels[int(rows.target[i])]
    if task.objective == Objective.MULTILABEL:
        return [task.labels[label] for label in np.flatnonzero(rows.target[i])]
    return rows.target[i].item()


def _interleave(recipe: Recipe, suite: Suite, out: Path) -> list[Path]:
    """`datasets.interleave_datasets(datasets, probabilities=…, seed=…, stopping_strategy=…)` per phase."""
    phases = []
    for phase in recipe.phases:
        total = sum(phase.shares[name] for name in phase.tasks)
        phases.append(
            {
                "datasets": list(phase.tasks),
                "arguments": {
                    "probabilities": [phase.shares[name] / total for name in phase.tasks],
                    "seed": recipe.provenance.get("seed", 0),
                    "stopping_strategy": "all_exhausted",
                },
                "loss_weights": {name: phase.weights.get(name, 1.0) for name in phase.tasks},
                "row_ids": {name: list(subset.ids) for name, subset in phase.subsets.items()},
                "epochs": phase.epochs,
                "batches": phase.batches,
            }
        )
    path = out / "interleave.json"
    write_json(path, {"primary": recipe.primary, "phases": phases}, seal=False)
    return [path]


def _jsonl(recipe: Recipe, suite: Suite, out: Path) -> list[Path]:
    written = []
    for index, phase in enumerate(recipe.phases, start=1):
        lines = []
        for name, rows in epoch_rows(phase, suite, _seed(recipe)).items():
            weight = phase.weights.get(name, 1.0)
            for row in plain_rows(suite.tasks[name], rows):
                lines.append(json.dumps({"task": name, "weight": weight, **row}, ensure_ascii=False))
        order = np.random.default_rng([_seed(recipe), index]).permutation(len(lines))
        path = out / f"phase-{index}.jsonl"
        write_atomically(path, "".join(lines[i] + "\n" for i in order).encode())
        written.append(path)
    return written


def _parquet(recipe: Recipe, suite: Suite, out: Path) -> list[Path]:
    """One file per phase and task: the columns of tasks differ."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    written = []
    for index, phase in enumerate(recipe.phases, start=1):
        for name, rows in epoch_rows(phase, suite, _seed(recipe)).items():
            path = out / f"phase-{index}" / f"{name}.parquet"
            table = pa.Table.from_pylist(list(plain_rows(suite.tasks[name], rows)))
            weights = pa.array([phase.weights.get(name, 1.0)] * len(rows))
            with atomic_file(path) as file:
                pq.write_table(table.append_column("weight", weights), file)
            written.append(path)
    return written


def _machamp(recipe: Recipe, suite: Suite, out: Path) -> list[Path]:
    """MaChAmp's dataset configuration with its column files; `sampling_smoothing` 1 keeps the sizes, and so the shares."""
    written = []
    for index, phase in enumerate(recipe.phases, start=1):
        config: dict[str, Any] = {}
        for name, rows in epoch_rows(phase, suite, _seed(recipe)).items():
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
            weight = phase.weights.get(name, 1.0)
            if task.form == Form.TOKENS:
                kind = "seq_bio" if task.metric == "span_f1" else "seq"
                entry |= {"word_idx": 0, "tasks": {name: {"task_type": kind, "column_idx": 1, "loss_weight": weight}}}
            else:
                texts = [0, 1] if task.form == Form.PAIR else [0]
                kind = {Objective.REGRESSION: "regression", Objective.MULTILABEL: "multiclas"}.get(
                    task.objective, "classification"
                )
                head = {"task_type": kind, "column_idx": len(texts), "loss_weight": weight}
                entry |= {"sent_idxs": texts, "tasks": {name: head}}
            config[name] = entry
        path = out / f"machamp-phase-{index}.json"
        write_json(path, config, seal=False)
        parameters = out / "machamp-parameters.json"
        write_json(parameters, {"batching": {"sampling_smoothing": 1.0}}, seal=False)
        written += [path, parameters]
    return list(dict.fromkeys(written))


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


def _axolotl(recipe: Recipe, suite: Suite, out: Path) -> list[Path]:
    """Axolotl's `datasets:` list with alpaca-style rows (instruction, input, output), one file per phase and task."""
    written = []
    for index, phase in enumerate(recipe.phases, start=1):
        entries = []
        for name, rows in epoch_rows(phase, suite, _seed(recipe)).items():
            task = suite.tasks[name]
            if task.form == Form.IMAGE:
                raise SettingsError(f"Axolotl trains on text; {name!r} has images. Use --to parquet")
            path = out / f"phase-{index}" / f"{name}.jsonl"
            text = "".join(
                json.dumps(_instruction(task, row), ensure_ascii=False) + "\n" for row in plain_rows(task, rows)
            )
            write_atomically(path, text.encode())
            entries.append({"path": str(path.relative_to(out)), "ds_type": "json", "type": "alpaca"})
            written.append(path)
        config = out / f"axolotl-phase-{index}.yaml"
        settings = {"datasets": entries, "shuffle_merged_datasets": True, "num_epochs": phase.epochs or 1}
        write_atomically(config, yaml.safe_dump(settings, sort_keys=False).encode())
        written.append(config)
    return written


def _instruction(task: Task, row: dict[str, Any]) -> dict[str, str]:
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


def _seed(recipe: Recipe) -> int:
    return int(recipe.provenance.get("seed", 0))


FORMATS: dict[str, Callable[[Recipe, Suite, Path], list[Path]]] = {
    "interleave": _interleave,
    "jsonl": _jsonl,
    "parquet": _parquet,
    "machamp": _machamp,
    "axolotl": _axolotl,
}
