"""MultiMNIST after Sener & Koltun (2018): two digits on one canvas, one task for each.

A 36 × 36 canvas holds one digit in its top-left corner and another in its bottom-right, and is resized to 28 × 28. 10,000 of the
60,000 training digits are held for validation (*select*), the official test digits make *report*.

**Departures.** Where the digits overlap the brighter pixel counts, so that no grey value leaves its range. The held digits
are set apart before pairs are made, so that no digit of *select* or *report* occurs in *train*. Resizing averages over areas.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np

from sidequest.errors import DataError
from sidequest.files import digest, file_digest
from sidequest.store import ContentStore, save_arrays
from sidequest.tasks.readers import Table, read_idx
from sidequest.tasks.splits import generator

Corner = Literal["top-left", "bottom-right"]
CANVAS, SIDE, SHIFT = 36, 28, 8
HELD_FOR_SELECT = 10_000
VERSION = 1  # part of the cache key: raise it when the images change
FILES = {
    ("train", "image"): "train-images*idx3-ubyte*",
    ("train", "label"): "train-labels*idx1-ubyte*",
    ("test", "image"): "t10k-images*idx3-ubyte*",
    ("test", "label"): "t10k-labels*idx1-ubyte*",
}


def multimnist_tables(directory: Path, corner: Corner, seed: int) -> dict[str, Table]:
    """Tables with `image` [n, 1, 28, 28] and the `label` of one corner; both corners' tasks have the same images."""
    arrays = _arrays(_find(directory), seed)
    source = f"{directory} (MultiMNIST, {corner})"
    return {
        split: Table({"image": arrays[f"{split}-image"], "label": arrays[f"{split}-{corner}"]}, source)
        for split in ("train", "select", "report")
    }


def pair_up(images: np.ndarray, labels: np.ndarray, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Every digit once at the top left and once, by a random permutation, at the bottom right.

    images: uint8 [n, 28, 28]. Returns `image` uint8 [n, 1, 28, 28] and the two corners' labels.
    """
    partner = rng.permutation(len(images))
    shrink = _area_weights(CANVAS, SIDE)
    out = np.empty((len(images), 1, SIDE, SIDE), dtype=np.uint8)
    for begin in range(0, len(images), 4096):  # in blocks, to bound memory
        block = slice(begin, begin + 4096)
        canvas = np.zeros((len(images[block]), CANVAS, CANVAS), dtype=np.float32)
        canvas[:, :SIDE, :SIDE] = images[block]
        corner = canvas[:, SHIFT:, SHIFT:]
        np.maximum(corner, images[partner[block]], out=corner)
        out[block, 0] = np.rint(shrink @ canvas @ shrink.T)
    return {"image": out, "top-left": labels, "bottom-right": labels[partner]}


def _area_weights(size: int, smaller: int) -> np.ndarray:
    """float32 [smaller, size]: each output pixel averages the stretch of input pixels that it covers."""
    edges = np.linspace(0, size, smaller + 1)
    left, right = edges[:-1, None], edges[1:, None]
    pixel = np.arange(size)[None, :]
    cover = np.clip(np.minimum(right, pixel + 1) - np.maximum(left, pixel), 0, None)
    return (cover / cover.sum(axis=1, keepdims=True)).astype(np.float32)


def _find(directory: Path) -> dict[tuple[str, str], Path]:
    files = {key: next(iter(sorted(directory.glob(pattern))), None) for key, pattern in FILES.items()}
    missing = [FILES[key] for key, path in files.items() if path is None]
    if missing:
        raise DataError(f"MultiMNIST needs MNIST's four idx files; missing: {', '.join(missing)}", file=directory)
    return {key: path for key, path in files.items() if path is not None}


def _arrays(files: dict[tuple[str, str], Path], seed: int) -> dict[str, np.ndarray]:
    """All splits' arrays, from the cache or made and cached."""
    key = digest([VERSION, seed, [file_digest(path) for path in files.values()]])
    return ContentStore("multimnist").get_or_make(key, partial(_make, files, seed)).arrays()


def _make(files: dict[tuple[str, str], Path], seed: int, directory: Path) -> dict[str, int]:
    made: dict[str, np.ndarray] = {}
    train = read_idx(files["train", "image"], files["train", "label"]).columns
    test = read_idx(files["test", "image"], files["test", "label"]).columns
    order = generator(seed, "multimnist", "held").permutation(len(train["image"]))
    held = min(HELD_FOR_SELECT, len(order) // 6)  # a sixth: MNIST's own proportion, for smaller sets of digits
    parts = {
        "train": (train, np.sort(order[held:])),
        "select": (train, np.sort(order[:held])),
        "report": (test, np.arange(len(test["image"]))),
    }
    for split, (digits, rows) in parts.items():
        rng = generator(seed, "multimnist", split)
        for name, array in pair_up(digits["image"][rows, 0], digits["label"][rows], rng).items():
            made[f"{split}-{name}"] = array
    save_arrays(directory, made)
    return {"seed": seed}
