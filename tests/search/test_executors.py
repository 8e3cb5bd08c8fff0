"""Trials in worker processes. Nothing here imports torch, so that workers start quickly."""

import functools
import os
import subprocess
import sys
import time

import pytest

from sidequest.methods.base import Plan
from sidequest.recipe import Phase
from sidequest.search.executors import ProcessTrials
from sidequest.search.trials import LocalTrials, TrialCache
from sidequest.settings import TrainSettings
from sidequest.simulation.learner import SimulatedLearner, helpful


def no_other_facts(tasks):
    return list(tasks)


def make_runner(cache):
    learner = SimulatedLearner(helpful(2, 3))
    return LocalTrials(learner, TrainSettings(epochs=2), facts=no_other_facts, cache=TrialCache(cache))


@pytest.mark.integration
def test_worker_processes_give_the_results_of_this_process_in_order(tmp_path):
    phases = [Phase(shares={"primary": 1}), Phase(shares={"primary": 2, "arm-1": 1})]
    plans = [Plan(phases=(phase,), seed=seed) for seed in (0, 1) for phase in phases]
    here = make_runner(tmp_path / "here").run(plans)
    with ProcessTrials(functools.partial(make_runner, tmp_path / "there"), 2) as trials:
        there = trials.run(plans)
        found = trials.run(plans[:1])
    assert [result.score for result in there] == [result.score for result in here]
    assert [result.history for result in there] == [result.history for result in here]
    assert [result.meter.work for result in there] == [result.meter.work for result in here]
    assert found[0].reused


PARENT = """
import os, time
from sidequest.search.executors import ProcessTrials

if __name__ == "__main__":
    pool = ProcessTrials(None, 1)._pool
    print(pool.submit(os.getpid).result(), flush=True)
    pool.submit(time.sleep, 60).result()
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
