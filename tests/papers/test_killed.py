"""A process that is killed (SIGKILL) in stage 1 and again in stage 2, and started again, gives the same recipe bytes."""

import subprocess
import sys
import time

import pytest

from tests.helpers import ROOT

SETTINGS = {"rounds": 30, "batches": 2, "trials": 8, "initial": 4}

CHILD = """
import sys
from pathlib import Path
sys.path.insert(0, {root!r})
from tests.papers.test_killed import run_autosem
run_autosem(Path(sys.argv[1]), lambda done, total, entry, meter: print(sorted(entry), flush=True))
"""


def run_autosem(directory, on_round=None):
    """AutoSeM on a small torch model with batch-norm and dropout, whose every state must come back."""
    from sidequest.learning.fit import single_run_work
    from sidequest.methods import get_method
    from sidequest.methods.base import Pool
    from sidequest.runs.driver import run_method
    from sidequest.search.executors import Here
    from sidequest.search.ledger import Ledger
    from sidequest.search.parallel_trials import Trials
    from sidequest.search.trials import LocalTrials, TrialCache
    from sidequest.settings import TrainSettings
    from tests.helpers.tiny import tiny_learner

    train = TrainSettings(batch_size=16, epochs=3)
    learner = tiny_learner(epochs=3)
    cls = get_method("autosem")
    cards = {name: task.card for name, task in learner.suite.tasks.items()}
    local = LocalTrials(learner, train, facts=list, cache=TrialCache(directory / "cache"))
    recipe = run_method(
        cls(cls.Settings(**SETTINGS), seed=1),
        learner,
        Pool(learner.primary, cards),
        Trials(
            lambda: Here(lambda runner, plan: runner.run([plan])[0], local),
            1,
            facts=list,
            cache=TrialCache(directory / "cache"),
            listening=lambda: ([Ledger.open(directory / "trials.log", "s")], None),
        ),
        single_run_work=single_run_work(70, 40, train),
        directory=directory,
        checkpoint_seconds=0.02,
        on_round=on_round,
    )
    recipe.write(directory / "recipe.json")


def kill_when(directory, script, seen):
    """Start the run and kill it as soon as `seen(line, count)` of its progress is true; whether it was killed in time."""
    child = subprocess.Popen([sys.executable, str(script), str(directory)], stdout=subprocess.PIPE, text=True)
    for count, line in enumerate(child.stdout, start=1):
        if seen(line, count):
            child.kill()
            break
    child.stdout.close()
    return child.wait() == -9


@pytest.mark.slow  # `tests/faults` kills the same method in the default tier, in a process that has its imports already
def test_killed_in_both_stages_and_resumed_to_the_same_bytes(tmp_path):
    script = tmp_path / "child.py"
    script.write_text(CHILD.format(root=str(ROOT)))
    run_autosem(tmp_path / "whole")
    killed = tmp_path / "killed"
    assert kill_when(killed, script, lambda line, count: "arm" in line and count == 12)
    assert list((killed / "checkpoints" / "selection").glob("*/record.json"))
    assert not (killed / "trials.log").exists()  # stage 2 had not begun
    assert kill_when(killed, script, lambda line, count: "mixture" in line)
    assert (killed / "trials.log").exists()
    assert not (killed / "recipe.json").exists()
    run_autosem(killed)
    assert (killed / "recipe.json").read_bytes() == (tmp_path / "whole" / "recipe.json").read_bytes()


@pytest.mark.slow
def test_the_command_killed_and_given_again(tmp_path, monkeypatch):
    """The same through the command line, on the digits suite: killed when the journal shows a round, then a trial."""

    def start(directory, cache):
        monkeypatch.setenv("SIDEQUEST_CACHE", str(tmp_path / cache))
        settings = ["rounds=30", "batches=4", "trials=8", "initial=4", "train.epochs=2"]
        options = [option for setting in settings for option in ("--set", setting)]
        program = [sys.executable, "-c", "from sidequest.cli import main; main()"]
        command = [*program, "select", "digits", "-m", "autosem", "-o", str(directory)]
        return subprocess.Popen([*command, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    assert start(tmp_path / "whole", "cache-a").wait() == 0
    for sign in ('"arm"', '"mixture"'):
        child = start(tmp_path / "killed", "cache-b")
        journal = tmp_path / "killed" / "journal.jsonl"
        while not (journal.exists() and sign in journal.read_text()):
            assert child.poll() is None
            time.sleep(0.02)
        child.kill()
        assert child.wait() == -9
    assert start(tmp_path / "killed", "cache-b").wait() == 0
    for name in ("recipe.json", "journal.jsonl"):
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
