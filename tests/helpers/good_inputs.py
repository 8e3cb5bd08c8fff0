"""A small suite of texts, one of images, and a run, a model, a comparison and records over them, all sound: tests break them."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import yaml

TEXT_SUITE: dict[str, Any] = {
    "suite": "texts",
    "primary": "reviews",
    "tasks": {
        "reviews": {"objective": "classification", "train": "reviews.csv", "text": "text", "label": "label"},
        "other": {"objective": "classification", "train": "other.jsonl", "text": "text", "label": "label"},
    },
}
SHORT = ["--set", "train.epochs=1", "--set", "train.batch_size=16"]


def idx(array: np.ndarray) -> bytes:
    """The bytes of an idx file."""
    kinds = {"uint8": 0x08, "int8": 0x09, "int16": 0x0B, "int32": 0x0C, "float32": 0x0D, "float64": 0x0E}
    header = struct.pack(f">BBBB{array.ndim}I", 0, 0, kinds[str(array.dtype)], array.ndim, *array.shape)
    return header + array.astype(array.dtype.newbyteorder(">")).tobytes()


def text_rows(rows: int = 40, seed: int = 0) -> list[dict[str, str]]:
    rng = np.random.default_rng(seed)
    words = {"up": ("lovely", "great"), "down": ("awful", "poor")}
    out = []
    for number in range(rows):
        label = "up" if rng.random() < 0.5 else "down"
        out.append({"text": f"The film number {seed} {number} was {rng.choice(words[label])}.", "label": label})
    return out


def csv_text(rows: list[dict[str, str]]) -> str:
    return "text,label\n" + "".join(f"{row['text']},{row['label']}\n" for row in rows)


def write_texts(place: Path, changes: dict[str, Any] | None = None) -> Path:
    """A suite of two text tasks; changes: other fields of the suite file."""
    place.mkdir(parents=True, exist_ok=True)
    (place / "reviews.csv").write_text(csv_text(text_rows()))
    (place / "other.jsonl").write_text("".join(json.dumps(row) + "\n" for row in text_rows(30, 1)))
    path = place / "suite.yaml"
    path.write_text(yaml.safe_dump({**TEXT_SUITE, **(changes or {})}))
    return path


def write_images(place: Path, changes: dict[str, Any] | None = None) -> Path:
    """A suite of three tasks on images of 6x6, bright above or below."""
    place.mkdir(parents=True, exist_ok=True)
    tasks = {}
    for seed, name in enumerate(("main", "near", "far")):
        rng = np.random.default_rng(seed)
        label = rng.integers(0, 2, 60).astype(np.uint8)
        image = rng.integers(0, 60, (60, 6, 6)).astype(np.uint8)
        image[label == 1, :3] += 120
        (place / f"{name}-images").write_bytes(idx(image))
        (place / f"{name}-labels").write_bytes(idx(label))
        split = {"image": f"{name}-images", "label": f"{name}-labels"}
        tasks[name] = {"objective": "classification", "train": split}
    path = place / "suite.yaml"
    written = {"suite": "images", "primary": "main", "tasks": tasks, "train": {"epochs": 1, "batch_size": 16}}
    path.write_text(yaml.safe_dump({**written, **(changes or {})}))
    return path
