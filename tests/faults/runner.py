"""Commands run in folders of their own, and what they leave, as bytes that can be compared."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet

from tests.faults.tracer import PLAN
from tests.helpers import ROOT

SITE = Path(__file__).parent / "site"
FOLDER, CACHE = "work", "cache"  # of a place: where the command works, and its cache


@dataclass
class Done:
    """How a command ended. left: whether a process of it was still there."""

    code: int
    output: str
    left: bool = False

    @property
    def traceback(self) -> bool:
        return "Traceback (most recent call last)" in self.output


class Server:
    """A process that runs commands in forked children; see `server.py`. hashes: PYTHONHASHSEED, which orders Python's sets."""

    def __init__(self, hashes: int) -> None:
        environment = {**os.environ, **plain_environment(), "PYTHONHASHSEED": str(hashes)}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.server"],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._ready = False

    def run(
        self,
        place: Path,
        arguments: Sequence[str],
        plan: dict[str, Any] | None = None,
        *,
        fork_workers: bool = True,
        planted: Sequence[str] = (),
        environment: dict[str, str] | None = None,
    ) -> Done:
        """Run a command in a place. plan: of the tracer, without its roots. planted: faults, as `module:function`."""
        assert self._process.stdin is not None
        if not self._ready:
            self._answer()
            self._ready = True
        (place / FOLDER).mkdir(parents=True, exist_ok=True)
        output = place / "output.txt"
        request = {
            "arguments": list(arguments),
            "environment": place_environment(place) | (environment or {}),
            "folder": str(place / FOLDER),
            "output": str(output),
            "plan": None if plan is None else {"roots": [str(place / FOLDER), str(place / CACHE)], **plan},
            "fork_workers": fork_workers,
            "planted": list(planted),
        }
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer = self._answer()
        return Done(answer["code"], output.read_text(errors="replace"), answer["left"])

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the server of commands has ended"
        return json.loads(line)

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def plain_environment() -> dict[str, str]:
    """One thread; no progress bars; a checkpoint at every chance."""
    return {
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}",
        "PYTHONDONTWRITEBYTECODE": "1",
        "SIDEQUEST_CHECKPOINT_SECONDS": "0",
        "SIDEQUEST_LEASE": "1",
        "HF_HUB_OFFLINE": "1",
    }


def place_environment(place: Path) -> dict[str, str]:
    return {"SIDEQUEST_CACHE": str(place / CACHE)}


def run_afresh(
    place: Path, arguments: Sequence[str], plan: dict[str, Any] | None = None, environment: dict[str, str] | None = None
) -> Done:
    """The same in a fresh process, whose workers are fresh too."""
    (place / FOLDER).mkdir(parents=True, exist_ok=True)
    own = {**os.environ, **plain_environment(), **place_environment(place), **(environment or {})}
    if plan is not None:
        own[PLAN] = json.dumps({"roots": [str(place / FOLDER), str(place / CACHE)], **plan})
        own["PYTHONPATH"] = f"{SITE}{os.pathsep}{own['PYTHONPATH']}"
    found = subprocess.run(
        [sys.executable, "-m", "sidequest", *arguments],
        cwd=place / FOLDER,
        env=own,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    return Done(found.returncode, found.stdout.decode(errors="replace"))


# What a run leaves

# Fields and columns that are measured, or that say what a run found already done: facts of one run, which no result rests on.
# Every other byte of these files is compared. `docs/explanation/determinism.md` has the same table for users.
MEASURED: dict[str, set[str]] = {
    "selection.json": {"seconds", "trials_reused", "reused", "computed"},
    "outcome.json": {"seconds", "peak_memory"},
    "scores.json": {"seconds"},
    "journal.jsonl": {"rows_per_second", "minutes_left"},
    "outcomes.parquet": {"seconds", "peak_memory"},
    "cost.csv": {"seconds"},
    "details.csv": {"seconds", "peak_memory_mb"},
}
DIGEST = "sha256"  # of a file with measured fields: it follows from them
# Nothing but times of day, processes and what was measured, or the page that shows it; that they exist is compared.
NOT_COMPARED = {"conduct.json", "report.html", "trials.db", "trials.log", "workers.jsonl"}
OF_TROUBLE = "workers.jsonl"  # `oracle` and `tune` write it when a worker is lost, so that a kill alone makes one


def left_by(place: Path) -> dict[str, Any]:
    """Every file under the folder of a run: its bytes, or what it says without what is measured."""
    folder = place / FOLDER
    return {
        path.relative_to(folder).as_posix(): content(path)
        for path in sorted(folder.rglob("*"))
        if (path.is_file() or path.is_symlink()) and path.name != OF_TROUBLE
    }


def content(path: Path) -> Any:
    if path.name in NOT_COMPARED:
        return None
    without = MEASURED.get(path.name)
    if without is None:
        return path.read_bytes()
    if path.suffix == ".json":
        return _lasting(json.loads(path.read_bytes()), without | {DIGEST})
    if path.suffix == ".jsonl":
        return [_lasting(json.loads(line), without) for line in path.read_bytes().splitlines()]
    if path.suffix == ".csv":
        with path.open(newline="") as file:
            return _columns(list(csv.reader(file)), without)
    table = parquet.read_table(path)
    return _columns([table.column_names, *zip(*(column.to_pylist() for column in table.columns), strict=True)], without)


def _lasting(value: Any, without: set[str]) -> Any:
    if isinstance(value, dict):
        return [(key, _lasting(kept, without)) for key, kept in value.items() if key not in without]
    return [_lasting(each, without) for each in value] if isinstance(value, list) else value


def _columns(rows: Sequence[Sequence[Any]], without: set[str]) -> list[list[str]]:
    """As text, because NaN is not itself."""
    kept = [i for i, name in enumerate(rows[0]) if name not in without]
    return [[repr(row[i]) for i in kept] for row in rows]


def temporary(place: Path) -> list[str]:
    """What nothing that has ended may leave: parts, locks, checkpoints."""
    found = []
    for root in (place / FOLDER, place / CACHE):
        for path in root.rglob("*"):
            name = path.name
            if name.endswith((".part", ".lock", ".tmp")) or (name == "checkpoints" and path.is_dir()):
                found.append(path.relative_to(place).as_posix())
    orphans = [path for path in (place / CACHE / "states").glob("*/*.npy") if not path.with_suffix(".npz").exists()]
    return found + [path.relative_to(place).as_posix() for path in orphans]


def differences(expected: dict[str, Any], found: dict[str, Any]) -> list[str]:
    """The names of files that are missing, new or different."""
    names = sorted({*expected, *found})
    missing = object()
    return [name for name in names if expected.get(name, missing) != found.get(name, missing)]


@dataclass
class Case:
    """A command whose every file operation may be its last.

    first: commands that it needs to have run; they run once. workers: processes that it starts.
    """

    name: str
    arguments: Sequence[str]
    first: Sequence[Sequence[str]] = ()
    workers: int = 1
    whole: dict[str, Any] = field(default_factory=dict, repr=False)  # what it leaves when nobody stops it
    operations: list[str] = field(default_factory=list, repr=False)  # "number name path"
    worker_operations: list[str] = field(default_factory=list, repr=False)
    base: Path = Path()  # where its runs are

    def prepare(self, server: Server, base: Path, planted: Sequence[str] = ()) -> None:
        """Run it to the end once, and write down its operations."""
        self.base = base / self.name
        start, end = self.base / "start", self.base / "whole"
        (start / FOLDER).mkdir(parents=True)
        for command in self.first:
            done = server.run(start, command, planted=planted)
            assert done.code == 0, done.output
        shutil.copytree(start, end)
        log = self.base / "operations"
        done = server.run(end, self.arguments, {"log": str(log)}, planted=planted)
        assert done.code == 0, done.output
        self.whole = left_by(end)
        lines = [line.split(" ", 1) for line in log.read_text().splitlines()]
        self.operations = [line for who, line in lines if who == "parent"]
        self.worker_operations = [line for who, line in lines if who == "worker"]
        assert not temporary(end), temporary(end)

    def begin(self, name: str) -> Path:
        """A place in which nothing but the commands before it has run."""
        place = self.base / name
        shutil.copytree(self.base / "start", place)
        return place
