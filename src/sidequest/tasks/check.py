"""Everything wrong with a suite, at once: faults of reading, and what the rows themselves show.

Errors must be mended before training. Warnings (duplicates, leaks, empty texts, absent classes) are true of many published
datasets; a user should know them before trusting a score.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc

from sidequest.errors import DataError
from sidequest.tasks.examples import Examples
from sidequest.tasks.loading import load_suite_with_problems
from sidequest.tasks.overlap import content_codes, repeats
from sidequest.tasks.problems import Problem, Problems
from sidequest.tasks.readers import Table
from sidequest.tasks.suite import Suite
from sidequest.tasks.task import LABELLED, Form, Objective, Task

Codes = Mapping[tuple[str, str], np.ndarray]  # (task, split) → a code per row, equal for equal content
LENGTH_QUANTILES = (0, 0.5, 0.95, 1)


@dataclass(frozen=True)
class CheckReport:
    """Problems, and facts for display: for each task its objective, metric, notes and, per split, rows, labels and lengths.

    Labels have their shares of the rows (tagging: of the words); those of a multi-label task need not add up to one.
    """

    problems: tuple[Problem, ...]
    facts: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def errors(self) -> tuple[Problem, ...]:
        return tuple(problem for problem in self.problems if problem.level == "error")

    @property
    def warnings(self) -> tuple[Problem, ...]:
        return tuple(problem for problem in self.problems if problem.level == "warning")

    def to_json(self) -> dict[str, Any]:
        return {
            "ok": not self.errors,
            "problems": [problem.to_json() for problem in self.problems],
            "tasks": self.facts,
        }

    def lines(self) -> list[str]:
        """The report as plain text, errors first."""
        out = [f"{problem.level}: {problem}" for problem in (*self.errors, *self.warnings)]
        for name, task in self.facts.items():
            out.append(f"{name}: {task['objective']}, {task['form']}, {', '.join(task['metrics'])}")
            for split, facts in task["splits"].items():
                labels = ", ".join(f"{label} {share:.0%}" for label, share in list(facts["labels"].items())[:8])
                more = ", …" if len(facts["labels"]) > 8 else ""
                words = "{min} to {max} words, half up to {median}".format(**facts["words"]) if facts["words"] else ""
                out.append(f"  {split}: " + "; ".join(filter(None, (f"{facts['rows']} rows", labels + more, words))))
            out += [f"  note: {note}" for note in task["notes"]]
        return out

    def print(self) -> None:
        print("\n".join(self.lines()))


def check_suite(source: str | Path | Suite) -> CheckReport:
    """Check a suite file, an embedded suite by name, or a suite built in Python."""
    problems = Problems()
    tables: dict[str, Mapping[str, Table]] = {}
    suite: Suite | None
    if isinstance(source, Suite):
        suite, tasks = source, source.tasks
    else:
        suite, loaded = load_suite_with_problems(source, problems)
        tasks = suite.tasks if suite is not None else {name: entry.task for name, entry in loaded.items()}
        tables = {name: entry.tables for name, entry in loaded.items()}
    checker = _Checker(tasks, tables, problems)
    checker.check_rows()
    checker.check_overlap(suite)
    return CheckReport(tuple(problems.items), {name: _facts(task) for name, task in tasks.items()})


@dataclass
class _Checker:
    tasks: Mapping[str, Task]
    tables: Mapping[str, Mapping[str, Table]]
    problems: Problems

    def check_rows(self) -> None:
        """What can be said of each split alone."""
        for task in self.tasks.values():
            self._check_label_spelling(task)
            for split, rows in task.splits.items():
                self._check_empty(task, split, rows)
                self._check_classes(task, split, rows)

    def check_overlap(self, suite: Suite | None) -> None:
        """Duplicates in a split; rows of one split in another; rows of the scored splits in other tasks' train."""
        codes = content_codes({(t.name, split): rows for t in self.tasks.values() for split, rows in t.splits.items()})
        for task in self.tasks.values():
            for split, rows in task.splits.items():
                self._check_duplicates(task, split, rows, codes[task.name, split])
            for one, other in (("select", "train"), ("report", "train"), ("report", "select")):
                if one in task.splits and other in task.splits:
                    self._check_shared(task, one, task, other, codes, "")
        if suite is None:
            return
        scored = [suite.primary] if suite.goal == "primary" else list(suite.tasks)
        for name in scored:
            for other in suite.tasks:
                for split in ("select", "report") if other != name else ():
                    if split in suite[name].splits:
                        hint = ". `drop_overlap: true` leaves them out of train"
                        self._check_shared(suite[name], split, suite[other], "train", codes, hint)

    def _check_label_spelling(self, task: Task) -> None:
        seen: dict[str, str] = {}
        for label in task.labels:
            plain = " ".join(label.lower().split())
            if plain in seen:
                message = f"the labels {seen[plain]!r} and {label!r} differ only in case or spaces"
                self.problems.warn(message, task=task.name)
            seen[plain] = label

    def _check_empty(self, task: Task, split: str, rows: Examples) -> None:
        for column in ("text", "text_b"):
            if column in rows.columns:
                empty = np.flatnonzero(np.asarray(pc.equal(pc.utf8_trim_whitespace(rows.columns[column]), "")))
                if len(empty):
                    what = "empty text" if column == "text" else "empty second text"
                    self._warn(_counted(len(empty), what), task, split, rows, empty)

    def _check_classes(self, task: Task, split: str, rows: Examples) -> None:
        if task.objective not in LABELLED:
            if task.objective is Objective.REGRESSION and rows.target is not None and np.ptp(rows.target) == 0:
                self.problems.warn(f"every target is {rows.target[0]:g}", task=task.name, split=split, rows=len(rows))
            return
        absent = [label for label, count in zip(task.labels, _label_counts(task, rows), strict=True) if not count]
        if absent:
            shown = ", ".join(map(repr, absent[:8])) + (", …" if len(absent) > 8 else "")
            what = "class" if len(absent) == 1 else f"{len(absent)} classes"
            self.problems.warn(f"no row of the {what} {shown}", task=task.name, split=split)

    def _check_duplicates(self, task: Task, split: str, rows: Examples, codes: np.ndarray) -> None:
        repeated, first = repeats(codes)
        if not len(repeated):
            return
        message = _counted(len(repeated), "repetition") + " of an earlier row"
        if isinstance(rows.target, np.ndarray):
            other = rows.target[repeated] != rows.target[first]
            differing = int(other.any(axis=1).sum() if other.ndim == 2 else other.sum())
            message += f", {differing} with another target" if differing else ""
        self._warn(message, task, split, rows, repeated)

    def _check_shared(self, task: Task, split: str, other: Task, other_split: str, codes: Codes, hint: str) -> None:
        shared = np.flatnonzero(np.isin(codes[task.name, split], codes[other.name, other_split]))
        if len(shared):
            place = other_split if other is task else f"the {other_split} split of {other.name}"
            message = f"{len(shared)} of {_counted(len(codes[task.name, split]), 'row')} also in {place}"
            self._warn(message, task, split, task.splits[split], shared, hint)

    def _warn(self, message: str, task: Task, split: str, rows: Examples, where: np.ndarray, hint: str = "") -> None:
        """A warning about some rows, with the place of the first."""
        at: DataError | None = None
        table = self.tables.get(task.name, {}).get(split)
        row = int(rows.ids[where[0]])
        if table is None:
            first = f"row {row}"
        else:
            line = table.line(row)
            at = DataError("", file=table.source, line=line)
            first = f"{table.source}, " + (f"row {row}" if line is None else f"line {line}")
        message = f"{message} (the first: {first}){hint}"
        self.problems.warn(message, task=task.name, split=split, rows=len(where), at=at)


def _counted(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def _label_counts(task: Task, rows: Examples) -> np.ndarray:
    target = rows.target
    assert target is not None, "a split has targets"
    if task.objective is Objective.MULTILABEL:
        return np.asarray(target).sum(axis=0, dtype=np.int64)
    flat = target if isinstance(target, np.ndarray) else target.flatten()
    return np.bincount(np.asarray(flat, dtype=np.int64), minlength=len(task.labels))


def _facts(task: Task) -> dict[str, Any]:
    return {
        "objective": str(task.objective),
        "form": str(task.form),
        "kind": task.kind,
        "metrics": list(task.metrics),
        "labels": list(task.labels),
        "notes": list(task.notes),
        "splits": {split: _split_facts(task, rows, task.sources.get(split, "")) for split, rows in task.splits.items()},
    }


def _split_facts(task: Task, rows: Examples, source: str) -> dict[str, Any]:
    facts: dict[str, Any] = {"rows": len(rows), "source": source, "labels": {}, "words": {}, "target": {}}
    if task.objective is Objective.REGRESSION:
        target = np.asarray(rows.target, dtype=np.float64)
        facts["target"] = {"min": float(target.min()), "mean": float(target.mean()), "max": float(target.max())}
    else:
        counts = _label_counts(task, rows)
        total = len(rows) if task.objective is Objective.MULTILABEL else counts.sum()
        facts["labels"] = {label: float(count / total) for label, count in zip(task.labels, counts, strict=True)}
    if task.form is not Form.IMAGE:
        low, median, high, top = (int(q) for q in np.quantile(rows.word_counts(), LENGTH_QUANTILES))
        facts["words"] = {"min": low, "median": median, "p95": high, "max": top}
    return facts
