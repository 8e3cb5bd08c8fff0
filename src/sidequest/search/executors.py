"""Where work runs: this process, or several worker processes with one torch thread each.

On a CPU two processes with one thread beat one process with two threads, and two with two are a disaster; so a worker
always takes one thread. Workers are spawned, not forked (torch's thread pools do not survive a fork), and get what is
common to all jobs once.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from typing import Any, TypeVar

from sidequest.methods.base import Plan
from sidequest.search.trials import TrialResult, TrialRunner

Job = TypeVar("Job")
Result = TypeVar("Result")

_common: Any = None  # in a worker: what `run_jobs` was given as `common`


def run_jobs(
    function: Callable[[Any, Job], Result], common: Any, jobs: Sequence[Job], workers: int = 1
) -> Iterator[tuple[int, Result]]:
    """Yield (index, function(common, job)) for every job, as they end; in order with one worker.

    function: a module-level function. An error in a job stops the rest and is raised here. A job that runs in this process has
    one torch thread too, so that its result does not depend on the number of workers; the caller's threads are given back.
    """
    if workers <= 1 or len(jobs) <= 1:
        for index, job in enumerate(jobs):
            with one_torch_thread():
                result = function(common, job)
            yield index, result
        return
    with _one_thread_each():
        pool = ProcessPoolExecutor(
            min(workers, len(jobs)), multiprocessing.get_context("spawn"), initializer=_start, initargs=(common,)
        )
        wait = True
        try:
            waiting = {pool.submit(_call, function, job): index for index, job in enumerate(jobs)}
            for future in as_completed(waiting):
                yield waiting[future], future.result()
        except KeyboardInterrupt:
            wait = False  # who stops a run does not wait for the jobs that are under way
            raise
        finally:
            pool.shutdown(wait=wait, cancel_futures=True)


@contextmanager
def one_torch_thread() -> Iterator[None]:
    """One torch thread for a while, in this process."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


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


def _start(common: Any) -> None:
    global _common
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _common = common


def _end_with_parent() -> None:
    """A worker of a killed parent would wait for work for ever, and train on for nobody."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _call(function: Callable[[Any, Job], Result], job: Job) -> Result:
    return function(_common, job)


class ProcessTrials:
    """Runs plans in worker processes that live as long as this object: a worker loads its data and model once.

    make: a picklable function that makes, inside a worker, the runner of its plans. Results come in the order of the
    plans. Use it in a `with` statement.
    """

    def __init__(self, make: Callable[[], TrialRunner], workers: int) -> None:
        with _one_thread_each():
            self._pool = ProcessPoolExecutor(
                workers, multiprocessing.get_context("spawn"), initializer=_start, initargs=(make,)
            )

    def run(self, plans: Sequence[Plan]) -> list[TrialResult]:
        with _one_thread_each():  # workers start when there is work for them
            waiting = [self._pool.submit(_run_plan, plan) for plan in plans]
        return [future.result() for future in waiting]

    def __enter__(self) -> ProcessTrials:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._pool.shutdown(wait=kind is not KeyboardInterrupt, cancel_futures=True)


_runner: TrialRunner | None = None  # in a worker of `ProcessTrials`: what its first plan made


def _run_plan(plan: Plan) -> TrialResult:
    global _runner
    if _runner is None:
        _runner = _common()
    return _runner.run([plan])[0]
