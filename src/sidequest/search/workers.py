"""Sessions whose jobs run in workers of their own: what is the same for processes and for the actors of a Ray cluster.

A worker is starting, idle or busy. Jobs go to idle workers only: one that cannot start (a cluster that lost a node has no room
for it) holds nothing up. A worker that is lost is replaced, and its job goes to the front of the queue.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic

from sidequest.errors import WorldError
from sidequest.search.executors import (
    Ended,
    Executor,
    Job,
    Result,
    Running,
    Session,
    TimedOut,
    WorkerJournal,
    WorkerLost,
)
from sidequest.store import sweep

FAILED_STARTS = 5  # in a row, before it is said that workers cannot start


@dataclass
class _Queued(Generic[Job]):
    ticket: int
    job: Job
    label: str
    begun: int = 0  # how often


@dataclass
class Worker(Generic[Job]):
    """handle: what the kind of session knows it by. job: what it runs; None: it is idle, or still starting."""

    handle: Any
    name: str = ""
    ready: bool = False
    job: _Queued[Job] | None = None
    deadline: float | None = None


@dataclass(frozen=True)
class Answer:
    """What came from a worker: that it is ready (its name), or how its job ended."""

    name: str | None = None
    value: Any = None
    error: Exception | None = None


class WorkerSession(Session[Job, Result]):
    """The queue, lost workers and deadlines. Subclasses start, ask and end workers."""

    def __init__(
        self,
        executor: Executor,
        slots: int,
        function: Callable[[Any, Job], Result],
        common: Any,
        journal: WorkerJournal | None,
        running: Running | None,
    ) -> None:
        self.slots = slots
        self._executor, self._function, self._common = executor, function, common
        self._journal = journal or WorkerJournal(None)
        self._running = running
        self._queue: deque[_Queued[Job]] = deque()
        self._workers: list[Worker[Job]] = []
        self._ended: deque[Ended[Result]] = deque()
        self._cancelled: set[int] = set()
        self._tickets = 0
        self._failed_starts = 0
        self._cut_off = False  # whether a worker was ended at its work: it may have left something half-written

    # What a kind of worker must say

    @abstractmethod
    def _start(self) -> Any:
        """Begin to start a worker; gives its handle."""

    @abstractmethod
    def _send(self, handle: Any, job: Job) -> None:
        """Let an idle worker begin. Raises OSError if it is lost."""

    @abstractmethod
    def _poll(
        self, workers: Sequence[Worker[Job]], seconds: float | None
    ) -> Iterable[tuple[Worker[Job], Answer | None]]:
        """What came from starting and busy workers within this time; None for one that is lost."""

    @abstractmethod
    def _end(self, handle: Any, *, now: bool) -> None:
        """End a worker. now: whatever it does."""

    # The session

    def submit(self, job: Job, label: str = "") -> int:
        ticket = self._tickets
        self._tickets += 1
        self._queue.append(_Queued(ticket, job, label))
        self._give_out()
        return ticket

    def cancel(self, ticket: int) -> None:
        self._queue = deque(entry for entry in self._queue if entry.ticket != ticket)
        self._ended = deque(entry for entry in self._ended if entry.ticket != ticket)
        if any(worker.job is not None and worker.job.ticket == ticket for worker in self._workers):
            self._cancelled.add(ticket)

    def wait(self, seconds: float | None = None) -> Ended[Result] | None:
        until = None if seconds is None else time.monotonic() + seconds
        while not self._ended:
            self._give_out()
            if not self._queue and not any(worker.job for worker in self._workers):
                return None
            deadlines = [worker.deadline for worker in self._workers if worker.deadline is not None]
            first = min([*deadlines, *([] if until is None else [until])], default=None)
            listened = [worker for worker in self._workers if worker.job or not worker.ready]
            left = None if first is None else max(0.0, first - time.monotonic())
            for worker, answer in self._poll(listened, left):
                self._take(worker, answer)
            self._end_late()
            if until is not None and time.monotonic() >= until:
                break
        return self._ended.popleft() if self._ended else None

    def close(self, *, now: bool = False) -> None:
        self._queue.clear()
        for worker in self._workers:
            self._cut_off |= worker.job is not None
            self._end(worker.handle, now=now or worker.job is not None or not worker.ready)
        self._workers.clear()
        if self._cut_off:
            sweep(again=True)

    def _give_out(self) -> None:
        for worker in list(self._workers):
            if self._queue and worker.ready and worker.job is None:
                entry = self._queue.popleft()
                entry.begun += 1
                timeout = self._executor.timeout
                worker.job, worker.deadline = entry, None if timeout is None else time.monotonic() + timeout
                self._journal.write("begun", worker.name, entry.label, attempt=entry.begun)
                self._tell_running()
                try:
                    self._send(worker.handle, entry.job)
                except OSError:
                    self._lose(worker)
        busy = sum(worker.job is not None for worker in self._workers)
        wanted = min(self.slots, busy + len(self._queue))
        while len(self._workers) < wanted:
            self._workers.append(Worker(self._start()))

    def _take(self, worker: Worker[Job], answer: Answer | None) -> None:
        if answer is None:
            self._lose(worker)
        elif answer.name is not None:
            worker.name, worker.ready, self._failed_starts = answer.name, True, 0
        elif worker.job is not None:
            entry, worker.job, worker.deadline = worker.job, None, None
            self._finish(entry, worker.name, answer)

    def _finish(self, entry: _Queued[Job], where: str, answer: Answer) -> None:
        failure = {} if answer.error is None else {"error": (str(answer.error).splitlines() or [""])[0]}
        self._journal.write("ended" if answer.error is None else "failed", where, entry.label, **failure)
        self._tell_running()
        if entry.ticket in self._cancelled:
            self._cancelled.discard(entry.ticket)
            return
        self._ended.append(Ended(entry.ticket, answer.value, answer.error, where))

    def _lose(self, worker: Worker[Job]) -> None:
        """A worker is gone: its job goes to the front of the queue, unless it was started too often."""
        self._workers.remove(worker)
        self._end(worker.handle, now=True)
        self._cut_off = True
        entry = worker.job
        if entry is None:
            self._failed_starts += not worker.ready
            if self._failed_starts >= FAILED_STARTS:
                raise WorldError(f"workers end before they are ready ({FAILED_STARTS} in a row); see the lines above")
            return
        self._journal.write("lost", worker.name, entry.label, attempt=entry.begun)
        if entry.begun < self._executor.attempts:
            self._queue.appendleft(entry)
            return
        what = f"{entry.label or 'a job'}: its worker was ended {entry.begun} times, perhaps for lack of memory"
        self._finish(entry, worker.name, Answer(error=WorkerLost(what)))

    def _end_late(self) -> None:
        for worker in list(self._workers):
            if worker.job is not None and worker.deadline is not None and time.monotonic() >= worker.deadline:
                self._workers.remove(worker)
                self._end(worker.handle, now=True)
                self._cut_off = True
                what = f"{worker.job.label or 'a job'}: ran longer than {self._executor.timeout:g} s and was ended"
                self._finish(worker.job, worker.name, Answer(error=TimedOut(what)))

    def _tell_running(self) -> None:
        if self._running is not None:
            self._running({worker.name: worker.job.label for worker in self._workers if worker.job is not None})
