"""The same comparison.json with one worker and with two, byte for byte; and a cell whose worker dies is made by another."""

import json
import os

import pytest

from sidequest.records.comparisons import Comparison
from sidequest.runs import cells
from sidequest.runs.comparing import compare
from sidequest.runs.setup import Setup
from sidequest.runs.tuning import tune
from sidequest.search.executors import Executor, WorkerJournal
from sidequest.tasks.digits import digits_suite

ROWS = {"top-left": 60, "parity": 60, "large": 60, "bottom-right": 0, "ink": 0, "shuffled": 0}


def small(seed=0):
    return Setup.of(digits_suite(seed, rows=ROWS, select_rows=20, report_rows=40), {}, {"epochs": 2})


def run(directory, cache, executor, monkeypatch, seeds=(0, 1)):
    monkeypatch.setenv("SIDEQUEST_CACHE", str(cache))
    methods = {"heu-size": {}, "exp3s": {"steps": 20}}
    return compare(small(), methods, seeds, directory, workers=executor)


@pytest.mark.slow
def test_two_workers_write_the_bytes_of_one(tmp_path, monkeypatch):
    run(tmp_path / "one", tmp_path / "cache-one", 1, monkeypatch)
    run(tmp_path / "two", tmp_path / "cache-two", 2, monkeypatch)
    run(tmp_path / "other", tmp_path / "cache-two", 2, monkeypatch, seeds=(0, 2))
    one, two, other = ((tmp_path / name / "comparison.json").read_bytes() for name in ("one", "two", "other"))
    assert one == two
    assert one != other  # the control
    assert Comparison.read(tmp_path / "one").rows[0].seconds > 0  # of `conduct.json`
    begun = [json.loads(line) for line in (tmp_path / "two" / WorkerJournal.FILE).read_text().splitlines()]
    assert len({line["worker"] for line in begun}) == 2


def dies_once(setup, job):
    if job.method == "all" and not (seen := job.directory.parent / "seen").exists():
        seen.parent.mkdir(parents=True, exist_ok=True)
        seen.touch()
        os.kill(os.getpid(), 9)
    return cells.attempt(setup, job)


@pytest.mark.slow
def test_a_cell_of_a_lost_worker_is_made_by_another(tmp_path, monkeypatch):
    from sidequest.runs import comparing

    run(tmp_path / "one", tmp_path / "cache-one", 1, monkeypatch, seeds=(0,))
    monkeypatch.setattr(comparing, "attempt", dies_once)
    run(tmp_path / "two", tmp_path / "cache-two", Executor(2), monkeypatch, seeds=(0,))
    assert (tmp_path / "one" / "comparison.json").read_bytes() == (tmp_path / "two" / "comparison.json").read_bytes()
    lines = (tmp_path / "two" / WorkerJournal.FILE).read_text().splitlines()
    assert [json.loads(line)["job"] for line in lines if '"lost"' in line] == ["all seed 0"]


@pytest.mark.slow
def test_tuning_with_two_workers_finds_the_same(tmp_path, monkeypatch):
    found = []
    for workers in (1, 2):
        monkeypatch.setenv("SIDEQUEST_CACHE", str(tmp_path / f"cache-{workers}"))
        found.append(tune(small(), 9, workers=workers).model_dump_json())
    assert found[0] == found[1]
    assert tune(small(), 9, seed=1).model_dump_json() != found[0]
