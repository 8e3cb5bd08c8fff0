"""Arrays kept on disk under the hash of what they were computed from.

A store is a directory of shards. A shard is written once and never changed: `<name>.npy` holds the values of many items one
after another, `<name>.npz` says which items and where. Both are renamed into place, the values first, so that a shard which can
be seen is whole; a shard that does not fit its digest is left alone, and its items are computed again. Any number of processes
may read and write at once; at worst they store the same item twice.
"""

from __future__ import annotations

import io
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from sidequest.files import atomic_file, write_atomically
from sidequest.locks import locked, remove_stale
from sidequest.store import remembered_digest

ORPHAN_AGE = 86_400  # seconds after which values without an index are the remains of a crash, not of a write under way


def item_key(text: str) -> bytes:
    """128 bits that stand for a text: a collision among a billion texts has a chance below 1e-20."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


@dataclass(frozen=True)
class Rows:
    """Where items lie. Item i is `shards[shard[i]][start[i] : start[i] + lengths[i]]`."""

    shards: list[np.ndarray]
    shard: np.ndarray
    start: np.ndarray
    lengths: np.ndarray

    def __len__(self) -> int:
        return len(self.shard)

    def gather(self, positions: np.ndarray) -> np.ndarray:
        """The values of these items one after another, [sum of lengths, ...]."""
        lengths = self.lengths[positions]
        ends = np.cumsum(lengths)
        like = self.shards[0]
        out = np.empty((int(ends[-1]) if len(ends) else 0, *like.shape[1:]), dtype=like.dtype)
        for position, end, length in zip(positions, ends, lengths, strict=True):
            first = self.start[position]
            out[end - length : end] = self.shards[self.shard[position]][first : first + length]
        return out

    def table(self) -> tuple[np.ndarray, np.ndarray]:
        """For items of length 1: an array and the row of each item in it, so that a batch is one indexing operation.

        The memory map itself where one shard holds everything, a copy in memory otherwise.
        """
        if len(self) and len(np.unique(self.shard)) == 1:
            return self.shards[self.shard[0]], self.start
        return self.gather(np.arange(len(self))), np.arange(len(self))


class Store:
    """Items of one kind: values [length, *tail] each. directory: None keeps them in memory only."""

    def __init__(self, directory: Path | None, tail: tuple[int, ...], dtype: type[np.generic]) -> None:
        self.directory, self.tail, self.dtype = directory, tail, dtype
        self._shards: list[np.ndarray] = []
        self._seen: set[str] = set()
        self._keys = np.zeros(0, dtype="S16")
        self._places = np.zeros((0, 3), dtype=np.int64)  # shard, start, length, in the order of the sorted keys
        self._alone = False  # whether no other process may be writing
        if directory is not None:
            remove_stale(directory / ".lock")
        self.refresh()

    def refresh(self) -> None:
        """Take in the shards that other processes have written since."""
        if self.directory is None:
            return
        found = []
        for path in sorted(self.directory.glob("*.npz")):
            if path.name not in self._seen:
                self._seen.add(path.name)
                try:
                    with np.load(path, allow_pickle=False) as index:
                        keys, lengths = index["keys"], index["lengths"]
                        wanted = str(index["sha256"]) if "sha256" in index else None  # older shards have no digest
                    if wanted is not None and remembered_digest(path.with_suffix(".npy")) != wanted:
                        continue
                    values = np.load(path.with_suffix(".npy"), mmap_mode="r", allow_pickle=False)
                except (OSError, ValueError, KeyError, EOFError, BadZipFile):
                    continue  # damaged or deleted: its items are computed again
                if values.shape == (int(lengths.sum()), *self.tail) and values.dtype == self.dtype:
                    found.append((keys, lengths, values))
        self._add(found)

    def find(self, keys: np.ndarray) -> np.ndarray:
        """int64 [n, 3]: shard, start and length of each item; shard −1 where it is missing."""
        out = np.full((len(keys), 3), -1, dtype=np.int64)
        if len(self._keys):
            at = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
            found = self._keys[at] == keys
            out[found] = self._places[at[found]]
        return out

    def rows(self, keys: np.ndarray) -> Rows:
        """All these items, which must be there."""
        places = self.find(keys)
        assert (places[:, 0] >= 0).all(), "an item was asked for before it was stored"
        shards = self._shards or [np.zeros((0, *self.tail), dtype=self.dtype)]
        return Rows(shards, places[:, 0], places[:, 1], places[:, 2])

    def append(self, keys: np.ndarray, lengths: np.ndarray, values: np.ndarray) -> None:
        """Store items: keys S16 [n], lengths int64 [n], values [sum of lengths, *tail]."""
        if self.directory is None:
            self._add([(keys, lengths, values)])
            return
        self.directory.mkdir(parents=True, exist_ok=True)
        self._sweep()
        name = uuid.uuid4().hex
        values_file = self.directory / f"{name}.npy"
        with atomic_file(values_file) as file:
            np.save(file, values, allow_pickle=False)
        index = io.BytesIO()
        np.savez(index, keys=keys, lengths=lengths, sha256=np.str_(remembered_digest(values_file)))
        write_atomically(self.directory / f"{name}.npz", index.getvalue())
        self.refresh()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """One process computes while the others wait, and then find what they need. Where locks do not exist, all compute."""
        if self.directory is None:
            yield
            return
        with locked(self.directory / ".lock"):
            self._alone = True
            try:
                self.refresh()
                yield
            finally:
                self._alone = False

    def _add(self, shards: list[tuple[np.ndarray, np.ndarray, np.ndarray]]) -> None:
        if not shards:
            return
        keys, places = [self._keys], [self._places]
        for shard_keys, lengths, values in shards:
            starts = np.cumsum(lengths) - lengths
            keys.append(shard_keys)
            places.append(np.stack([np.full(len(shard_keys), len(self._shards)), starts, lengths], axis=1))
            self._shards.append(values)
        self._keys, first = np.unique(np.concatenate(keys), return_index=True)
        self._places = np.concatenate(places)[first]

    def _sweep(self) -> None:
        assert self.directory is not None
        for path in [*self.directory.glob("*.npy"), *self.directory.glob(".*.*")]:
            try:
                old = self._alone or time.time() - path.stat().st_mtime > ORPHAN_AGE
                if old and not path.with_suffix(".npz").exists() and path.name != ".lock":
                    path.unlink()
            except OSError:  # another process was faster
                continue
