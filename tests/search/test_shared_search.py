"""Two processes, one search, one database: no trial is lost or run twice, and one process may die in between."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import optuna
import pytest
from typer.testing import CliRunner

from sidequest.cli import app
from sidequest.errors import SettingsError, WorldError
from sidequest.learning.meter import Meter
from sidequest.methods.base import Plan
from sidequest.recipe import Phase
from sidequest.search.claims import Claims
from sidequest.search.executors import Here
from sidequest.search.ledger import Ledger
from sidequest.search.parallel_trials import Trials
from sidequest.search.storage import bad_storage, database_url, without_password
from sidequest.search.trials import TrialCache, TrialResult
from tests.helpers import ROOT
from tests.helpers.postgresql import PASSWORD, needs_postgresql, server, server_and_control

TRIALS = 40


def run_slowly(log, plan):
    """A trial that takes a while and says that it was started."""
    with Path(log).open("a") as file:
        file.write(f"{plan.seed}\n")
    time.sleep(0.15 + 0.1 * (plan.seed % 3))
    return TrialResult(plan.seed / 100, [], Meter(trials=1))


def search(url, place, lease):
    """All trials of a search, told in their order; this process runs those that nobody else is at."""
    place.mkdir(exist_ok=True)
    ledger = Ledger.open(url, "one search")
    claims = Claims(url, "one search", ledger, lease)
    trials = Trials(
        lambda: Here(run_slowly, place / "begun"),
        1,
        facts=list,
        cache=TrialCache(place / "cache"),
        listening=lambda: ([ledger, claims], claims),
        shared=True,
    )
    plans = [Plan(phases=(Phase(shares={"p": 1}),), seed=seed, label=f"trial {seed}") for seed in range(TRIALS)]
    scores = []
    with trials:
        for index in range(TRIALS):
            scores.append(trials.first(plans[index : index + trials.room]).score)
            (place / "told").write_text(str(index + 1))
    claims.close()
    assert scores == [seed / 100 for seed in range(TRIALS)]


CHILD = """
import sys
from pathlib import Path
sys.path.insert(0, {root!r})
from tests.search.test_shared_search import search
if __name__ == "__main__":
    search(sys.argv[1], Path(sys.argv[2]), 2.0)
"""


def start(url, place, script):
    return subprocess.Popen([sys.executable, str(script), url, str(place)])


def begun(place):
    path = place / "begun"
    return [int(line) for line in path.read_text().splitlines()] if path.exists() else []


def two_processes(url, tmp_path):
    script = tmp_path / "child.py"
    script.write_text(CHILD.format(root=str(ROOT)))
    one, two = tmp_path / "one", tmp_path / "two"
    first, second = start(url, one, script), start(url, two, script)
    try:
        deadline = time.monotonic() + 120
        while (len(begun(one)) < 5 or len(begun(two)) < 5) and time.monotonic() < deadline:
            time.sleep(0.05)
        first.send_signal(signal.SIGKILL)  # most likely while it is at a trial
        first.wait()
        assert second.wait(180) == 0
    finally:
        for child in (first, second):
            child.kill()
            child.wait()
    trials = Ledger.open(url, "one search").study.trials
    states = Counter(trial.state for trial in trials)
    done = [trial.user_attrs["seed"] for trial in trials if trial.state == optuna.trial.TrialState.COMPLETE]
    assert sorted(done) == list(range(TRIALS))  # none lost, none doubled
    assert states[optuna.trial.TrialState.RUNNING] == 0
    again = Counter(begun(one) + begun(two))
    lost = begun(one)[-1]
    assert {seed for seed, times in again.items() if times > 1} <= {lost}  # only what died with the first is run again
    assert states[optuna.trial.TrialState.FAIL] <= 1
    assert len(begun(one)) >= 5
    assert len(begun(two)) >= 5  # the control: both had a part in it
    return tmp_path


@needs_postgresql
@pytest.mark.cluster
def test_two_processes_share_a_search_through_postgresql(tmp_path):
    with server() as url:
        two_processes(url, tmp_path)
        bad = url.replace(PASSWORD, "wrong-secret")
        with pytest.raises(SettingsError) as refused:
            Ledger.open(bad, "x")
    assert "wrong-secret" not in str(refused.value)
    for path in tmp_path.rglob("*"):
        assert path.is_dir() or PASSWORD.encode() not in path.read_bytes()


@needs_postgresql
@pytest.mark.cluster
def test_the_command_shares_a_search_through_postgresql(tmp_path):
    """Two commands, each with a directory and a cache of its own: the recipe of one alone, and each trial run once."""
    more = ["-m", "task-modelling", "--set", "subsets=6", "--set", "train.epochs=1", "--workers", "1"]

    def command(name, storage):
        environment = {**os.environ, "SIDEQUEST_CACHE": str(tmp_path / f"cache-{name}"), "OMP_NUM_THREADS": "1"}
        run = [sys.executable, "-m", "sidequest", "select", "digits", *more, *storage, "-o", str(tmp_path / name)]
        return subprocess.Popen(run, env=environment)

    with server() as url:
        both = [command(name, ["--storage", url]) for name in ("one", "two")]
        assert [process.wait(300) for process in both] == [0, 0]
        (study,) = optuna.get_all_study_summaries(database_url(url))
        trials = optuna.load_study(study_name=study.study_name, storage=database_url(url)).trials
    assert command("alone", []).wait(300) == 0
    one, two, alone = ((tmp_path / name / "recipe.json").read_bytes() for name in ("one", "two", "alone"))
    assert one == two == alone
    done = [trial for trial in trials if trial.state == optuna.trial.TrialState.COMPLETE]
    assert len(done) == len(trials) == json.loads(alone)["cost"]["trials"]  # none was run by both
    for path in tmp_path.rglob("*"):
        assert path.is_dir() or PASSWORD.encode() not in path.read_bytes()


@needs_postgresql
@pytest.mark.cluster
def test_a_database_that_is_gone_is_a_sentence_and_the_same_command_goes_on(tmp_path):
    more = ["-m", "task-modelling", "--set", "subsets=8", "--set", "train.epochs=10", "--workers", "1"]

    def command(name, url):
        environment = {**os.environ, "SIDEQUEST_CACHE": str(tmp_path / f"cache-{name}"), "OMP_NUM_THREADS": "1"}
        run = [sys.executable, "-m", "sidequest", "select", "digits", *more, "--storage", url]
        run += ["-o", str(tmp_path / name)]
        return subprocess.Popen(run, env=environment, stderr=subprocess.PIPE, text=True)

    def wait_for_trials(name, number):
        journal = tmp_path / name / "journal.jsonl"
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            if journal.exists() and len(journal.read_text().splitlines()) >= number:
                return
            time.sleep(0.02)

    with server_and_control() as (url, control):
        process = command("stopped", url)
        wait_for_trials("stopped", 2)
        control("stop")
        _, said = process.communicate(timeout=300)
        assert process.returncode == 1
        assert "does not answer any more" in said
        assert "Traceback" not in said
        assert PASSWORD not in said
        control("start")
        process = command("stopped", url)  # the same command goes on
        wait_for_trials("stopped", 4)
        assert process.wait(300) == 0
    process = command("alone", f"sqlite:///{tmp_path}/trials.db")
    assert process.wait(300) == 0
    stopped, alone = ((tmp_path / name / "recipe.json").read_bytes() for name in ("stopped", "alone"))
    assert stopped == alone


@pytest.mark.integration
def test_who_slept_past_a_lease_leaves_the_trial_to_who_took_it(tmp_path):
    plan = Plan(phases=(Phase(shares={"p": 1}),), seed=0, label="a trial")
    for order in ("sleeper ends first", "sleeper ends last"):
        url = f"sqlite:///{tmp_path}/{order[-5:]}.db"
        sleeper, other = [(ledger, Claims(url, "s", ledger, 2.0)) for ledger in (Ledger.open(url, "s") for _ in "12")]
        assert sleeper[1].claim("a")
        sleeper[0].begun(plan, "a")
        assert not other[1].claim("a")  # the control: nobody takes it from who is awake
        sleeper[1]._closed.set()  # nothing is renewed, as in a machine that sleeps
        time.sleep(2.5)
        assert other[1].claim("a")
        other[0].begun(plan, "a")
        for ledger, claims in (sleeper, other) if order.endswith("first") else (other, sleeper):
            ledger.ended(plan, "a", TrialResult(0.5, [], Meter()))
            claims.ended(plan, "a", TrialResult(0.5, [], Meter()))
        other[1].close()
        states = [trial.state for trial in other[0].study.trials]
        assert states == [optuna.trial.TrialState.FAIL, optuna.trial.TrialState.COMPLETE]


@pytest.mark.parametrize("lease", ["soon", "0", "-5", "nan", "inf", "0.2"])
def test_a_bad_lease_is_refused_before_any_work(tmp_path, monkeypatch, lease):
    monkeypatch.setenv("SIDEQUEST_LEASE", lease)
    monkeypatch.setenv("SIDEQUEST_CACHE", str(tmp_path / "cache"))
    arguments = [
        "select",
        "digits",
        "-m",
        "single",
        "--storage",
        f"sqlite:///{tmp_path}/x.db",
        "-o",
        str(tmp_path / "x"),
    ]
    result = CliRunner().invoke(app, arguments)
    assert isinstance(result.exception, SettingsError)
    assert f"SIDEQUEST_LEASE: seconds from 1 to 86400, found '{lease}'" in str(result.exception)
    assert not (tmp_path / "x").exists()


@pytest.mark.integration
def test_a_database_that_breaks_in_between_is_a_sentence(tmp_path, monkeypatch):
    """Its file is overwritten after the second trial."""
    from sidequest.search.trials import LocalTrials

    monkeypatch.setenv("SIDEQUEST_CACHE", str(tmp_path / "cache"))
    ran, run = [], LocalTrials._run

    def run_and_break(self, plan):
        ran.append(plan)
        if len(ran) == 2:
            (tmp_path / "x.db").write_bytes(b"no database" * 1000)
        return run(self, plan)

    monkeypatch.setattr(LocalTrials, "_run", run_and_break)
    url = f"sqlite:///{tmp_path}/x.db"
    few = ["--set", "subsets=3", "--set", "train.epochs=0.2", "--workers", "1"]
    command = ["select", "digits", "-m", "task-modelling", *few, "-o", str(tmp_path / "x"), "--storage", url]
    result = CliRunner().invoke(app, command)
    assert isinstance(result.exception, WorldError)
    assert "does not answer any more" in str(result.exception)
    assert "the same command goes on" in str(result.exception)


@pytest.mark.integration
def test_a_claim_is_one_process_s_until_its_lease_runs_out(tmp_path):
    url = f"sqlite:///{tmp_path}/trials.db"
    ledger = Ledger.open(url, "s")
    one, two = Claims(url, "s", ledger, 0.5), Claims(url, "s", ledger, 0.5)
    assert one.claim("a")
    assert not two.claim("a")
    assert two.claim("b")  # the control: another trial is free
    time.sleep(0.8)
    assert not two.claim("a")  # its holder lives and has renewed it
    one.close()  # as if it had died: nothing is renewed any more
    deadline = time.monotonic() + 10
    while not two.claim("a") and time.monotonic() < deadline:
        time.sleep(0.1)
    assert "a" in two._held
    two.close()


def test_a_password_reaches_no_message_and_no_command(monkeypatch):
    from sidequest.cli.arguments import own_command

    url = "postgresql://me:s3cret@host:5432/trials"
    assert without_password(f"--storage={url}") == "--storage=postgresql://me:***@host:5432/trials"
    assert without_password("postgresql://me@host/trials") == "postgresql://me@host/trials"
    monkeypatch.setattr(sys, "argv", ["sidequest", "select", "digits", "--storage", url])
    assert "s3cret" not in own_command()
    assert "me:***@host" in own_command()
    # Not as they should be written, but as they are.
    for secret in ("s3@cret", "s3 cret", "s3/c:ret", "s3'cret", 's3"cret'):
        bad = f"postgresql://me:{secret}@host/trials?sslmode=require&sslpassword=s3cret"
        for given in (["--storage", bad], [f"--storage={bad}"]):
            monkeypatch.setattr(sys, "argv", ["sidequest", "select", "digits", *given])
            assert own_command().count("ret") == 0
            assert "postgresql://me:***@host/trials?sslmode=" in own_command()
        assert "ret" not in str(bad_storage(bad, ValueError(f"no {secret}")))


def test_the_driver_of_the_extra_is_meant():
    pytest.importorskip("psycopg")
    assert database_url("postgresql://me@host/x") == "postgresql+psycopg://me@host/x"
    assert database_url("sqlite:///x.db") == "sqlite:///x.db"
