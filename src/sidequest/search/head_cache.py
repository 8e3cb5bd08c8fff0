"""Head importances kept by content: what a task's rows, the encoder, the settings and the code decide is computed once.

An entry holds `ids.npy` and `values.npy` (float32 [rows, layers, heads], 4 bytes per row and head), `total.npy` (float64 [layers,
heads]) and what it cost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sidequest.files import digest
from sidequest.learning.meter import Meter
from sidequest.learning.protocol import Warmup
from sidequest.store import ContentStore
from sidequest.threads import one_torch_thread

if TYPE_CHECKING:  # torch is not needed to know where importances are
    from sidequest.learning.torch.head_importance import Computation, RowImportances

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


class HeadStore:
    """Implements `sidequest.learning.torch.head_importance.HeadCache`.

    facts: all about a task's data, the model, training and the code that decides its importances.
    reused, computed: names of the tasks that were found and of those that were not, in the order they were asked for. They
        depend on what ran before, so no recipe has them.
    """

    def __init__(self, facts: Callable[[str], Any], root: Path | None = None) -> None:
        self._facts = facts
        self._store = ContentStore("heads", root)
        self.reused: list[str] = []
        self.computed: list[str] = []
        self._entries: dict[str, StoredHeads] = {}  # read and known to be whole

    def of(self, task: str, warmup: Warmup, compute: Computation) -> StoredHeads:
        """The entry of a task, computed if it is not there."""
        key = self._key(task, warmup)
        if key not in self._entries:
            entry = self._store.get_or_make(key, partial(_make, task, compute))
            if task not in self.reused + self.computed:
                (self.computed if entry.made else self.reused).append(task)
            self._entries[key] = StoredHeads(entry.directory, Meter.from_json(dict(entry.data["meter"])))
        return self._entries[key]

    def place(self, task: str, warmup: Warmup) -> Path:
        """The directory of an entry, whether it is there or not."""
        return self._store.place(self._key(task, warmup))

    def has(self, task: str, warmup: Warmup) -> bool:
        return self._store.get(self._key(task, warmup)) is not None

    def note_computed(self, task: str) -> None:
        """A worker has computed it for this run."""
        if task not in self.reused + self.computed:
            self.computed.append(task)

    def _key(self, task: str, warmup: Warmup) -> str:
        return digest({"warmup": asdict(warmup), "facts": self._facts(task)})

    def summary(self) -> dict[str, list[str]]:
        """What was found and what was computed; empty if nothing was asked for."""
        named = {"reused": list(self.reused), "computed": list(self.computed)}
        return named if self.reused or self.computed else {}


def _make(task: str, compute: Computation, directory: Path) -> dict[str, Any]:
    meter = Meter()
    with one_torch_thread():  # as in a worker
        ids, total = _store_values(directory / "values.npy", compute(meter))
    np.save(directory / "ids.npy", ids, allow_pickle=False)
    np.save(directory / "total.npy", total, allow_pickle=False)
    return {"task": task, "meter": meter.to_json()}


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
    return np.concatenate(ids) if ids else np.zeros(0, dtype=np.int64), np.asarray(total)


def _header(file: Any, count: int, tail: tuple[int, ...]) -> None:
    shape = (count, *tail)
    np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": shape})
