"""Logs of task-selection policies: which task was drawn at each step, with what probability, and what came of it.

A log is a parquet file with one row per step and can be learned from again, by any method: `--set log=DIR`.

==============  =====================================================================================
`step`          int64, from 1
`task`          string
`propensity`    float64, the probability with which the logging policy drew this task at this step
`reward`        float64, in the unit that the file's metadata names under `reward`
`loss`          float64, before the step: of the drawn task's batch (goal `average`), or of a probe batch of
                the primary (goal `primary`)
==============  =====================================================================================

The schema's metadata holds `sidequest.policy_log`, a JSON object: version, tasks, goal, reward, method, policy, settings.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sidequest.errors import DataError, SettingsError, first_line
from sidequest.paths import input_file

VERSION = 1
METADATA = b"sidequest.policy_log"
NUMBERS = ("propensity", "reward", "loss")
STEP = np.dtype([("task", "<u2"), *((name, "<f8") for name in NUMBERS)])

# What `reward` holds: the reward of Eq. 16 (0 unless the loss fell), or the loss before a step minus the loss after it.
Reward = Literal["improvement", "prediction-gain"]


@dataclass(frozen=True)
class PolicyLog:
    """steps: records [T] of dtype `STEP`, whose `task` indexes `tasks`. about: what the metadata says besides."""

    tasks: tuple[str, ...]
    steps: np.ndarray
    goal: str
    reward: Reward
    about: dict[str, Any]

    def to_parquet(self) -> bytes:
        """The bytes of the file; equal logs give equal bytes."""
        meta = {**self.about, "version": VERSION, "tasks": self.tasks, "goal": self.goal, "reward": self.reward}
        names = pa.DictionaryArray.from_arrays(pa.array(self.steps["task"].astype(np.int32)), pa.array(self.tasks))
        columns = {"step": pa.array(np.arange(1, len(self.steps) + 1)), "task": names}
        columns |= {name: pa.array(np.ascontiguousarray(self.steps[name])) for name in NUMBERS}
        table = pa.table(columns).replace_schema_metadata({METADATA: json.dumps(meta, sort_keys=True).encode()})
        buffer = io.BytesIO()
        pq.write_table(table, buffer, compression="zstd")
        return buffer.getvalue()

    @property
    def digest(self) -> str:
        """A digest of the content, wherever the file lies."""
        return hashlib.sha256(repr(self.tasks).encode() + self.steps.tobytes()).hexdigest()[:16]

    def ordered_as(self, tasks: Sequence[str]) -> PolicyLog:
        """The same log with its tasks numbered in another order; both must name the same tasks."""
        number = np.array([tasks.index(name) for name in self.tasks])
        steps = self.steps.copy()
        steps["task"] = number[self.steps["task"]]
        return PolicyLog(tuple(tasks), steps, self.goal, self.reward, self.about)


def pack(steps: np.ndarray) -> str:
    """Records as text that fits a JSON state: exact, and about 35 characters per step."""
    return base64.b64encode(steps.astype(STEP, copy=False).tobytes()).decode()


def unpack(blocks: Iterable[str]) -> np.ndarray:
    """The records of packed blocks, one after another."""
    return np.frombuffer(b"".join(base64.b64decode(block) for block in blocks), dtype=STEP)


def read_log(path: Path) -> PolicyLog:
    """Read one file and check every rule of the format."""
    input_file(path, "a policy log")
    try:
        table = pq.read_table(path)
    except (pa.ArrowException, OSError, ValueError, MemoryError) as error:
        raise DataError(f"not a readable parquet file: {first_line(error)}", file=path) from None
    metadata = (table.schema.metadata or {}).get(METADATA)
    if metadata is None:
        raise DataError("not a policy log: the schema's metadata lacks 'sidequest.methods.policies.log'", file=path)
    about = _about(metadata, path)
    tasks, goal, reward = tuple(about.pop("tasks")), about.pop("goal"), about.pop("reward")
    missing = [name for name in ("step", "task", *NUMBERS) if name not in table.column_names]
    if missing:
        raise DataError(f"the column {missing[0]!r} is missing; found {', '.join(table.column_names)}", file=path)
    if len(table) == 0:
        raise DataError("the log has no steps", file=path)
    table = table.sort_by("step")
    steps = np.empty(len(table), dtype=STEP)
    number = {name: index for index, name in enumerate(tasks)}
    for row, name in enumerate(_values(table, "task", path)):
        if name not in number:
            raise DataError(f"task {name!r} is not among the log's tasks {', '.join(tasks)}", file=path, line=row + 1)
        steps["task"][row] = number[name]
    for column in NUMBERS:
        try:
            steps[column] = table[column].to_numpy()
        except (ValueError, TypeError, OverflowError, pa.ArrowException) as error:
            raise DataError(f"{column} must be a number: {first_line(error)}", file=path) from None
        bad = np.flatnonzero(~np.isfinite(steps[column]))
        if len(bad):
            raise DataError(
                f"{column} must be a finite number, found {steps[column][bad[0]]}", file=path, line=bad[0] + 1
            )
    bad = np.flatnonzero((steps["propensity"] <= 0) | (steps["propensity"] > 1))
    if len(bad):
        found = steps["propensity"][bad[0]]
        raise DataError(f"a propensity is above 0 and at most 1, found {found}", file=path, line=int(bad[0]) + 1)
    return PolicyLog(tasks, steps, goal, reward, about)


def _about(metadata: bytes, path: Path) -> dict[str, Any]:
    """What the metadata says, once it has the shape that it should."""
    try:
        about = json.loads(metadata)
    except (ValueError, RecursionError) as error:
        raise DataError(f"not a policy log: its metadata is not JSON: {first_line(error)}", file=path) from None
    if not isinstance(about, dict) or about.pop("version", None) != VERSION:
        raise DataError(f"this sidequest reads policy logs of version {VERSION}", file=path)
    tasks = about.get("tasks")
    if not isinstance(tasks, list) or not all(isinstance(name, str) for name in tasks) or len({*tasks}) < len(tasks):
        raise DataError("not a policy log: `tasks` is a list of different names", file=path)
    if about.get("goal") not in ("primary", "average") or about.get("reward") not in get_args(Reward):
        raise DataError("not a policy log: its goal or its reward is none that there is", file=path)
    return about


def _values(table: pa.Table, column: str, path: Path) -> list[Any]:
    try:
        return table[column].to_pylist()
    except (ValueError, pa.ArrowException) as error:  # bytes that are no text
        raise DataError(f"{column} cannot be read: {first_line(error)}", file=path) from None


def read_logs(places: Sequence[str], tasks: Sequence[str], goal: str) -> list[PolicyLog]:
    """All logs in these files, run directories (`DIR/logs/*.parquet`) or directories of parquet files.

    They must be of exactly these tasks and this goal; tasks are numbered as they are here.
    """
    logs = []
    for place in places:
        for path in _log_files(Path(place)):
            log = read_log(path)
            if set(log.tasks) != set(tasks):
                lacks, extra = sorted(set(tasks) - set(log.tasks)), sorted(set(log.tasks) - set(tasks))
                raise DataError(
                    f"a log must be of the suite's tasks; it lacks {lacks or 'none'} and has besides {extra or 'none'}",
                    file=path,
                )
            if log.goal != goal:
                raise DataError(f"the log was made for the goal {log.goal!r}, the suite's is {goal!r}", file=path)
            logs.append(log.ordered_as(tasks))
    return logs


def _log_files(place: Path) -> list[Path]:
    if place.is_file():
        return [place]
    for pattern in ("logs/*.parquet", "*.parquet"):
        if found := sorted(place.glob(pattern)):
            return found
    what = "has no logs/*.parquet" if place.is_dir() else "no such file or directory"
    raise SettingsError(f"log={place}: {what}; `exp3s` and `counterfactual` write logs into their run directories")
