"""Trials through an Optuna study: written down, found again, paid for once."""

import os
import socket
import subprocess
import sys

import optuna
import pytest

from sidequest.errors import SettingsError
from sidequest.learning.meter import Meter
from sidequest.methods.base import Plan
from sidequest.recipe import Phase
from sidequest.search.executors import Here
from sidequest.search.ledger import Ledger, batch_shares
from sidequest.search.parallel_trials import Trials
from sidequest.search.trials import TrialCache, TrialResult


def plan(seed=0, **shares):
    return Plan(phases=(Phase(shares=shares or {"main-one": 1}),), seed=seed, label="a label")


class Counted:
    """A runner that only counts: the score is the primary's share of the batches."""

    def __init__(self):
        self.ran = []

    def run(self, plans):
        self.ran += plans
        return [
            TrialResult(batch_shares(p)["main-one"], [{"phase": 0, "batches": 1, "score": 0.1}], Meter(trials=1))
            for p in plans
        ]


class NothingKept(TrialCache):
    """So that only the ledger can know a result."""

    def get(self, key):
        return None

    def put(self, key, result):
        pass


def through(runner, ledger):
    return Trials(
        lambda: Here(lambda common, plan: runner.run([plan])[0], None),
        1,
        facts=lambda tasks: {"tasks": list(tasks)},
        cache=NothingKept(),
        listening=lambda: ([ledger], ledger_only(ledger)),
        shared=True,
    )


def ledger_only(ledger):
    """Results of others count, and everything may be claimed."""

    class Known:
        result = staticmethod(ledger.result)

        def claim(self, key):
            return True

    return Known()


@pytest.mark.parametrize("where", ["journal", "sqlite"])
def test_a_study_records_trials_and_gives_them_back(tmp_path, where):
    place = tmp_path / "trials.log" if where == "journal" else f"sqlite:///{tmp_path}/trials.db"
    plans = [plan(**{"main-one": 3, "helper": 1}), plan(seed=1)]
    first = through(Counted(), Ledger.open(place, "s")).run(plans)
    assert [result.score for result in first] == [0.75, 1.0]

    again, runner = Ledger.open(place, "s"), Counted()
    second = through(runner, again).run([plans[1], plan(seed=2), plans[0]])
    assert [p.seed for p in runner.ran] == [2]  # the others were found
    assert [result.reused for result in second] == [True, False, True]
    assert second[2].history == first[0].history
    assert second[2].meter == first[0].meter

    trials = again.study.trials
    assert [trial.state for trial in trials] == [optuna.trial.TrialState.COMPLETE] * 3
    assert trials[0].params == {"main-one": 0.75, "helper": 0.25}
    assert trials[0].user_attrs["label"] == "a label"
    assert again.study.best_value == 1.0


def test_a_failing_trial_is_written_as_failed(tmp_path):
    class Broken:
        def run(self, plans):
            raise RuntimeError("no memory")

    ledger = Ledger.open(tmp_path / "trials.log", "s")
    with pytest.raises(RuntimeError, match="no memory"):
        through(Broken(), ledger).run([plan()])
    assert [trial.state for trial in ledger.study.trials] == [optuna.trial.TrialState.FAIL]
    assert through(Counted(), ledger).run([plan()])[0].score == 1.0  # a failure is no result


def test_what_a_killed_process_left_running_has_failed(tmp_path):
    gone = subprocess.Popen([sys.executable, "-c", "pass"])
    gone.wait()
    ledger = Ledger.open(tmp_path / "trials.log", "s")
    states = optuna.trial.TrialState
    for owner in (f"{socket.gethostname()}:{gone.pid}", f"{socket.gethostname()}:{os.getpid()}", "elsewhere:1"):
        ledger.begun(plan(), "key")
        ledger._running["key"].set_user_attr("owner", owner)
    ledger.begun(plan(), "key")
    assert [trial.state for trial in ledger.study.trials] == [
        states.FAIL,
        states.RUNNING,
        states.RUNNING,
        states.RUNNING,
    ]


def test_several_phases_have_parameters_of_their_own():
    two = Plan(phases=(Phase(shares={"a": 1, "b": 3}), Phase(shares={"a": 2})))
    assert batch_shares(two) == {"phase 1: a": 0.25, "phase 1: b": 0.75, "phase 2: a": 1.0}


def test_a_bad_database_is_one_clear_error():
    with pytest.raises(SettingsError, match=r"storage 'nosuch://x'.*sqlite:///"):
        Ledger.open("nosuch://x", "s")
