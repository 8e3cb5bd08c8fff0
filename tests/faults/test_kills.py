"""A command that is killed at any of its file operations, and given again, ends in the same bytes and leaves nothing over.

Sixty kills run with every test, most of them of the quickest commands; `make test-faults` runs some hundreds over every method
and every command that continues.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.cases import CHEAP, FINE_TUNED, FROZEN, IMAGES, cases
from tests.faults.killing import Kill, points, rows_of_points
from tests.faults.runner import FOLDER, SITE, differences, left_by
from tests.faults.tracer import PLAN

SEED = int(os.environ.get("SIDEQUEST_KILL_SEED", "0"))  # chooses the operations
EVERY = sorted(cases(Path("suites")))

# Many kills of commands that take a third of a second, a few of those that take longer.
QUICK = {
    "frozen-auto": 2,
    "frozen-random-data": 3,
    "frozen-similarity": 3,
    "frozen-train": 3,
    "images-alphavil": 3,
    "images-autosem": 1,
    "images-compare": 1,
    "images-compare-2": 1,
    "images-counterfactual": 1,
    "images-diw": 1,
    "images-exp3s": 9,
    "images-heu-size": 2,
    "images-heu-type": 9,
    "images-oracle": 1,
    "images-score": 2,
    "images-single": 9,
    "images-train": 5,
    "images-tune": 3,
    "tuned-gradts-thres": 1,
    "tuned-train": 2,
}


def test_every_method_is_killed():
    from sidequest.methods.registry import METHODS

    assert {*IMAGES, *FROZEN, *FINE_TUNED} == {*METHODS}


def check(killer, case, count, record_property, **how):
    """Kill a command so often; all problems together."""
    killer.prepare(case)
    before = killer.kills
    problems = [problem for kill in points(case, count, SEED) if (problem := killer.kill(case, kill, **how))]
    record_property("kills", killer.kills - before)
    record_property("problems", len(problems))
    return problems


def test_sixty_kills_of_every_kind_of_command(quick_killer, every_case, record_property):
    problems = []
    for name, count in QUICK.items():
        problems += check(quick_killer, every_case[name], count, record_property)
    assert not problems, "\n".join(problems)
    assert quick_killer.kills >= 60


@pytest.mark.faults
@pytest.mark.parametrize("name", EVERY)
def test_kills_of(name, killer, every_case, record_property):
    count = 3 if name.partition("-")[2] in CHEAP else 8
    problems = check(killer, every_case[name], count, record_property)
    assert not problems, "\n".join(problems)


@pytest.mark.faults
@pytest.mark.parametrize("name", ["images-alphavil", "frozen-similarity", "tuned-train", "images-compare-2"])
def test_kills_of_fresh_processes(name, killer, every_case, record_property):
    """With workers that are started afresh, and the page drawn."""
    problems = check(killer, every_case[name], 2, record_property, afresh=True)
    assert not problems, "\n".join(problems)


IN_A_ROW = [
    "images-alphavil",
    "images-autosem",
    "images-compare",
    "images-oracle",
    "images-score",
    "images-train",
    "images-tune",
]
IN_A_ROW += [
    "images-no-method",
    "frozen-similarity",
    "frozen-primaries",
    "frozen-train-all-rows",
    "tuned-train",
    "tuned-gradts-fg",
]


@pytest.mark.faults
@pytest.mark.parametrize("name", IN_A_ROW)
def test_kills_in_a_row(name, killer, every_case, record_property):
    """What goes on after a kill is killed as well, three times."""
    case = every_case[name]
    killer.prepare(case)
    before = killer.kills
    problems = [found for kills in rows_of_points(case, 3, 3, SEED) if (found := killer.kill_again(case, kills))]
    record_property("kills", killer.kills - before)
    record_property("problems", len(problems))
    assert not problems, "\n".join(problems)


WORKER = """
import os, sys
handle = os.open(sys.argv[1], os.O_CREAT | os.O_WRONLY)
os.write(handle, b"x" * 100)
os.fsync(handle)
"""
TWO_WORKERS = """
import subprocess, sys
for name in ("first", "second"):
    print(subprocess.run([sys.executable, "-c", sys.argv[1], name], check=False).returncode)
"""


def test_a_kill_of_a_worker_hurts_one_worker_alone(tmp_path):
    """Else the file of a worker that lives would be torn, and the run that it belongs to called other."""
    (tmp_path / FOLDER).mkdir()
    plan = {"roots": [str(tmp_path / FOLDER)], "at": 2, "do": "kill torn", "of": "worker"}
    environment = {**os.environ, "PYTHONPATH": str(SITE), PLAN: json.dumps(plan)}
    command = [sys.executable, "-c", TWO_WORKERS, WORKER]
    done = subprocess.run(command, cwd=tmp_path / FOLDER, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["-9", "0"], done.stderr
    assert (tmp_path / FOLDER / "first").read_bytes() == b"x" * 50
    assert (tmp_path / FOLDER / "second").read_bytes() == b"x" * 100


# Controls: what the comparison of bytes must not miss


@pytest.mark.parametrize("name", ["images-alphavil", "images-train"])
def test_another_seed_gives_other_bytes(name, quick_killer, every_case):
    case = every_case[name]
    quick_killer.prepare(case)
    place = case.begin("another-seed")
    done = quick_killer.run(place, [*case.arguments, "--seed", "1", *(["-o", "run"] if case.first else [])])
    assert done.code == 0, done.output
    other = differences(case.whole, left_by(place))
    assert "run/trained/state.safetensors" in other or "run/model/model.safetensors" in other


# fault: the command, the kill at the middle one of its operations of this kind, and what must be said
PLANTED = {
    "forgets_layout": ("images-alphavil", "kill after", "replace", r"selection/\d+$", "other bytes"),
    "forgets_the_learner": ("images-exp3s", "kill after", "replace", r"selection/\d+$", "other bytes"),
    "forgets_the_place": ("images-exp3s", "kill after", "replace", r"selection/\d+$", "other bytes"),
    "writes_in_place": ("images-heu-size", "kill torn", "fsync", r"run/\.run\.json", "again ended with 2"),
    "never_sweeps": ("images-single", "kill after", "open", r"run/\.recipe\.json", "left over"),
}


@pytest.mark.parametrize("fault", PLANTED)
def test_a_planted_fault_is_found(fault, quick_killer, every_case):
    """Without the fault the same kill shows nothing."""
    name, do, operation, path, says = PLANTED[fault]
    case = every_case[name]
    quick_killer.prepare(case)
    lines = [line.split(" ", 2) for line in case.operations]
    numbers = [int(number) for number, kind, where in lines if kind == operation and re.search(path, where)]
    kill = Kill(numbers[len(numbers) // 2], do)
    found = quick_killer.kill(case, kill, planted=(f"tests.faults.plants:{fault}",))
    assert found is not None, "the fault was not found"
    assert says in found
    assert quick_killer.kill(case, kill) is None
