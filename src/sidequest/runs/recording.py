"""What a run leaves for its readers besides its results: the commands that made it, facts and warnings about its data, and
some of the rows that were chosen. The report is drawn from these files alone, so it can be rebuilt without the data.

`record.json`: commands by name, machine, versions, `data` as `sidequest check --json` gives it.
`examples.json`: for each task of a recipe a few rows that it trains with and, where it leaves rows out, a few of those.
"""

from __future__ import annotations

import base64
import os
import platform
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from sidequest.files import read_json, write_json
from sidequest.recipe import Recipe
from sidequest.runs.directory import versions
from sidequest.tasks.check import check_suite
from sidequest.tasks.examples import Examples
from sidequest.tasks.suite import Suite
from sidequest.tasks.task import Objective, Task

RECORD, EXAMPLES = "record.json", "examples.json"
ROWS_SHOWN = 4  # of each task and kind
LONGEST_TEXT = 500  # characters


def record_run(directory: Path, suite: Suite, name: str, command: str) -> None:
    """Write `record.json`, and `examples.json` of the recipes in the directory. name: of the command, as in `select`."""
    path = directory / RECORD
    before = read_json(path) if path.exists() else {}
    record = {
        "commands": before.get("commands", {}) | {name: command},
        "machine": {"system": platform.platform(), "processor": platform.machine(), "cores": os.cpu_count()},
        "versions": versions(),
        # Training a recipe loads only the tasks that it uses: what was known about the others stays.
        "data": _merged(before.get("data", {}), check_suite(suite).to_json()),
    }
    write_json(path, record)
    first_seeds: dict[Path, Path] = {}  # of each method in a comparison: its rows are shown for one seed
    for run in sorted(directory.glob("**/seed-*/recipe.json")):
        first_seeds.setdefault(run.parent.parent, run)
    for recipe_file in (directory / "recipe.json", *first_seeds.values()):
        target = recipe_file.with_name(EXAMPLES)
        if recipe_file.exists() and not target.exists():
            write_json(target, examples_of(Recipe.read(recipe_file), suite))


def _merged(before: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    known = now["tasks"]
    kept = [problem for problem in before.get("problems", []) if problem["task"] not in known]
    return {
        "ok": now["ok"] and before.get("ok", True),
        "problems": [*now["problems"], *kept],
        "tasks": before.get("tasks", {}) | known,
    }


def examples_of(recipe: Recipe, suite: Suite) -> dict[str, Any]:
    """By task: how many rows there are and how many the recipe keeps, with rows from all over each of the two kinds."""
    out: dict[str, Any] = {}
    for name in recipe.tasks:
        if name not in suite.tasks:
            continue
        task, train = suite[name], suite[name].train
        subsets = [phase.subsets[name].ids for phase in recipe.phases if name in phase.tasks and name in phase.subsets]
        whole = any(name in phase.tasks and name not in phase.subsets for phase in recipe.phases)
        ids = np.unique(np.concatenate([np.asarray(s, dtype=np.int64) for s in subsets])) if subsets else None
        kept = np.ones(len(train), dtype=bool) if whole or ids is None else np.isin(train.ids, ids)
        out[name] = {
            "rows": len(train),
            "kept": int(kept.sum()),
            "chosen": _rows(task, train, np.flatnonzero(kept)),
            "left_out": _rows(task, train, np.flatnonzero(~kept)),
        }
    return out


def _rows(task: Task, rows: Examples, positions: np.ndarray) -> list[dict[str, Any]]:
    """A few rows at equal distances, as plain data."""
    if not len(positions):
        return []
    spread = np.unique(np.linspace(0, len(positions) - 1, min(ROWS_SHOWN, len(positions))).round().astype(int))
    taken = rows.take(positions[spread])
    out = []
    for index, row in enumerate(taken.ids.tolist()):
        shown = {name: _plain(name, column, index) for name, column in taken.columns.items()}
        out.append({"row": row, "inputs": shown, "target": _target(task, taken, index)})
    return out


def _plain(name: str, column: Any, index: int) -> str:
    if name == "image":
        return png_data_uri(column[index])
    value = column[index].as_py()
    text = value if isinstance(value, str) else " | ".join(value) if name == "choices" else " ".join(value)
    return text if len(text) <= LONGEST_TEXT else text[:LONGEST_TEXT] + "…"


def _target(task: Task, rows: Examples, index: int) -> str:
    if rows.target is None:
        return ""
    value = rows.target[index] if isinstance(rows.target, np.ndarray) else rows.target[index].as_py()
    if task.objective is Objective.REGRESSION:
        return f"{float(value):g}"
    if task.objective is Objective.TAGGING:
        return " ".join(task.labels[tag] for tag in value)[:LONGEST_TEXT]
    return task.labels[int(value)] if task.objective is Objective.CLASSIFICATION else f"choice {int(value) + 1}"


def png_data_uri(image: np.ndarray) -> str:
    """A picture [channels, height, width] as a grey PNG: the mean of its channels, from its darkest to its brightest."""
    grey = np.asarray(image, dtype=np.float64).mean(axis=0)
    low, high = float(grey.min()), float(grey.max())
    pixels = np.round((grey - low) / ((high - low) or 1.0) * 255).astype(np.uint8)
    height, width = pixels.shape
    raw = b"".join(b"\x00" + row.tobytes() for row in pixels)  # filter type 0 before each line

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    data = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b"")
    return "data:image/png;base64," + base64.b64encode(data).decode("ascii")
