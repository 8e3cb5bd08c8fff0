"""Everything wrong with a suite, at once: faults of reading, and what the rows themselves show.

Errors must be fixed before training. Warnings (duplicates, leaks, empty texts, absent classes) are true of many published
datasets; a user should know them before trusting a score.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc

from sidequest.errors import DataError
from sidequest.model_settings import EncoderSettings
from sidequest.tasks.check_report import CheckReport, label_counts, task_facts
from sidequest.tasks.examples import Examples
from sidequest.tasks.lengths import Limit, WordLimit, long_texts_message
from sidequest.tasks.loading import LoadedSuite, load_suite_with_problems
from sidequest.tasks.overlap import content_codes, repeats
from sidequest.tasks.problems import Place, Problems
from sidequest.tasks.readers import Table
from sidequest.tasks.suite import Suite
from sidequest.tasks.task import LABELLED, Objective, Task

FindLimit = Callable[[Suite, Mapping[str, Any]], Limit | None]  # of a suite and its `model:` section
Codes = Mapping[tuple[str, str], np.ndarray]  # (task, split) → a code per row, equal for equal content
FLATTERING = 0.05  # of the rows of a split
MOST_ROWS = 1_000_000  # that are looked at before every run
RARE = 10  # a label that another outnumbers so many times may be a misspelling of it


def check_suite(source: str | Path | Suite, *, rows: bool = False, limit: FindLimit | None = None) -> CheckReport:
    """Check a suite file, an embedded suite by name, or a suite built in Python.

    Tasks that could be read are checked, and compared with each other, even if something is wrong with others.

    Args:
        source: What to check.
        rows: List every row that a warning is about, not only the first.
        limit: How many tokens the model of a suite reads (see `models.token_limit`); without it, words are counted.
    """
    problems = Problems()
    loaded = LoadedSuite.of(source) if isinstance(source, Suite) else load_suite_with_problems(source, problems)
    checker = _Checker(loaded.tasks, loaded.tables, loaded.scored, problems, rows)
    checker.check_tasks(_limit(loaded, limit))
    checker.check_splits()
    checker.check_overlap()
    return CheckReport(tuple(problems.items), {name: task_facts(task) for name, task in loaded.tasks.items()})


def leaks(suite: Suite) -> list[str]:
    """What must be known before any work: scored rows that are also trained on, where they are enough to flatter a score.
    `check_suite` says all there is."""
    problems = Problems()
    loaded = LoadedSuite.of(suite)
    if sum(len(rows) for task in loaded.tasks.values() for rows in task.splits.values()) > MOST_ROWS:
        return []
    _Checker(loaded.tasks, loaded.tables, loaded.scored, problems, False).check_leaks()
    whole = {(task.name, split): len(rows) for task in loaded.tasks.values() for split, rows in task.splits.items()}
    return [
        str(one) for one in problems.items if (one.rows or 0) >= FLATTERING * whole[one.task or "", one.split or ""]
    ]


def check_labels_and_lengths(loaded: LoadedSuite, problems: Problems) -> None:
    """What can be said of each task as a whole: labels that look misspelt, texts that would be cut."""
    _Checker(loaded.tasks, loaded.tables, loaded.scored, problems, False).check_tasks(_limit(loaded, None))


def _limit(loaded: LoadedSuite, find: FindLimit | None) -> Limit | None:
    if find is not None and loaded.suite is not None:
        return find(loaded.suite, loaded.model)
    given = loaded.model.get("max_length")
    return WordLimit(given if isinstance(given, int) else EncoderSettings(kind="").max_length)


@dataclass
class _Checker:
    tasks: Mapping[str, Task]
    tables: Mapping[str, Mapping[str, Table]]
    scored: Collection[str]
    problems: Problems
    list_rows: bool

    def check_tasks(self, limit: Limit | None) -> None:
        for task in self.tasks.values():
            self._check_label_spelling(task)
            self._check_rare_labels(task)
            if limit is not None:
                self._check_lengths(task, limit)

    def check_splits(self) -> None:
        for task in self.tasks.values():
            for split, rows in task.splits.items():
                self._check_empty(task, split, rows)
                self._check_classes(task, split, rows)

    def check_overlap(self) -> None:
        """Duplicates in a split; rows of one split in another; rows of the scored splits in other tasks' train."""
        codes = self._codes()
        for task in self.tasks.values():
            for split, rows in task.splits.items():
                self._check_duplicates(task, split, rows, codes[task.name, split])
            self._check_own(task, codes)
        self._check_others(codes)

    def check_leaks(self) -> None:
        """Rows of the splits that are scored, in any train split or in another scored one."""
        codes = self._codes()
        for name in self.scored:
            self._check_own(self.tasks[name], codes)
        self._check_others(codes)

    def _codes(self) -> Codes:
        return content_codes({(t.name, split): rows for t in self.tasks.values() for split, rows in t.splits.items()})

    def _check_own(self, task: Task, codes: Codes) -> None:
        hint = ". `drop_overlap: true` leaves them out of {}" if task.name in self.scored else ""
        for one, other in (("select", "train"), ("report", "train"), ("report", "select")):
            if one in task.splits and other in task.splits:
                self._check_shared(task, one, task, other, codes, hint.format(other))

    def _check_others(self, codes: Codes) -> None:
        hint = ". `drop_overlap: true` leaves them out of train"
        for judged in (self.tasks[name] for name in self.scored):
            for split in ("select", "report"):
                for auxiliary in self.tasks.values():
                    if auxiliary is not judged and split in judged.splits:
                        self._check_shared(judged, split, auxiliary, "train", codes, hint)

    def _check_label_spelling(self, task: Task) -> None:
        seen: dict[str, str] = {}
        for label in task.labels:
            plain = " ".join(label.lower().split())
            if plain in seen:
                message = f"the labels {seen[plain]!r} and {label!r} differ only in case or spaces"
                self.problems.warn(message, task=task.name)
            seen[plain] = label

    def _check_rare_labels(self, task: Task) -> None:
        if task.objective not in (Objective.CLASSIFICATION, Objective.MULTILABEL):
            return
        counts = np.sum([label_counts(task, rows) for rows in task.splits.values()], axis=0)
        numbers = dict(zip(task.labels, map(int, counts), strict=True))
        if misspelt := misspelt_labels(numbers):
            pairs = [f"{label!r} ({numbers[label]}) for {m!r} ({numbers[m]})" for label, m in misspelt.items()]
            corrected = ", ".join(f"{label}: {misspelt.get(label, label)}" for label in task.labels)
            message = f"rare labels look misspelt: {', '.join(pairs)}; `labels: {{{corrected}}}` would fix it"
            self.problems.warn(message, task=task.name, rows=sum(numbers[label] for label in misspelt))

    def _check_lengths(self, task: Task, limit: Limit) -> None:
        long = {split: limit.long_rows(task, rows) for split, rows in task.splits.items()}
        if message := long_texts_message(task, long, limit.most):
            places = [place for split, rows in long.items() for place in self._places(task, split, rows.positions)]
            number = sum(rows.number for rows in long.values())
            self.problems.warn(message, task=task.name, rows=number, places=places)

    def _check_empty(self, task: Task, split: str, rows: Examples) -> None:
        for column in ("text", "text_b"):
            if column in rows.columns:
                empty = np.flatnonzero(np.asarray(pc.equal(pc.utf8_trim_whitespace(rows.columns[column]), "")))
                if len(empty):
                    what = "empty text" if column == "text" else "empty second text"
                    self._warn(_counted(len(empty), what), task, split, empty)

    def _check_classes(self, task: Task, split: str, rows: Examples) -> None:
        if task.objective not in LABELLED:
            if task.objective is Objective.REGRESSION and rows.target is not None and np.ptp(rows.target) == 0:
                self.problems.warn(f"every target is {rows.target[0]:g}", task=task.name, split=split, rows=len(rows))
            return
        absent = [label for label, count in zip(task.labels, label_counts(task, rows), strict=True) if not count]
        if absent:
            shown = ", ".join(map(repr, absent[:8])) + (", …" if len(absent) > 8 else "")
            what = "class" if len(absent) == 1 else f"{len(absent)} classes"
            self.problems.warn(f"no row of the {what} {shown}", task=task.name, split=split)

    def _check_duplicates(self, task: Task, split: str, rows: Examples, codes: np.ndarray) -> None:
        repeated, first = repeats(codes)
        if not len(repeated):
            return
        same_as = [self._at(task, split, position) for position in first] if self.list_rows else []
        message = _counted(len(repeated), "repetition") + " of an earlier row"
        if isinstance(rows.target, np.ndarray):
            other = rows.target[repeated] != rows.target[first]
            differing = int(other.any(axis=1).sum() if other.ndim == 2 else other.sum())
            message += f", {differing} with another target" if differing else ""
        self._warn(message, task, split, repeated, same_as=same_as)

    def _check_shared(self, task: Task, split: str, other: Task, other_split: str, codes: Codes, hint: str) -> None:
        other_codes = codes[other.name, other_split]
        shared = np.flatnonzero(np.isin(codes[task.name, split], other_codes))
        if len(shared):
            place = other_split if other is task else f"the {other_split} split of {other.name}"
            message = f"{len(shared)} of {_counted(len(codes[task.name, split]), 'row')} also in {place}"
            first_with = (
                dict(zip(other_codes[::-1].tolist(), range(len(other_codes) - 1, -1, -1), strict=True))
                if self.list_rows
                else {}
            )
            same = [first_with[code] for code in codes[task.name, split][shared].tolist()] if self.list_rows else []
            self._warn(
                message, task, split, shared, hint, [self._at(other, other_split, position) for position in same]
            )

    def _warn(
        self, message: str, task: Task, split: str, where: np.ndarray, hint: str = "", same_as: Sequence[str] = ()
    ) -> None:
        """A warning about some rows, with the place of the first, or of all where they are asked for."""
        table = self.tables.get(task.name, {}).get(split)
        row = int(task.splits[split].ids[where[0]])
        first, source = f"row {row}", None
        if table is not None:
            line = table.line(row)
            source = DataError("", file=table.source, line=line)
            first = f"{table.source}, " + (first if line is None else f"line {line}")
        message = f"{message} (the first: {first}){hint}"
        places = self._places(task, split, where, same_as)
        self.problems.warn(message, task=task.name, split=split, rows=len(where), at=source, places=places)

    def _places(self, task: Task, split: str, where: np.ndarray, same_as: Sequence[str] = ()) -> list[Place]:
        if not self.list_rows:
            return []
        rows, table = task.splits[split], self.tables.get(task.name, {}).get(split)
        numbers, texts = rows.ids[where].tolist(), _beginnings(rows.take(where))
        lines = [None if table is None else table.line(row) for row in numbers]
        return [Place(split, *about) for about in zip(numbers, lines, texts, same_as or repeat(""), strict=False)]

    def _at(self, task: Task, split: str, position: int) -> str:
        row = int(task.splits[split].ids[position])
        table = self.tables.get(task.name, {}).get(split)
        line = None if table is None else table.line(row)
        return f"{task.name} ({split}), " + (f"row {row}" if line is None else f"line {line}")


def misspelt_labels(counts: Mapping[str, int]) -> dict[str, str]:
    """Labels that look like another one which is at least ten times as frequent: one or two letters differ, and no digit."""
    meant: dict[str, str] = {}
    for label, number in counts.items():
        for other, usual in counts.items():
            if (
                number
                and usual >= RARE * number
                and len(label) >= 4
                and _differs_as_a_typo(label.lower(), other.lower())
            ):
                meant[label] = other
    return meant


def _differs_as_a_typo(one: str, other: str) -> bool:
    edits = difflib.SequenceMatcher(None, one, other, autojunk=False).get_opcodes()
    changed = [(one[a:b], other[c:d]) for kind, a, b, c, d in edits if kind != "equal"]
    if any(character.isdigit() for pair in changed for part in pair for character in part):
        return False
    size = sum(max(map(len, pair)) for pair in changed)
    return 0 < size <= (1 if min(len(one), len(other)) < 7 else 2)


def _beginnings(rows: Examples) -> list[str]:
    """How the texts of rows begin."""
    name = next((name for name in ("text", "tokens") if name in rows.columns), None)
    if name is None:
        return ["an image"] * len(rows)
    texts = [value if isinstance(value, str) else " ".join(value) for value in rows.columns[name].to_pylist()]
    return [text if len(text) <= 60 else f"{text[:59]}…" for text in texts]


def _counted(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"
