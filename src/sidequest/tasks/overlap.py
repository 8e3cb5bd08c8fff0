"""Which rows have the same content: exact codes for the normalised inputs of many splits at once."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from dataclasses import replace
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sidequest.errors import SettingsError
from sidequest.tasks.examples import Examples
from sidequest.tasks.task import Task

Key = TypeVar("Key", bound=Hashable)
PART_END = "\u241f"  # "symbol for unit separator": no white space, and in no real text


def content_codes(splits: Mapping[Key, Examples]) -> dict[Key, np.ndarray]:
    """int64 [n] per split: two rows, of any splits, have equal codes exactly if their inputs are equal after normalising.

    Texts are compared in lower case with single spaces. A sentence to tag is its words with spaces, so that it can equal a text;
    a pair is both its texts. Images are compared byte by byte.
    """
    codes: dict[Key, np.ndarray] = {}
    for images in (False, True):
        group = {key: rows for key, rows in splits.items() if ("image" in rows.columns) is images and len(rows)}
        if not group:
            continue
        keys = [_image_keys(rows) if images else _text_keys(rows) for rows in group.values()]
        coded = pa.concat_arrays(keys).dictionary_encode()
        all_codes = np.asarray(coded.indices, dtype=np.int64) + (1 << 40) * images  # images never equal texts
        ends = np.cumsum([len(part) for part in keys])
        codes.update(zip(group, np.split(all_codes, ends[:-1]), strict=True))
    return {key: codes.get(key, np.zeros(0, dtype=np.int64)) for key in splits}


def repeats(codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Positions of rows that repeat an earlier row, and the position of the first row that each repeats."""
    _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    repeated = np.flatnonzero(first[inverse] != np.arange(len(codes)))
    return repeated, first[inverse[repeated]]


def without_overlap(tasks: Mapping[str, Task], scored: Collection[str], *, own: bool) -> dict[str, Task]:
    """The tasks without those train rows whose inputs are a *select* or *report* row of a scored task.

    own: whether a scored task's own train rows are left out too, and its *select* rows that are *report* rows. Without it a
    task's own overlap is left alone, as published benchmarks have it.
    """
    codes = content_codes({(name, split): rows for name, task in tasks.items() for split, rows in task.splits.items()})
    kept: dict[str, Task] = {}
    for name, task in tasks.items():
        judged = [other for other in scored if own or other != name]
        places = {"train": [(other, split) for other in judged for split in ("select", "report")]}
        if name in judged:
            places["select"] = [(name, "report")]
        kept[name] = task
        for split, others in places.items():
            seen = [codes[place] for place in others if place in codes]
            stays = ~np.isin(codes[name, split], np.concatenate([np.zeros(0, dtype=np.int64), *seen]))
            if not stays.any():
                raise SettingsError(f"{name}: `drop_overlap:` leaves no {split} row")
            if not stays.all():
                kept[name] = _with_rows(kept[name], split, np.flatnonzero(stays), others)
    return kept


def _with_rows(task: Task, split: str, positions: np.ndarray, others: Collection[tuple[str, str]]) -> Task:
    rows = task.splits[split]
    names, splits = ({place[i]: None for place in others} for i in (0, 1))
    why = f"they are {' or '.join(splits)} rows of {', '.join(names)}"
    note = f"{split}: {len(rows) - len(positions)} rows left out, because {why}"
    return replace(task, splits={**task.splits, split: rows.take(positions)}, notes=(*task.notes, note))


def _text_keys(rows: Examples) -> pa.LargeStringArray:
    parts = []
    for name in ("text", "text_b", "tokens", "choices"):
        if name in rows.columns:
            column = rows.columns[name]
            if name == "tokens":
                column = pc.binary_join(column, " ")
            elif name == "choices":
                column = pc.binary_join(column, PART_END)
            parts.append(normalised(column))
    return pc.binary_join_element_wise(*parts, PART_END).cast(pa.large_string())


def normalised(texts: pa.StringArray) -> pa.StringArray:
    words = pc.utf8_split_whitespace(pc.utf8_trim_whitespace(pc.utf8_lower(texts)))
    return pc.binary_join(words, " ")


def _image_keys(rows: Examples) -> pa.LargeBinaryArray:
    images = np.ascontiguousarray(rows.columns["image"])
    width = images.nbytes // len(images)
    # The shape is part of the key: 2 × 8 and 4 × 4 pixels are different images with equal bytes.
    shape = f"{images.dtype}{images.shape[1:]}".encode()
    cells = pa.Array.from_buffers(pa.binary(width), len(images), [None, pa.py_buffer(images)]).cast(pa.large_binary())
    return pc.binary_join_element_wise(
        pa.scalar(shape, type=pa.large_binary()), cells, pa.scalar(b"", type=pa.large_binary())
    )
