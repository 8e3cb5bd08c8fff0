"""The embedded suite `digits`: real handwritten digits, two on a canvas, and candidates whose worth is known.

The images are scikit-learn's (1,797 digits of 8 × 8 pixels from the UCI repository), so nothing is downloaded. A canvas is made
as MultiMNIST's (Sener & Koltun 2018): both digits are enlarged to 16 × 16, one goes to the top-left corner of 20 × 20 pixels, the
other to the bottom-right, and where they overlap the brighter pixel counts. The primary, `top-left`, asks for the first digit and
has few labels. Trained 1:1 with the primary by the suite's defaults (the numbers are in docs/log):

============== ================================================= ==============================
candidate      what it asks for                                  effect on the primary
============== ================================================= ==============================
`parity`       is the top-left digit odd?                        helps clearly
`large`        is the top-left digit at least 5?                 helps clearly
`ink`          mean brightness of the canvas (regression)        none that can be seen
`shuffled`     the top-left digit, labels shuffled               hurts: few rows, memorised
`bottom-right` the other digit                                   hurts clearly: it needs what the primary must ignore
============== ================================================= ==============================

Source digits are divided among *train*, *select* and *report* before any canvas is made: no digit is in two splits.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sidequest.errors import SettingsError, unknown
from sidequest.tasks.examples import Examples
from sidequest.tasks.splits import generator
from sidequest.tasks.suite import Suite
from sidequest.tasks.task import SPLITS, Form, Objective, Task

DIGIT, CANVAS, SHIFT = 16, 20, 4
POOL_SHARES = {"train": 0.6, "select": 0.15, "report": 0.25}  # of the source digits
DEFAULTS: dict[str, dict[str, object]] = {
    "model": {"kind": "convnet"},
    # `all` and `size` see so many rows beside the primary that they are cut at `max_batches`.
    "train": {"eval_batch_size": 256, "max_batches": 2400},
}

PRIMARY = "top-left"
TEN = tuple("0123456789")
Labelling = Callable[["Canvases", np.random.Generator], np.ndarray]


@dataclass(frozen=True)
class Canvases:
    """image: float32 [n, 1, 20, 20] in [0, 1]. top_left, bottom_right: int64 [n], the digits on it."""

    image: np.ndarray
    top_left: np.ndarray
    bottom_right: np.ndarray


@dataclass(frozen=True)
class _Kind:
    """A task over canvases: how many rows it trains on, and what it asks for."""

    rows: int
    labelling: Labelling
    labels: tuple[str, ...]
    kind: str


TASKS: dict[str, _Kind] = {
    PRIMARY: _Kind(100, lambda c, rng: c.top_left, TEN, "top-left digit"),
    "parity": _Kind(2500, lambda c, rng: c.top_left % 2, ("even", "odd"), "top-left digit"),
    "large": _Kind(1500, lambda c, rng: (c.top_left >= 5).astype(np.int64), ("0-4", "5-9"), "top-left digit"),
    "bottom-right": _Kind(1500, lambda c, rng: c.bottom_right, TEN, "bottom-right digit"),
    "ink": _Kind(2000, lambda c, rng: c.image.mean(axis=(1, 2, 3), dtype=np.float64), (), "brightness"),
    "shuffled": _Kind(100, lambda c, rng: rng.permutation(c.top_left), TEN, "top-left digit"),
}


def digits_suite(
    seed: int = 0,
    *,
    rows: Mapping[str, int] | None = None,
    select_rows: int = 200,
    report_rows: int = 1500,
) -> Suite:
    """The suite; everything random in it is a function of the seed.

    rows: train rows of tasks by name, instead of the usual ones; 0 leaves a candidate out.
    select_rows, report_rows: rows of every task's *select* and *report*.

    >>> digits_suite(rows={"ink": 0}).candidates
    ('bottom-right', 'large', 'parity', 'shuffled')
    """
    counts = {name: spec.rows for name, spec in TASKS.items()}
    for name, count in (rows or {}).items():
        if name not in counts:
            raise unknown("task of the digits suite", name, counts)
        if count < (1 if name == PRIMARY else 0):
            raise SettingsError(
                f"digits: rows of {name!r}: {'at least 1' if name == PRIMARY else '0 or more'}, found {count}"
            )
        counts[name] = count
    pools = _pools(seed)
    tasks = {
        name: _task(name, pools, {"train": count, "select": select_rows, "report": report_rows}, seed)
        for name, count in counts.items()
        if count
    }
    primary = tasks.pop(PRIMARY)
    return Suite.of(primary, tasks.values(), name="digits", seed=seed, defaults=DEFAULTS)


def compose(images: np.ndarray, labels: np.ndarray, n: int, rng: np.random.Generator) -> Canvases:
    """`n` canvases from source digits [m, 16, 16]; every digit is used about equally often in each corner."""
    first, second = _draw(len(images), n, rng), _draw(len(images), n, rng)
    canvas = np.zeros((n, 1, CANVAS, CANVAS), dtype=np.float32)
    canvas[:, 0, :DIGIT, :DIGIT] = images[first]
    corner = canvas[:, 0, SHIFT:, SHIFT:]
    np.maximum(corner, images[second], out=corner)
    return Canvases(canvas, labels[first], labels[second])


def _draw(m: int, n: int, rng: np.random.Generator) -> np.ndarray:
    """`n` of `m` things: each once, in random order, before any comes again."""
    return np.concatenate([rng.permutation(m) for _ in range(-(-n // m) or 1)])[:n]


def _pools(seed: int) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """The source digits of each split: disjoint, with about the same share of each class."""
    images, labels = _source_digits()
    rng = generator(seed, "digits", "pools")
    shuffled = rng.permutation(len(labels))
    by_class = shuffled[np.argsort(labels[shuffled], kind="stable")]
    # Every class lies in one stretch; walking through it with a stride of 20 gives each split its share of each class.
    turn = np.arange(len(labels)) % 20
    edges = np.cumsum([0, *(round(20 * share) for share in POOL_SHARES.values())])
    pools = {}
    for split, low, high in zip(SPLITS, edges[:-1], edges[1:], strict=True):
        chosen = by_class[(turn >= low) & (turn < high)]
        pools[split] = (images[chosen], labels[chosen])
    return pools


@functools.cache
def _source_digits() -> tuple[np.ndarray, np.ndarray]:
    """All digits, enlarged: float32 [1797, 16, 16] in [0, 1] and int64 [1797].

    `digits.npz` has the pixels, 0 to 16, of the test set of Alpaydin and Kaynak (1998), "Optical recognition of handwritten
    digits" (UCI, CC BY 4.0): the numbers of `sklearn.datasets.load_digits`.
    """
    with np.load(Path(__file__).with_name("digits.npz"), allow_pickle=False) as data:
        pixels, digit = data["pixels"], data["digit"]
    images = (pixels.reshape(-1, 8, 8) / 16).astype(np.float32).repeat(2, axis=1).repeat(2, axis=2)
    return images, digit.astype(np.int64)


def _task(name: str, pools: dict[str, tuple[np.ndarray, np.ndarray]], counts: dict[str, int], seed: int) -> Task:
    spec = TASKS[name]
    splits, offset = {}, 0
    for split, count in counts.items():
        rng = generator(seed, "digits", name, split)
        canvases = compose(*pools[split], count, rng)
        ids = np.arange(offset, offset + count)
        splits[split] = Examples({"image": canvases.image}, spec.labelling(canvases, rng), ids)
        offset += count
    return Task(
        name=name,
        objective=Objective.CLASSIFICATION if spec.labels else Objective.REGRESSION,
        form=Form.IMAGE,
        splits=splits,
        labels=spec.labels,
        metrics=("accuracy",) if spec.labels else ("pearson", "r2"),
        kind=spec.kind,
        sources=dict.fromkeys(SPLITS, "sklearn.datasets.load_digits"),
    )
