"""Predictions of a final model on *report*, row by row, in a small file: what an interval over rows is made from.

`predictions.npz` holds `tasks` (their names) and for task number i an array `i` in row order: class indices, values, or, where a
row has several (tags), all of them in one array with `i-lengths` beside it. No objects, so reading it executes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sidequest.errors import Damaged
from sidequest.files import npz_bytes, read_npz, write_atomically

PREDICTIONS = "predictions.npz"


def write_predictions(path: Path, predictions: Mapping[str, Any]) -> None:
    """predictions: by task, an array with one entry per row, or a list of one array per row."""
    arrays = {"tasks": np.array(list(predictions), dtype=np.str_)}
    for number, values in enumerate(predictions.values()):
        if isinstance(values, np.ndarray) and values.dtype != object:
            arrays[str(number)] = _compact(values)
            continue
        rows = [np.asarray(row) for row in values]
        arrays[str(number)] = _compact(np.concatenate(rows) if rows else np.zeros(0, dtype=np.int64))
        arrays[f"{number}-lengths"] = _compact(np.array([len(row) for row in rows], dtype=np.int64))
    write_atomically(path, npz_bytes(arrays, compress=True))


def read_predictions(path: Path) -> dict[str, Any]:
    """As they were given to `write_predictions`, whole numbers as int64. A damaged or missing file is a ValueError."""
    try:
        arrays = read_npz(path, must_be_sealed=False)  # older ones have no seal
        return {str(task): _rows(arrays, number) for number, task in enumerate(arrays["tasks"])}
    except (Damaged, OSError, KeyError, TypeError, IndexError) as error:
        raise ValueError(f"{path}: not predictions: {type(error).__name__}: {error}") from None


def _rows(arrays: Mapping[str, np.ndarray], number: int) -> Any:
    values = arrays[str(number)]
    values = values.astype(np.int64) if np.issubdtype(values.dtype, np.integer) else values
    if f"{number}-lengths" not in arrays:
        return values
    lengths = arrays[f"{number}-lengths"].astype(np.int64)
    return np.split(values, np.cumsum(lengths)[:-1]) if len(lengths) else []


def _compact(values: np.ndarray) -> np.ndarray:
    """Whole numbers in the smallest type that holds them."""
    if not np.issubdtype(values.dtype, np.integer) or not values.size:
        return values
    return values.astype(np.promote_types(np.min_scalar_type(values.min()), np.min_scalar_type(values.max())))
