"""One store for everything that is computed once and kept by content: trials, final trainings, importances of heads, read-outs,
rankings, images and fingerprints.

The key of an entry is a digest of all that decides it. An entry is a directory: `entry.json` holds its plain data and the digests
of the files beside it. It takes its name when it is whole, so any number of processes may share a store. While one process makes
an entry, others that need it wait; where the file system has no locks, they make it too. A damaged entry is made again.

With `SIDEQUEST_STORE` an entry is also kept at a URL, where other machines find it (`shared_blobs.py`).

(States of frozen encoders are millions of small items, in shards of their own: `models/store.py`.)
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sidequest.errors import Damaged
from sidequest.files import (
    atomic_directory,
    cache_directory,
    check_files,
    file_digest,
    file_digests,
    read_json,
    remove_forgotten,
    remove_parts,
    write_json,
)
from sidequest.locks import locked, remove_stale
from sidequest.paths import check_output_directory
from sidequest.shared_blobs import shared_blobs

ENTRY = "entry.json"
ARRAYS = "arrays.npz"

Make = Callable[[Path], Mapping[str, Any]]


@dataclass(frozen=True)
class Entry:
    """data: plain data. made: just now, instead of found."""

    directory: Path
    data: Mapping[str, Any]
    made: bool = False

    def arrays(self) -> dict[str, np.ndarray]:
        """What `save_arrays` wrote."""
        with np.load(self.directory / ARRAYS, allow_pickle=False) as stored:
            return dict(stored)


class ContentStore:
    """Entries of one kind. root: the cache directory, unless said otherwise."""

    def __init__(self, kind: str, root: Path | None = None) -> None:
        self.directory = (root if root is not None else cache_directory()) / kind

    def get(self, key: str) -> Entry | None:
        """None: there is no such entry, or it is damaged."""
        entry = self._read(key)
        if entry is None and (remote := shared_blobs()) is not None and remote.fetch(self._name(key), self.place(key)):
            entry = self._read(key)
        return entry

    def _read(self, key: str) -> Entry | None:
        place = self.place(key)
        try:
            record = read_json(place / ENTRY, must_be_sealed=True)
            if not isinstance(record, dict) or record.get("key") != key:
                return None
            check_files(place, record["files"])
            return Entry(place, record["data"])
        except (Damaged, OSError, KeyError):
            return None

    def put(self, key: str, make: Make) -> Entry:
        """Write an entry, if it is not there or damaged. make: fills a directory with files and gives the plain data."""
        if (entry := self.get(key)) is not None:  # a second writer would only add a chance to be killed
            return entry
        with atomic_directory(self.place(key)) as fresh:
            data = make(fresh)
            write_json(fresh / ENTRY, {"key": key, "data": data, "files": file_digests(fresh)})
        if (remote := shared_blobs()) is not None:
            remote.send(self.place(key), self._name(key))
        return Entry(self.place(key), data, made=True)

    def get_or_make(self, key: str, make: Make) -> Entry:
        """The entry, made by one process if it is not there."""
        entry, lock = self.get(key), self.place(key).with_suffix(".lock")
        if entry is not None:
            remove_stale(lock)  # its maker may have been killed before it could
            return entry
        with locked(lock):
            return self.get(key) or self.put(key, make)  # another process may have been at it

    def place(self, key: str) -> Path:
        """The directory of an entry, whether it is there or not."""
        return self.directory / key[:2] / key

    def _name(self, key: str) -> str:
        return f"{self.directory.name}/{key[:2]}/{key}"


SHELVES = ("*/??", "states/*", "discriminators/*/*/*/??")  # where entries lie, in the cache directory


def sweep(*, again: bool = False) -> None:
    """Remove what killed processes have left: parts and locks in the cache, temporary directories. Once in a process, unless
    `again`. Before any work, a cache that cannot be written is refused."""
    if again:
        _sweep.cache_clear()
    else:
        check_output_directory(cache_directory(), "SIDEQUEST_CACHE")
    _sweep(cache_directory())


@functools.cache
def _sweep(directory: Path) -> None:
    remove_forgotten()
    for shelf in (shelf for pattern in SHELVES for shelf in directory.glob(pattern)):
        remove_parts(shelf)
        for lock in shelf.glob("*.lock"):
            remove_stale(lock)


def save_arrays(directory: Path, arrays: Mapping[str, Any]) -> None:
    """The arrays of an entry; no objects. Not flushed to disk: what a crash cuts off does not fit its digest."""
    with (directory / ARRAYS).open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)


def remembered_digest(path: Path) -> str:
    """The SHA-256 of a file, remembered by (path, size, time of change) so that large files are read once."""
    path = path.resolve()
    facts = path.stat()
    key = hashlib.sha256(f"{path}\0{facts.st_size}\0{facts.st_mtime_ns}".encode()).hexdigest()
    return str(ContentStore("fingerprints").get_or_make(key, lambda _: {"sha256": file_digest(path)}).data["sha256"])
