"""Worker processes on this machine: spawned, not forked (torch's thread pools do not survive a fork), one thread each. A
worker gets what is common to all jobs once, when it starts."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

from sidequest.errors import WorldError
from sidequest.search.executors import Job, Result
from sidequest.search.workers import Answer, Worker, WorkerSession

ENDING = 5.0  # seconds that an idle worker has to end by itself
DEVICE = "SIDEQUEST_DEVICE"


@dataclass
class _Process:
    process: Any  # of multiprocessing's spawn context
    connection: Connection


class ProcessSession(WorkerSession[Job, Result]):
    _count = 0

    def _start(self) -> _Process:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        number, self._count = self._count, self._count + 1
        process = context.Process(
            target=_work, args=(theirs, self._function, self._common, number % self.slots), daemon=False
        )
        with _one_thread_each():
            process.start()
        theirs.close()  # so that the worker's end closes with the worker
        return _Process(process, ours)

    def _send(self, handle: _Process, job: Job) -> None:
        handle.connection.send(job)

    def _poll(
        self, workers: Sequence[Worker[Job]], seconds: float | None
    ) -> Iterator[tuple[Worker[Job], Answer | None]]:
        by_connection = {worker.handle.connection: worker for worker in workers}
        for connection in wait(list(by_connection), seconds):
            worker = by_connection[connection]
            try:
                yield worker, worker.handle.connection.recv()
            except (EOFError, OSError):
                yield worker, None

    def _end(self, handle: _Process, *, now: bool) -> None:
        handle.connection.close()  # an idle worker ends when nothing can come any more
        if now:
            handle.process.kill()
        handle.process.join(ENDING)
        if handle.process.exitcode is None:
            handle.process.kill()
            handle.process.join()


class _one_thread_each:  # noqa: N801 - reads as a phrase where it is used
    """The thread count of OpenMP and BLAS is read when a process starts: set it for the children only."""

    NAMES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")

    def __enter__(self) -> None:
        self._before = {name: os.environ.get(name) for name in (*self.NAMES, "TOKENIZERS_PARALLELISM")}
        os.environ.update(dict.fromkeys(self.NAMES, "1"), TOKENIZERS_PARALLELISM="false")

    def __exit__(self, *_: object) -> None:
        for name, value in self._before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


# In a worker


def _work(connection: Connection, function: Callable[[Any, Any], Any], common: Any, number: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _choose_device(number)
    connection.send(Answer(name=f"process {os.getpid()}"))
    while True:
        try:
            job = connection.recv()
        except (EOFError, OSError):
            return
        connection.send(answer(function, common, job))


def answer(function: Callable[[Any, Any], Any], common: Any, job: Any) -> Answer:
    """Run a job; what it raises is an answer too."""
    try:
        return Answer(value=function(common, job))
    except Exception as error:
        return Answer(error=portable(error))


def portable(error: Exception) -> Exception:
    """An error that survives the way to another process: itself, or its words where it cannot be sent."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return WorldError(f"{type(error).__name__}: {error}")
    return error


def _choose_device(number: int) -> None:
    """One GPU per worker, in turn, where there are several and none was asked for."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "-")
    if os.environ.get(DEVICE) or visible == "" or not os.path.exists("/proc/driver/nvidia"):
        return
    import torch

    if (count := torch.cuda.device_count()) > 1:
        os.environ[DEVICE] = f"cuda:{number % count}"


def _end_with_parent() -> None:
    """A worker of a killed parent would wait for work forever, and train on for nobody."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
