"""Which rows have texts that a model does not read whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from sidequest.tasks.examples import Examples
from sidequest.tasks.task import Form, Task

READ_IN_PART = (Form.TEXT, Form.PAIR, Form.CHOICES)  # sentences to tag are read whole or refused


@dataclass(frozen=True)
class LongRows:
    """positions: of rows that are too long; number: how many there are in all, which of large splits is an estimate."""

    positions: np.ndarray
    number: int
    how: Literal["", "at least", "about"] = ""


def long_texts_message(task: Task, long: Mapping[str, LongRows], most: int) -> str:
    """One sentence about a task's rows that are too long; empty if none is."""
    number, total = sum(rows.number for rows in long.values()), sum(map(len, task.splits.values()))
    if not number:
        return ""
    how = next((rows.how for rows in long.values() if rows.how), "")
    return (
        f"{how} {number} of {total} texts are longer than the {most} tokens that the model reads and would be cut; "
        "`model.max_length` sets how many it reads"
    ).strip()


class Limit(Protocol):
    """most: how many tokens a model reads at once."""

    @property
    def most(self) -> int: ...
    def long_rows(self, task: Task, rows: Examples) -> LongRows: ...


@dataclass(frozen=True)
class WordLimit:
    """Without a tokeniser: a word is at least one token, and two more mark the beginning and the end."""

    most: int

    def long_rows(self, task: Task, rows: Examples) -> LongRows:
        if task.form not in READ_IN_PART:
            return LongRows(np.zeros(0, dtype=np.int64), 0)
        positions = np.flatnonzero(rows.word_counts() + 2 > self.most)
        return LongRows(positions, len(positions), "at least")
