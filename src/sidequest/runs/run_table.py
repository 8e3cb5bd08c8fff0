"""Tables of runs made elsewhere: a row is one training run.

One column is the score; `seed` (or another block) says which runs belong together; every other column of numbers is an auxiliary,
its value how much of it was used relative to the primary: 0 and 1 for sets. A column `tasks` may name the set instead, as
`pos+ner`. What a tracker exports besides (names of runs, losses, times) is left out, and named.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sidequest.errors import DataError
from sidequest.runs.run_columns import block_column, could_be_task, score_column, set_column
from sidequest.tasks.readers import read_file
from sidequest.tasks.readers.table import Table

LARGEST = 1e12  # of scores and amounts: squares of larger numbers leave nothing of small ones


@dataclass(frozen=True)
class RunTable:
    """amounts float [runs, tasks]; blocks: one value per run, or None where no block holds two different mixtures. left_out:
    columns that are neither."""

    source: str
    score: str
    tasks: tuple[str, ...]
    amounts: np.ndarray
    scores: np.ndarray
    blocks: list[str] | None
    left_out: tuple[str, ...] = ()


def read_runs(
    path: Path,
    *,
    score: str | None = None,
    block: str | None = None,
    primary: str | None = None,
    tasks: Sequence[str] | None = None,
) -> RunTable:
    """score, block: columns, by default those with a usual name. primary: a column with the primary's own amount, by which the
    others are divided. tasks: the columns of the auxiliaries; by default all others that hold numbers, but for those whose name
    is a measure's or a setting's."""
    table = read_file(path)
    if not len(table):
        raise DataError("has no rows: a row is one training run", file=path)
    score, block = score_column(table, score), block_column(table, block)
    sets = set_column(table, (score, block))
    if primary is not None:
        primary = table.name_of(primary)
    left = [name for name in table.columns if name not in (score, block, sets, primary)]
    if tasks is not None:
        used, amounts = _from_columns(table, [table.name_of(name) for name in tasks])
    elif sets is not None:
        used, amounts = _from_sets(table, sets)
    else:
        used, amounts = _from_columns(table, [name for name in left if could_be_task(table, name)])
    if not used:
        raise DataError(
            "no auxiliary: every column besides the score is one, its value how much of it a run used; or name sets in a "
            "column `tasks`",
            file=path,
        )
    if (amounts < 0).any():
        row, column = np.argwhere(amounts < 0)[0]
        raise table.fault(int(row), f"column {used[column]!r}: an amount is at least 0, found {amounts[row, column]:g}")
    if primary is not None:
        own = _numbers(table, primary)
        if (own <= 0).any():
            row = int(np.argmax(own <= 0))
            raise table.fault(
                row, f"column {primary!r}: every run uses the primary, so its amount is above 0, found {own[row]:g}"
            )
        amounts = amounts / own[:, None]
    blocks = None if block is None else [str(value) for value in table.columns[block].to_pylist()]
    return RunTable(
        str(path),
        score,
        used,
        amounts,
        _numbers(table, score),
        _useful(blocks, amounts),
        left_out=() if tasks is not None else tuple(name for name in left if name not in used and sets is None),
    )


def _from_columns(table: Table, names: list[str]) -> tuple[tuple[str, ...], np.ndarray]:
    return tuple(names), np.array([_numbers(table, name) for name in names]).T


def _numbers(table: Table, name: str) -> np.ndarray:
    values = np.empty(len(table))
    for row, value in enumerate(table.columns[name].to_pylist()):
        try:
            values[row] = float(value)
        except (TypeError, ValueError, OverflowError):
            values[row] = np.nan
        if not np.isfinite(values[row]):
            raise table.fault(row, f"column {name!r}: a number is wanted, found {str(value)[:40]!r}")
        if abs(values[row]) > LARGEST:
            raise table.fault(row, f"column {name!r}: a number is at most {LARGEST:g}, found {str(value)[:40]}")
    return values


def _from_sets(table: Table, name: str) -> tuple[tuple[str, ...], np.ndarray]:
    parts = [
        [str(one) for one in value] if isinstance(value, list) else [one.strip() for one in str(value or "").split("+")]
        for value in table.columns[name].to_pylist()
    ]
    used = [{one for one in row if one and one.lower() not in ("none", "single")} for row in parts]
    tasks = tuple(sorted(set().union(*used)))
    return tasks, np.array([[float(task in row) for task in tasks] for row in used]).reshape(len(used), len(tasks))


def _useful(blocks: list[str] | None, amounts: np.ndarray) -> list[str] | None:
    """Blocks tell something only where one of them holds different mixtures."""
    if blocks is None or len(set(blocks)) < 2:
        return None
    rows = [tuple(row) for row in amounts.tolist()]
    mixed = all(len({rows[i] for i in range(len(rows)) if blocks[i] == block}) > 1 for block in set(blocks))
    return blocks if mixed else None
