"""Work in worker processes: what is lost runs again, what fails fails alone, what hangs is ended. Nothing here imports torch, so
that workers start quickly."""

import fcntl
import json
import os
import subprocess
import sys
import time

import pytest

from sidequest.errors import SettingsError
from sidequest.methods.base import Plan
from sidequest.recipe import Phase
from sidequest.search.executors import Executor, TimedOut, WorkerJournal, WorkerLost, run_jobs
from sidequest.search.parallel_trials import Trials
from sidequest.search.trials import LocalTrials, TrialCache
from sidequest.settings import TrainSettings
from sidequest.simulation.learner import SimulatedLearner, helpful
from sidequest.store import sweep


def no_other_facts(tasks):
    return list(tasks)


def make_runner(cache):
    learner = SimulatedLearner(helpful(2, 3))
    return LocalTrials(learner, TrainSettings(epochs=2), facts=no_other_facts, cache=TrialCache(cache))


def run_plan(cache, plan):
    return make_runner(cache).run([plan])[0]


@pytest.mark.integration
def test_worker_processes_give_the_results_of_this_process_in_order(tmp_path):
    phases = [Phase(shares={"primary": 1}), Phase(shares={"primary": 2, "arm-1": 1})]
    plans = [Plan(phases=(phase,), seed=seed) for seed in (0, 1) for phase in phases]
    here = make_runner(tmp_path / "here").run(plans)
    cache = TrialCache(tmp_path / "driver")
    open_session = lambda: Executor(2).open(run_plan, tmp_path / "there")  # noqa: E731
    with Trials(open_session, 2, facts=no_other_facts, cache=cache) as trials:
        there = trials.run(plans)
        found = trials.run(plans[:1])
    assert [result.score for result in there] == [result.score for result in here]
    assert [result.history for result in there] == [result.history for result in here]
    assert [result.meter.work for result in there] == [result.meter.work for result in here]
    assert found[0].reused


def sleep_or_break(common, job):
    """A job: its number; `killed` at the first attempts, `always` killed, `hang`, or `raise`."""
    number, what = job
    if what == "raise":
        raise ValueError(f"job {number} is bad")
    if what == "hang":
        time.sleep(600)
    if what == "always":
        os.kill(os.getpid(), 9)
    if what == "once" and not (seen := common / f"begun-{number}").exists():
        seen.touch()
        os.kill(os.getpid(), 9)
    return number * 10


@pytest.mark.integration
def test_a_lost_worker_s_job_runs_again_and_is_named(tmp_path):
    jobs = [(number, "once" if number == 1 else "") for number in range(4)]
    labels = [f"job {number}" for number, _ in jobs]
    found = dict(run_jobs(sleep_or_break, tmp_path, jobs, Executor(2), labels=labels, journal=WorkerJournal(tmp_path)))
    assert found == {0: 0, 1: 10, 2: 20, 3: 30}
    lines = [json.loads(line) for line in (tmp_path / WorkerJournal.FILE).read_text().splitlines()]
    assert [line["job"] for line in lines if line["event"] == "lost"] == ["job 1"]
    begun = [line for line in lines if line["event"] == "begun" and line["job"] == "job 1"]
    assert [line["attempt"] for line in begun] == [1, 2]
    assert len({line["worker"] for line in begun}) == 2  # another process


def leave_a_part(common, job):
    """A job that is killed, the first time, while it writes an entry of the cache."""
    from sidequest.store import ContentStore

    def make(_):
        if not (seen := common / "begun").exists():
            seen.touch()
            os.kill(os.getpid(), 9)
        return {"job": job}

    (common / f"kept-{job}").touch()
    return ContentStore("things").get_or_make(f"{job:064d}", make).data["job"]


@pytest.mark.integration
def test_what_a_killed_worker_left_in_the_cache_is_gone_when_the_session_ends(tmp_path, monkeypatch):
    """Its job ran again under another key, as where the same work is found elsewhere; what somebody writes now stays."""
    monkeypatch.setenv("SIDEQUEST_CACHE", str(tmp_path / "cache"))
    shelf = tmp_path / "cache" / "things" / "11"
    shelf.mkdir(parents=True)
    sweep()  # as a command does when it begins
    (shelf / ".left.12345678.part").touch()
    with (shelf / ".held.12345678.part").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert dict(run_jobs(leave_a_part, tmp_path, [1, 2], Executor(2))) == {0: 1, 1: 2}
        assert [path.name for path in shelf.iterdir()] == [".held.12345678.part"]


@pytest.mark.integration
def test_what_fails_fails_alone(tmp_path):
    jobs = [(0, ""), (1, "raise"), (2, "always"), (3, "hang"), (4, "")]
    executor = Executor(2, timeout=3.0, attempts=2)
    failed = lambda job, error: error  # noqa: E731
    found = dict(run_jobs(sleep_or_break, tmp_path, jobs, executor, labels=["a", "b", "c", "d", "e"], failed=failed))
    assert (found[0], found[4]) == (0, 40)
    assert isinstance(found[1], ValueError)
    assert isinstance(found[2], WorkerLost)
    assert "c: its worker was ended 2 times" in str(found[2])
    assert isinstance(found[3], TimedOut)
    assert "d: ran longer than 3 s" in str(found[3])


@pytest.mark.integration
def test_without_a_way_to_fail_an_error_is_raised(tmp_path):
    with pytest.raises(ValueError, match="job 1 is bad"):
        list(run_jobs(sleep_or_break, tmp_path, [(0, ""), (1, "raise")], 2))


def test_what_runs_where_is_told(tmp_path):
    seen = []
    jobs = [(number, "") for number in range(3)]
    list(run_jobs(sleep_or_break, tmp_path, jobs, Executor(1, timeout=60), labels=["x", "y", "z"], running=seen.append))
    assert [list(now.values()) for now in seen if now] == [["x"], ["y"], ["z"]]
    assert all(name.startswith("process ") for now in seen for name in now)


def test_bad_executors_are_refused():
    for bad in ({"workers": 0}, {"workers": True}, {"kind": "rey"}, {"timeout": 0}, {"gpus_per_trial": -1}):
        with pytest.raises(SettingsError):
            Executor(**bad)


PARENT = """
import os, sys, time
from sidequest.search.executors import Executor

def work(common, job):
    print(os.getpid(), flush=True)
    time.sleep(60)

if __name__ == "__main__":
    session = Executor(1, timeout=100).open(work, None)
    session.submit(0)
    session.wait()
"""


@pytest.mark.integration
def test_workers_end_with_a_killed_parent(tmp_path):
    script = tmp_path / "parent.py"
    script.write_text(PARENT)
    parent = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True)
    worker = int(parent.stdout.readline())
    parent.kill()
    parent.wait()
    deadline = time.monotonic() + 20
    while _alive(worker) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _alive(worker)


def _alive(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True
