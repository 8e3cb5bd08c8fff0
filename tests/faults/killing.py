"""Kill a command at one of its file operations, give it again, and say what is not as it should be."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tests.faults.runner import Case, Done, Server, differences, left_by, run_afresh, temporary

PLAIN_PAGE = ("tests.faults.plants:plain_page",)


@dataclass(frozen=True)
class Kill:
    """at: number of the operation. do, of: see the tracer."""

    at: int
    do: str
    of: str = "parent"


def points(case: Case, count: int, seed: int = 0) -> list[Kill]:
    """So many places to kill a command: every kind of operation on every kind of file before any of them again."""
    rng = np.random.default_rng([seed, sum(case.name.encode())])
    kinds: dict[tuple[str, str], list[Kill]] = {}
    for who, lines in (("parent", case.operations), ("worker", case.worker_operations)):
        for line in lines:
            number, name, path = line.split(" ", 2)
            at = int(number)
            kinds.setdefault((who, f"{name} {_kind(path)}"), []).append(Kill(at, _how(name, path, rng), who))
    turns = [[kills[int(i)] for i in rng.permutation(len(kills))] for kills in kinds.values()]
    order = rng.permutation(len(turns))
    chosen: list[Kill] = []
    depth = 0
    while len(chosen) < count and depth < max(map(len, turns)):
        chosen += [turns[i][depth] for i in order if depth < len(turns[i])]
        depth += 1
    return chosen[:count]


def rows_of_points(case: Case, rows: int, length: int, seed: int = 0) -> list[list[Kill]]:
    """Kills of one and the same run, each after the one before: the later ones come early in what is left to do."""
    rng = np.random.default_rng([seed, length, sum(case.name.encode())])
    first = points(case, rows, seed + 1)
    most = max(2, len(case.operations))
    ways = ("kill before", "kill after")
    return [
        [
            Kill(kill.at, kill.do),
            *(Kill(int(rng.integers(1, most // 2 + 1)), str(rng.choice(ways))) for _ in range(length - 1)),
        ]
        for kill in first
        if kill.of == "parent"
    ]


def _kind(path: str) -> str:
    """A path without what is random in it."""
    return re.sub(r"[0-9a-f]{8,}|\d+", "#", path)


def _how(name: str, path: str, rng: np.random.Generator) -> str:
    appended = path.endswith((".jsonl", ".log"))
    ways = ["kill before", "kill after", *(["kill torn"] if name == "fsync" or (name == "open" and appended) else [])]
    return str(rng.choice(ways))


class Killer:
    """killed: the server of the runs that are killed; resumed: that of the runs after them. kills: how many there were."""

    def __init__(self, killed: Server, resumed: Server, base: Path) -> None:
        self.killed, self.resumed, self.base = killed, resumed, base
        self.kills = 0
        self._drawn_by: dict[str, dict[str, Any]] = {}

    def prepare(self, case: Case) -> None:
        if not case.whole:
            case.prepare(self.killed, self.base, PLAIN_PAGE)

    def kill_again(self, case: Case, kills: Sequence[Kill]) -> str | None:
        """Killed, and what goes on is killed too, so often; a kill that is not reached because less is left to do is none."""
        place = case.begin("again-" + "-".join(f"{kill.at}-{kill.do.replace(' ', '-')}" for kill in kills))
        try:
            for number, kill in enumerate(kills):
                server = self.resumed if number else self.killed
                done = server.run(place, case.arguments, {"at": kill.at, "do": kill.do}, planted=PLAIN_PAGE)
                if done.code == 0:
                    break
                self.kills += 1
                if done.code != -9 or done.traceback:
                    return f"{_where(case, kill)}: kill {number + 1} in a row ended with {done.code}:\n{done.output}"
            done = self.killed.run(place, case.arguments, planted=PLAIN_PAGE)
            return self._compared(case, place, done, kills[-1])
        finally:
            shutil.rmtree(place, ignore_errors=True)

    def kill(self, case: Case, kill: Kill, *, planted: tuple[str, ...] = (), afresh: bool = False) -> str | None:
        """None: all as it should be, or the operation was not reached; else what is wrong."""
        place = case.begin(f"{kill.of}-{kill.at}-{kill.do.replace(' ', '-')}")
        plan = {"at": kill.at, "do": kill.do, "of": kill.of}
        try:
            if afresh:
                done = run_afresh(place, case.arguments, plan)
            else:
                done = self.killed.run(place, case.arguments, plan, planted=(*PLAIN_PAGE, *planted))
            if done.code == 0 and kill.of == "worker":
                if not any('"lost"' in path.read_text() for path in place.rglob("workers.jsonl")):
                    return None  # not reached: with workers the same operations do not come in the same order
                problem = self._compared(case, place, done, kill, afresh)  # the job of a lost worker ran again
            elif done.code == 0:  # not reached: files that are older by now leave other notes in the cache
                return self._compared(case, place, done, kill, afresh)
            else:
                problem = self._again(case, place, done.code, kill, done.output, planted, afresh)
        finally:
            shutil.rmtree(place, ignore_errors=True)
        self.kills += 1
        return problem

    def run(self, place: Path, arguments: Sequence[str]) -> Done:
        """A run that nobody kills."""
        return self.killed.run(place, arguments, planted=PLAIN_PAGE)

    def _again(
        self, case: Case, place: Path, code: int, kill: Kill, output: str, planted: tuple[str, ...], afresh: bool
    ) -> str | None:
        where = _where(case, kill)
        if kill.of == "parent" and code != -9:
            return f"{where}: ended with {code} instead of being killed:\n{output}"
        if "Traceback (most recent call last)" in output:
            return f"{where}: a traceback when a process was killed:\n{output}"
        if afresh:
            done = run_afresh(place, case.arguments)
        else:
            done = self.resumed.run(place, case.arguments, planted=(*PLAIN_PAGE, *planted))
        return self._compared(case, place, done, kill, afresh)

    def _compared(self, case: Case, place: Path, done: Done, kill: Kill, afresh: bool = False) -> str | None:
        where = _where(case, kill)
        if done.code != 0 or done.traceback:
            return f"{where}: the same command again ended with {done.code}:\n{done.output}"
        if done.left:
            return f"{where}: processes were left running"
        if found := temporary(place):
            return f"{where}: left over: {', '.join(found)}"
        if other := differences(self._drawn(case) if afresh else case.whole, left_by(place)):
            return f"{where}: other bytes in {', '.join(other)}"
        return None

    def _drawn(self, case: Case) -> dict[str, Any]:
        """What a fresh process leaves when nobody stops it: the same, with the page drawn and its tables beside it."""
        if case.name not in self._drawn_by:
            place = case.begin("drawn")
            done = run_afresh(place, case.arguments)
            assert done.code == 0, done.output
            self._drawn_by[case.name] = left_by(place)
        return self._drawn_by[case.name]


def _where(case: Case, kill: Kill) -> str:
    return f"{case.name}: {kill.do} operation {kill.at} of the {kill.of}"
