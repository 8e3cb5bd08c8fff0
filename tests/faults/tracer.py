"""Sees the file operations of a run, and can end it at any of them.

It stands between the program and the operating system: `os.open`, `open`, `os.replace`, `os.link`, `os.mkdir`, `os.fsync` and
their kind are replaced in the process, so the operations of sidequest and of the Python packages that it uses are seen, and those
of compiled code (safetensors' own writer of exported encoders) are not. Only operations that change something count, and only
under the watched folders. With a plan, operation number `at` is done otherwise:

kill before | kill after   SIGKILL before or after it
kill torn                  a write of which half arrives, then SIGKILL
stop                       SIGSTOP after it
terminate                  SIGTERM after it, as a cluster sends it
ENOSPC, EROFS, EACCES      it and all that follow fail with this error, as on a full or read-only disk

A plan holds for the process that is started (`of: parent`) or for the workers that it starts (`of: worker`): the first that
comes so far, because a worker that is lost is replaced. The others work on as if there were no plan.
"""

from __future__ import annotations

import builtins
import errno
import io
import json
import os
import signal
from typing import Any

PLAN = "SIDEQUEST_TEST_PLAN"  # for fresh processes: the plan as JSON, see `site/sitecustomize.py`

WRITING = os.O_CREAT | os.O_WRONLY | os.O_RDWR | os.O_TRUNC | os.O_APPEND
TWO_PATHS = ("replace", "rename", "link")
ONE_PATH = ("unlink", "remove", "mkdir", "rmdir", "truncate")
HANDLES = ("fsync", "ftruncate", "pwrite")
GROWING = {"open", "mkdir", "link", "fsync", "pwrite"}  # what a full disk refuses


class Tracer:
    """Counts, writes down and interrupts. roots: the watched folders."""

    def __init__(
        self,
        roots: list[str],
        log: str | None = None,
        at: int | None = None,
        do: str = "kill before",
        of: str = "parent",
    ) -> None:
        self.roots = [os.path.realpath(root) + os.sep for root in roots]
        self.log = None if log is None else os.open(log, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o666)
        self.at, self.do, self.of = at, do, of
        self.count, self.process, self.inside = 0, os.getpid(), False
        self.due = False  # whether this operation is the one of the plan
        self.once = os.path.join(os.path.dirname(roots[0]), "done-once")

    def install(self) -> None:
        for name in (*TWO_PATHS, *ONE_PATH, *HANDLES):
            setattr(os, name, self._wrapped(name, getattr(os, name)))
        os.open = self._wrapped_os_open(os.open)  # type: ignore[assignment]
        builtins.open = io.open = self._wrapped_open(io.open)  # type: ignore[assignment]

    def _wrapped(self, name: str, function: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            return self._do(name, self._place(name, args, kwargs), lambda: function(*args, **kwargs))

        return call

    def _wrapped_os_open(self, function: Any) -> Any:
        def call(path: Any, flags: int, *args: Any, **kwargs: Any) -> Any:
            if not flags & WRITING:
                return function(path, flags, *args, **kwargs)
            return self._do("open", self._path(path, kwargs), lambda: function(path, flags, *args, **kwargs))

        return call

    def _wrapped_open(self, function: Any) -> Any:
        def call(path: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
            if not set(mode) & set("wax+") or isinstance(path, int):
                return function(path, mode, *args, **kwargs)
            found = self._do("open", self._path(path, {}), lambda: function(path, mode, *args, **kwargs))
            return _Torn(found) if self.due and self.do == "kill torn" else found

        return call

    def _place(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        if name in HANDLES:
            return os.readlink(f"/proc/self/fd/{args[0] if isinstance(args[0], int) else args[0].fileno()}")
        where = kwargs.get("dir_fd", kwargs.get("dst_dir_fd"))
        return self._path(args[1] if name in TWO_PATHS else args[0], {"dir_fd": where})

    @staticmethod
    def _path(path: Any, kwargs: dict[str, Any]) -> str:
        if isinstance(path, int):
            return os.readlink(f"/proc/self/fd/{path}")
        text = os.fsdecode(path)
        if (folder := kwargs.get("dir_fd")) is not None:
            text = os.path.join(os.readlink(f"/proc/self/fd/{folder}"), text)
        return os.path.join(os.path.realpath(os.path.dirname(text) or "."), os.path.basename(text))

    def _do(self, name: str, path: str, function: Any) -> Any:
        if self.inside:
            return function()
        self.due = False
        if not any(path.startswith(root) for root in self.roots):
            return function()
        self.inside = True  # what Python does inside an operation is part of it
        try:
            self.count += 1
            self.due = self._is_due()
            if self.due:
                self._before(name, path)
            if self._broken() and name in GROWING:
                raise OSError(getattr(errno, self.do), os.strerror(getattr(errno, self.do)), path)
            found = function()
            self._note(name, path)
            if self.due:
                self._after()
            return found
        finally:
            self.inside = False

    def _mine(self) -> bool:
        return (os.getpid() == self.process) == (self.of == "parent")

    def _is_due(self) -> bool:
        """Whether the plan is about this operation, and no other worker has come to it before."""
        if self.count != self.at or not self._mine() or self.do.startswith("E"):
            return False
        if self.of == "worker":
            try:
                os.close(os.open(self.once, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            except FileExistsError:
                return False
        return True

    def _broken(self) -> bool:
        return self.at is not None and self.do.startswith("E") and self.count >= self.at and self._mine()

    def _before(self, name: str, path: str) -> None:
        if self.do == "kill torn" and name == "fsync" and os.path.isfile(path):  # as if half of the file had arrived
            handle = os.open(path, os.O_RDWR)
            os.ftruncate(handle, os.fstat(handle).st_size // 2)
        if self.do == "kill before" or (self.do == "kill torn" and name != "open"):
            kill()

    def _after(self) -> None:
        if self.do == "kill after":
            kill()
        if self.do in ("stop", "terminate"):
            os.kill(os.getpid(), signal.SIGSTOP if self.do == "stop" else signal.SIGTERM)

    def _note(self, name: str, path: str) -> None:
        if self.log is not None:
            who = "parent" if os.getpid() == self.process else "worker"
            os.write(self.log, f"{who} {self.count} {name} {path}\n".encode())


class _Torn:
    """An open file of whose next write half arrives."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __enter__(self) -> _Torn:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def write(self, data: Any) -> int:
        self._file.write(data[: len(data) // 2])
        self._file.flush()
        kill()
        return 0


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def install_from_environment() -> None:
    """In a fresh process: the parent, or a worker that it has spawned."""
    if text := os.environ.get(PLAN):
        plan = json.loads(text)
        begun_by = plan.pop("process", None)
        tracer = Tracer(**plan)
        if begun_by is None:  # workers see whose they are
            os.environ[PLAN] = json.dumps(plan | {"process": os.getpid()})
        else:
            tracer.process = begun_by
        tracer.install()
