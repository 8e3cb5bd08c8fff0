"""Head importances kept by content: what a task's rows, the encoder, the settings and the code decide is computed once.

One directory per entry, named by the key: `ids.npy` and `values.npy` (float32 [rows, layers, heads], 4 bytes per row and head),
`total.npy` (float64 [layers, heads]) and `record.json`. It is written under another name and renamed when it is whole, so any
number of processes may share the cache. While one computes an entry, others that need it wait, where the system has file locks;
elsewhere they compute it too.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sidequest.errors import Damaged
from sidequest.files import (
    atomic_directory,
    cache_directory,
    check_files,
    digest,
    file_digests,
    npy_bytes,
    read_json,
    write_atomically,
    write_json,
)
from sidequest.learning.meter import Meter
from sidequest.learning.protocol import Warmup
from sidequest.locks import locked

if TYPE_CHECKING:  # torch is not needed to know where importances are
    from sidequest.learning.torch.head_importance import Computation, RowImportances

RECORD = "record.json"
CHUNK = 4096  # rows read at a time


@dataclass(frozen=True)
class StoredHeads:
    """One entry on disk."""

    directory: Path
    meter: Meter

    def total(self) -> np.ndarray:
        return np.load(self.directory / "total.npy", allow_pickle=False)

    def rows(self) -> RowImportances:
        ids = np.load(self.directory / "ids.npy", allow_pickle=False)
        values = np.load(self.directory / "values.npy", mmap_mode="r", allow_pickle=False)
        for start in range(0, len(ids), CHUNK):
            yield ids[start : start + CHUNK], np.array(values[start : start + CHUNK])


class EvidenceCache:
    """Implements `sidequest.learning.torch.head_importance.HeadCache`.

    facts: all about a task's data, the model, training and the code that decides its importances.
    reused, computed: names of the tasks that were found and of those that were not, in the order they were asked for. They
        depend on what ran before, so no recipe has them.
    """

    def __init__(self, facts: Callable[[str], Any], directory: Path | None = None) -> None:
        self._facts = facts
        self._directory = directory if directory is not None else cache_directory() / "heads"
        self.reused: list[str] = []
        self.computed: list[str] = []
        self._entries: dict[Path, StoredHeads] = {}  # read and found to be whole

    def of(self, task: str, warmup: Warmup, compute: Computation) -> StoredHeads:
        """The entry of a task, computed if it is not there."""
        key = digest({"warmup": asdict(warmup), "facts": self._facts(task)})
        place = self._directory / key[:2] / key
        if place not in self._entries:
            entry, found = _read(place), True
            if entry is None:
                with locked(place.with_suffix(".lock")):
                    entry = _read(place)  # another process may have been at it
                    if entry is None:
                        entry, found = _write(place, task, compute), False
            if task not in self.reused + self.computed:
                (self.reused if found else self.computed).append(task)
            self._entries[place] = entry
        return self._entries[place]

    def summary(self) -> dict[str, list[str]]:
        """What was found and what was computed; empty if nothing was asked for."""
        named = {"reused": list(self.reused), "computed": list(self.computed)}
        return named if self.reused or self.computed else {}


def _write(place: Path, task: str, compute: Computation) -> StoredHeads:
    meter = Meter()
    with atomic_directory(place) as fresh:
        ids, total = _store_values(fresh / "values.npy", compute(meter))
        write_atomically(fresh / "ids.npy", npy_bytes(ids))
        write_atomically(fresh / "total.npy", npy_bytes(total))
        write_json(fresh / RECORD, {"task": task, "meter": meter.to_json(), "files": file_digests(fresh)})
    return StoredHeads(place, meter)


def _read(place: Path) -> StoredHeads | None:
    """None: it is not there, or damaged."""
    try:
        record = read_json(place / RECORD, must_be_sealed=True)
        check_files(place, record["files"])
    except (Damaged, OSError):
        return None
    return StoredHeads(place, Meter.from_json(record["meter"]))


def _store_values(path: Path, rows: Iterator[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """Write the chunks one after another as one array, without holding them; their ids, and their sum."""
    ids: list[np.ndarray] = []
    total: Any = 0.0
    count, tail = 0, (0, 0)
    with path.open("wb") as file:
        for chunk_ids, values in rows:
            if not ids:
                _header(file, 0, values.shape[1:])  # numpy leaves room in it for any number of rows
            ids.append(chunk_ids)
            total = total + values.sum(axis=0, dtype=np.float64)
            file.write(np.ascontiguousarray(values, dtype=np.float32).tobytes())
            count, tail = count + len(values), values.shape[1:]
        file.seek(0)
        _header(file, count, tail)
        file.flush()
        os.fsync(file.fileno())
    return np.concatenate(ids) if ids else np.zeros(0, dtype=np.int64), np.asarray(total)


def _header(file: Any, count: int, tail: tuple[int, ...]) -> None:
    shape = (count, *tail)
    np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": shape})
