"""What happens during long work, as events with names: for a bar, for lines in a log, or for code of your own.

with sidequest.show_progress() as progress:
    sidequest.compare(setup, ["heu-size"], range(5), "runs/compare", progress=progress)
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

from sidequest.formatting import fixed

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress

SECONDS = 20.0  # between two lines of a log


class Progress:
    """Told what happens; does nothing with it. Override what you want to know.

    Every event says how much is done of how much; a total of None is not known.
    """

    def encoding(self, done: int, total: int) -> None:
        """Texts that a frozen encoder has turned into states.

        Args:
            done: Texts encoded.
            total: Texts to encode.
        """

    def training(self, done: int, total: int, best: float | None, label: str = "") -> None:
        """Batches of the training run that is under way.

        Args:
            done: Batches trained.
            total: Batches of the whole run.
            best: The best score on *select* so far.
            label: What is trained.
        """

    def round(self, done: int, total: int | None, entry: Mapping[str, Any], x: float) -> None:
        """A method's round or trial has ended.

        Args:
            done: Rounds and trials that have ended.
            total: How many there will be.
            entry: What this one showed.
            x: What the selection has cost so far.
        """

    def job(self, done: int, total: int, label: str, result: Any, x: float) -> None:
        """A whole job has ended: a cell of a comparison, a subset of an oracle, a training of a tuning, a judged choice.

        Args:
            done: Jobs that have ended.
            total: How many there are.
            label: What it was, in words.
            result: Its record.
            x: What all jobs have cost so far.
        """

    def running(self, jobs: Mapping[str, str]) -> None:
        """What runs where, whenever that changes.

        Args:
            jobs: What each worker does, by the worker's name.
        """


class Several(Progress):
    """Tells several."""

    def __init__(self, *listeners: Progress) -> None:
        self.listeners = listeners

    def encoding(self, done: int, total: int) -> None:
        for listener in self.listeners:
            listener.encoding(done, total)

    def training(self, done: int, total: int, best: float | None, label: str = "") -> None:
        for listener in self.listeners:
            listener.training(done, total, best, label)

    def round(self, done: int, total: int | None, entry: Mapping[str, Any], x: float) -> None:
        for listener in self.listeners:
            listener.round(done, total, entry, x)

    def job(self, done: int, total: int, label: str, result: Any, x: float) -> None:
        for listener in self.listeners:
            listener.job(done, total, label, result, x)

    def running(self, jobs: Mapping[str, str]) -> None:
        for listener in self.listeners:
            listener.running(jobs)


class _Display(Progress):
    """Events as (what, done, total, note), for people."""

    def show(self, what: str, done: int, total: int | None, note: str) -> None:
        raise NotImplementedError

    def encoding(self, done: int, total: int) -> None:
        self.show("encoding", done, total, "texts")

    def training(self, done: int, total: int, best: float | None, label: str = "") -> None:
        self.show("training", done, total, label if best is None else f"{label} best {fixed(best)}".strip())

    def round(self, done: int, total: int | None, entry: Mapping[str, Any], x: float) -> None:
        self.show("choosing", done, total, f"{x:.1f}x  " + ", ".join(f"{k} {_short(v)}" for k, v in entry.items()))

    def job(self, done: int, total: int, label: str, result: Any, x: float) -> None:
        self.show("jobs", done, total, f"{x:.1f}x  {label}")

    def running(self, jobs: Mapping[str, str]) -> None:
        if jobs:
            # The number of a process on this machine says nothing; the name of another machine does.
            at_work = (job if where.startswith("process ") else f"{job} on {where}" for where, job in jobs.items())
            self.show("at work", len(jobs), None, "; ".join(at_work))


class Lines(_Display):
    """A line every few seconds: for logs, where a bar would be noise."""

    def __init__(self, seconds: float = SECONDS, file: TextIO | None = None) -> None:
        self.seconds, self.file = seconds, file
        self._last = time.monotonic()
        self._begun: dict[str, tuple[float, int]] = {}  # since when, and how much was done then
        self._now: dict[str, str] = {}
        self._silent = True

    def show(self, what: str, done: int, total: int | None, note: str) -> None:
        now = time.monotonic()
        since, first = self._begun.get(what, (now, done))
        if done < first:  # a new training run, a new method
            since, first = now, done
        self._begun[what] = since, first
        count = f"{done}" if total is None else f"{done} of {total}"
        left = ""
        if total is not None and first < done < total:
            left = f", about {duration((now - since) * (total - done) / (done - first))} left"
        self._now[what] = f"{what} {count}{left}" + (f" ({note.strip()})" if note.strip() else "")
        # Workers were sent out, and may be silent for as long as a training takes: that is said at once.
        sent_out, self._silent = self._silent and what == "at work", self._silent and what != "at work"
        if now - self._last >= self.seconds or sent_out:
            self._last = now
            print("; ".join(self._now.values()), file=self.file or sys.stderr, flush=True)
            self._now.clear()


class Bar(_Display):
    """A bar for each thing that goes on, on a terminal or in a notebook."""

    def __init__(self, bars: RichProgress) -> None:
        self._bars = bars
        self._ids: dict[str, Any] = {}

    def show(self, what: str, done: int, total: int | None, note: str) -> None:
        if what not in self._ids:
            self._ids[what] = self._bars.add_task(what, total=total, note="")
        running = what != "encoding" or (total is not None and done < total)
        self._bars.update(self._ids[what], completed=done, total=total, note=note, visible=running)


@contextmanager
def show_progress(seconds: float = SECONDS) -> Iterator[Progress]:
    """Bars where somebody is watching, otherwise a line every few seconds; on the error stream: output stays clean."""
    from rich.console import Console

    console = Console(stderr=True)
    if not (console.is_terminal or console.is_jupyter):
        yield Lines(seconds)
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.progress import (
        Progress as RichProgress,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
    )
    with RichProgress(*columns, console=console, transient=True) as bars:
        yield Bar(bars)


def duration(seconds: float) -> str:
    """A length of time for people: 40 s, 12 min, 3.5 h."""
    if seconds < 1:
        return "less than 1 s"
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _short(value: Any) -> str:
    return fixed(value) if isinstance(value, float) else str(value)
