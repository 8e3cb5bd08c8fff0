"""Where work runs: this process, worker processes of this machine, or the nodes of a Ray cluster.

Work is a module-level function, something common to all jobs, and jobs. Jobs are submitted to a session and end in any order;
whoever needs an order makes it (`run_jobs` gives each job's number, `search.trials.Trials` tells results in the order of
plans). On a CPU two processes with one thread beat one process with two threads, and two with two are a disaster; so a job
always has one torch thread, wherever it runs: then its result does not depend on where that is.

A job that raises fails alone. A job whose worker is lost (killed, out of memory, its node gone) runs again elsewhere,
`attempts` times in all; one that runs longer than `timeout` is ended with its worker and fails. Both are written into a
journal, if there is one.
"""

from __future__ import annotations

import json
import math
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

from sidequest.errors import SettingsError, WorldError
from sidequest.threads import one_torch_thread

Job = TypeVar("Job")
Result = TypeVar("Result")

Running = Callable[[Mapping[str, str]], None]  # told what runs now: a worker's name → the label of its job
MOST_WORKERS = 1024  # more is a slip
ATTEMPTS = 3


@dataclass(frozen=True)
class Ended(Generic[Result]):
    """A job that has ended: with a result, or with the error that it raised or that became of it. where: the worker's name."""

    ticket: int
    value: Result | None = None
    error: Exception | None = None
    where: str = ""

    def result(self) -> Result:
        if self.error is not None:
            raise self.error
        return self.value  # type: ignore[return-value]  # None may be the result


class WorkerLost(WorldError):
    """The workers of a job were ended again and again."""


class TimedOut(WorldError):
    """A job ran longer than it may."""


class WorkerJournal:
    """What became of workers, line by line: `workers.jsonl` of a run directory. It depends on the machine, so it is no part of
    a result.

    only_trouble: of jobs that were lost or failed alone, beside results that are one file; none is made where all went well.
    """

    FILE = "workers.jsonl"

    def __init__(self, directory: Path | None, *, only_trouble: bool = False) -> None:
        self._path = None if directory is None else directory / self.FILE
        self._only_trouble = only_trouble

    def write(self, event: str, where: str, label: str, **more: Any) -> None:
        if self._path is None or (self._only_trouble and event not in ("lost", "failed")):
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        line = {"at": round(time.time(), 3), "event": event, "worker": where, "job": label, **more}
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


class Session(ABC, Generic[Job, Result]):
    """Workers with something common to all their jobs. Use it in a `with` statement.

    slots: how many jobs run at once.
    """

    slots: int

    @abstractmethod
    def submit(self, job: Job, label: str = "") -> int:
        """Take a job; gives its number. It begins when a worker is free, in the order of submission."""

    @abstractmethod
    def cancel(self, ticket: int) -> None:
        """Forget a job. If it has started, it ends for nobody."""

    @abstractmethod
    def wait(self, seconds: float | None = None) -> Ended[Result] | None:
        """The next job that ends; None when the time is over, or nothing is under way."""

    @abstractmethod
    def close(self, *, now: bool = False) -> None:
        """now: do not wait for what is under way."""

    def __enter__(self) -> Session[Job, Result]:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.close(now=kind is not None)


@dataclass(frozen=True)
class Executor:
    """A choice of where work runs. Cheap to make; `open` starts it.

    workers: jobs at once. address: of a Ray cluster, as `ray.init` takes it (`auto`, `host:port`, `ray://…`); `local` starts
    one here. cpus_per_trial, gpus_per_trial: what a job takes of the cluster. timeout: seconds that a job may run. attempts:
    how often a job is started whose workers are lost.
    """

    workers: int = 1
    kind: Literal["processes", "ray"] = "processes"
    address: str = "local"
    cpus_per_trial: float = 1.0
    gpus_per_trial: float = 0.0
    timeout: float | None = None
    attempts: int = ATTEMPTS

    def __post_init__(self) -> None:
        if isinstance(self.workers, bool) or not isinstance(self.workers, int) or not 1 <= self.workers <= MOST_WORKERS:
            raise SettingsError(f"workers: a whole number from 1 to {MOST_WORKERS}, found {self.workers!r}")
        if self.kind not in ("processes", "ray"):
            raise SettingsError(f"--executor {self.kind}: unknown; it is processes or ray")
        if self.timeout is not None and not 0 < self.timeout < math.inf:
            raise SettingsError(f"--timeout: seconds above 0, found {self.timeout}")
        if not (0 <= self.cpus_per_trial < math.inf and 0 <= self.gpus_per_trial < math.inf and self.attempts >= 1):
            raise SettingsError("cpus, gpus per trial: at least 0; attempts: at least 1")

    @property
    def is_here(self) -> bool:
        """Whether jobs run in this very process. One that may have to be ended needs a process of its own."""
        return self.kind == "processes" and self.workers == 1 and self.timeout is None

    @property
    def shares_disk(self) -> bool:
        """Whether jobs see this machine's files."""
        return self.kind == "processes"

    def open(
        self,
        function: Callable[[Any, Job], Result],
        common: Any,
        *,
        journal: WorkerJournal | None = None,
        running: Running | None = None,
        most: int | None = None,
    ) -> Session[Job, Result]:
        """function: a module-level one, called with `common` and a job. most: how many jobs there will be at once, if known."""
        if self.is_here:
            return Here(function, common)
        slots = self.workers if most is None else max(1, min(self.workers, most))
        if self.kind == "ray":
            from sidequest.search.ray_workers import RaySession

            return RaySession(self, slots, function, common, journal, running)
        from sidequest.search.processes import ProcessSession

        return ProcessSession(self, slots, function, common, journal, running)


def as_executor(executor: Executor | int) -> Executor:
    """A number of workers is that many processes."""
    return executor if isinstance(executor, Executor) else Executor(executor)


class Here(Session[Job, Result]):
    """One job after another in this process, when it is waited for."""

    slots = 1

    def __init__(self, function: Callable[[Any, Job], Result], common: Any) -> None:
        self._function, self._common = function, common
        self._queue: deque[tuple[int, Job]] = deque()
        self._next = 0

    def submit(self, job: Job, label: str = "") -> int:
        self._queue.append((self._next, job))
        self._next += 1
        return self._next - 1

    def cancel(self, ticket: int) -> None:
        self._queue = deque(entry for entry in self._queue if entry[0] != ticket)

    def wait(self, seconds: float | None = None) -> Ended[Result] | None:
        if not self._queue:
            return None
        ticket, job = self._queue.popleft()
        try:
            with one_torch_thread():
                return Ended(ticket, self._function(self._common, job), where="here")
        except Exception as error:
            return Ended(ticket, error=error, where="here")

    def close(self, *, now: bool = False) -> None:
        self._queue.clear()


def run_jobs(
    function: Callable[[Any, Job], Result],
    common: Any,
    jobs: Sequence[Job],
    executor: Executor | int = 1,
    *,
    labels: Sequence[str] = (),
    failed: Callable[[Job, Exception], Result] | None = None,
    journal: WorkerJournal | None = None,
    running: Running | None = None,
) -> Iterator[tuple[int, Result]]:
    """Yield (index, function(common, job)) for every job, as they end; in order with one worker.

    failed: makes the result of a job that failed. None: its error is raised here, and the rest is stopped.
    """
    chosen = as_executor(executor)
    if not jobs:
        return
    with chosen.open(function, common, journal=journal, running=running, most=len(jobs)) as session:
        yield from run_in(session, jobs, labels=labels, failed=failed)


def run_in(
    session: Session[Job, Result],
    jobs: Sequence[Job],
    *,
    labels: Sequence[str] = (),
    failed: Callable[[Job, Exception], Result] | None = None,
) -> Iterator[tuple[int, Result]]:
    """`run_jobs` in a session that is open."""
    named = labels or [""] * len(jobs)
    waiting = {session.submit(job, label): index for index, (job, label) in enumerate(zip(jobs, named, strict=True))}
    while waiting:
        ended = session.wait()
        if ended is None or ended.ticket not in waiting:
            continue
        index = waiting.pop(ended.ticket)
        if ended.error is not None and failed is not None:
            yield index, failed(jobs[index], ended.error)
        else:
            yield index, ended.result()


class Ahead(Generic[Job, Result]):
    """Results in the order in which they are wanted, of jobs that may begin before it is their turn. jobs are known by a key."""

    def __init__(self, session: Session[Job, Result]) -> None:
        self._session = session
        self._tickets: dict[str, int] = {}
        self._ended: dict[int, Ended[Result]] = {}

    def first(self, wanted: Mapping[str, tuple[Job, str]]) -> Result:
        """The result of the first of these jobs (with their labels). The others are those that may come next: they begin when a
        worker is free. What was started and is not among them any more is forgotten."""
        for key in [key for key in self._tickets if key not in wanted]:
            ticket = self._tickets.pop(key)
            self._session.cancel(ticket)
            self._ended.pop(ticket, None)
        for key, (job, label) in wanted.items():
            if key not in self._tickets:
                self._tickets[key] = self._session.submit(job, label)
        awaited = self._tickets[next(iter(wanted))]
        while awaited not in self._ended:
            ended = self._session.wait()
            if ended is not None:
                self._ended[ended.ticket] = ended
        return self._ended[awaited].result()
