"""Suites of files that a command trains on in a fraction of a second: images for a convnet, words for a tiny encoder."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import yaml

from sidequest.tasks.digits import digits_suite
from tests.helpers.tiny_suites import WORDS, tiny_encoder

IMAGE_ROWS = {"top-left": 24, "parity": 32, "large": 40, "bottom-right": 0, "ink": 0, "shuffled": 0}
WORD_TASKS = {"mood": (24, 2), "topic": (40, 3), "noise": (32, 2)}  # rows of train, classes


def write_suites(folder: Path) -> None:
    """`images/suite.yaml`, and `words/suite.yaml` with its encoder."""
    write_images(folder / "images")
    write_words(folder / "words")


def write_images(folder: Path) -> None:
    folder.mkdir(parents=True)
    suite = digits_suite(rows=IMAGE_ROWS, select_rows=16, report_rows=24)
    tasks = {}
    for name, task in suite.tasks.items():
        spec: dict[str, object] = {"objective": "classification", "kind": task.kind}
        for split, rows in task.splits.items():
            pixels = np.round(np.asarray(rows.columns["image"])[:, 0] * 255).astype(np.uint8)
            write_idx(folder / f"{name}-{split}-images-ubyte", pixels)
            write_idx(folder / f"{name}-{split}-labels-ubyte", np.asarray(rows.target).astype(np.uint8))
            spec[split] = {"image": f"{name}-{split}-images-ubyte", "label": f"{name}-{split}-labels-ubyte"}
        spec["labels"] = [str(label) for label in range(len(task.labels))]
        tasks[name] = spec
    plain = {
        "suite": "images",
        "primary": suite.primary,
        "tasks": tasks,
        "model": {"kind": "convnet"},
        "train": {"epochs": 3, "batch_size": 8, "evaluations": 3},
    }
    (folder / "suite.yaml").write_text(yaml.safe_dump(plain, sort_keys=False))


def write_idx(path: Path, values: np.ndarray) -> None:
    """The format of MNIST: type, number of dimensions, their sizes, then bytes."""
    header = bytes([0, 0, 8, values.ndim]) + b"".join(size.to_bytes(4, "big") for size in values.shape)
    path.write_bytes(header + values.tobytes())


def write_words(folder: Path) -> None:
    folder.mkdir(parents=True)
    tasks = {}
    for number, (name, (rows, classes)) in enumerate(WORD_TASKS.items()):
        for split_number, (split, count) in enumerate({"train": rows, "select": 16, "report": 20}.items()):
            rng = np.random.default_rng([number, split_number])
            with (folder / f"{name}-{split}.jsonl").open("w") as file:
                for _ in range(count):
                    words = rng.choice(len(WORDS), rng.integers(2, 9))
                    label = int(words[0]) % classes
                    file.write(json.dumps({"text": " ".join(WORDS[w] for w in words), "label": f"c{label}"}) + "\n")
        splits = {split: f"{name}-{split}.jsonl" for split in ("train", "select", "report")}
        tasks[name] = {"objective": "classification", "text": "text", "label": "label", "kind": "words", **splits}
    tiny_encoder(folder / "encoder")
    plain = {
        "suite": "words",
        "primary": "mood",
        "tasks": tasks,
        "model": {"kind": "pooled", "encoder": str(folder / "encoder")},
        "train": {"epochs": 3, "batch_size": 8, "evaluations": 3},
    }
    (folder / "suite.yaml").write_text(yaml.safe_dump(plain, sort_keys=False))
