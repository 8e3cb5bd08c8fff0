"""Locks between processes: the operating system's own (`flock`) on a small file that says who holds it.

Such a lock ends with the process that holds it, however that ends, so a file that a killed process left behind stops nobody. The
file is removed when the lock is given back. Where the file system has no locks, the number of the process in the file decides.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sidequest.errors import RunBusy

try:
    import fcntl
except ImportError:  # not a Unix system
    fcntl = None  # type: ignore[assignment]


@contextmanager
def locked(path: Path, *, patience: float | None = None, what: str = "") -> Iterator[None]:
    """Hold the lock of a file, made if need be.

    patience: seconds to wait before `RunBusy` says who is working on `what`; None: wait forever.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = _acquire(path, patience, what)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(handle)


def remove_stale(path: Path) -> None:
    """Remove the lock file of a process that is gone."""
    if path.exists() and not path.is_symlink():
        with contextlib.suppress(RunBusy, OSError), locked(path, patience=0):
            pass


def _acquire(path: Path, patience: float | None, what: str) -> int:
    """The open lock file, locked and still in its place."""
    begun = time.monotonic()
    while True:
        handle = os.open(path, os.O_CREAT | os.O_RDWR | getattr(os, "O_NOFOLLOW", 0), 0o666)
        try:
            if _try_lock(handle) and _in_its_place(path, handle):
                os.ftruncate(handle, 0)
                os.pwrite(handle, json.dumps(_self()).encode(), 0)
                return handle
            holder = _holder(handle)
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)
        if patience is not None and time.monotonic() - begun >= patience:
            raise RunBusy(
                f"{what}: process {holder.get('process', '?')} on {holder.get('host', '?')} is working there. "
                "Wait for it to end, or give another place"
            )
        time.sleep(0.02)


def _in_its_place(path: Path, handle: int) -> bool:
    """Its last holder may have removed the file before this process had the lock."""
    with contextlib.suppress(FileNotFoundError):
        return os.path.samestat(os.stat(path), os.fstat(handle))
    return False


def _try_lock(handle: int) -> bool:
    try:
        if fcntl is None:
            raise OSError
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # no locks here
        holder = _holder(handle)
        return holder in ({}, _self()) or (holder.get("host") == socket.gethostname() and not _alive(holder["process"]))
    return True


def _self() -> dict[str, Any]:
    return {"host": socket.gethostname(), "process": os.getpid()}


def _holder(handle: int) -> dict[str, Any]:
    try:
        holder = json.loads(os.pread(handle, 1000, 0))
    except (OSError, ValueError):
        return {}
    return holder if isinstance(holder, dict) and isinstance(holder.get("process"), int) else {}


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True
