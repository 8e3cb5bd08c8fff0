"""`--processes N`: what a user sees is that of one process, and nobody is left running, whoever ends it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.faults.runner import FOLDER, place_environment, plain_environment, run_afresh, temporary
from tests.helpers import ROOT

# A process of a training: says who it is, and does what is written for its rank.
CHILD = """
import os, signal, sys, time
from pathlib import Path
from sidequest.cli.launching import end_with_launcher
end_with_launcher()
rank = os.environ["RANK"]
print(f"rank {rank} of {os.environ['WORLD_SIZE']}", file=sys.stderr, flush=True)
Path(f"rank-{rank}").write_text(str(os.getpid()))
what = sys.argv[1 + int(rank)]
if what == "wait":
    time.sleep(60)
if what == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
sys.exit(int(what) if what.isdigit() else 0)
"""
PARENT = "import sys; from sidequest.cli.launching import run_together; sys.exit(run_together(sys.argv[1:], 2))"


def launch(place, *what):
    (place / "child.py").write_text(CHILD)
    return subprocess.Popen(
        [sys.executable, "-c", PARENT, sys.executable, "child.py", *what],
        cwd=place,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}"},
        stderr=subprocess.PIPE,
        text=True,
        # Where the tests themselves run in the background, Ctrl-C is ignored, and processes inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


@pytest.mark.parametrize(
    ("what", "code", "says"),
    [
        (("0", "0"), 0, "rank 0 of 2\n"),
        (("2", "2"), 2, "rank 0 of 2\n"),
        (("3", "wait"), 3, "rank 0 of 2\n"),
        (("wait", "4"), 4, "rank 0 of 2\nrank 1 of 2\n"),  # what the first cannot say
        (
            ("killed", "wait"),
            1,
            "rank 0 of 2\nsidequest: one of the processes was ended by SIGKILL. What is done is kept\n",
        ),
    ],
)
def test_the_first_process_speaks_and_its_code_is_the_command_s(what, code, says, tmp_path, monkeypatch):
    process = launch(tmp_path, *what)
    _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (code, says)
    assert not alive(tmp_path)


@pytest.mark.parametrize("name", ["SIGKILL", "SIGINT"])
def test_the_others_end_with_the_process_that_started_them(name, tmp_path):
    process = launch(tmp_path, "wait", "wait")
    wait_until(lambda: len(alive(tmp_path)) == 2)  # a file is there a moment before its number
    process.send_signal(getattr(signal, name))
    process.communicate(timeout=30)
    wait_until(lambda: not alive(tmp_path))


def alive(place: Path) -> list[int]:
    """The processes that have begun and run still; one that has ended and that nobody has asked about yet does not."""
    found = [int(path.read_text() or 0) for path in place.glob("rank-?")]
    return [process for process in found if (state := _state(process)) and state != "Z"]


def _state(process: int) -> str:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def wait_until(true, seconds=30.0):
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


# The command itself


@pytest.fixture(scope="module")
def chosen(suites, tmp_path_factory):
    """A place with a run of `all`, and what two processes make of it."""
    place = tmp_path_factory.mktemp("processes")
    made = run_afresh(
        place, ["select", str(suites / "words" / "suite.yaml"), "-m", "all", "-o", "run", "--workers", "1"]
    )
    assert made.code == 0, made.output
    done = run_afresh(place, ["train", "run", "-o", "whole", "--processes", "2"])
    assert done.code == 0, done.output
    return place


def weights(place, name):
    model = place / FOLDER / name / "model"
    return {path.name: path.read_bytes() for path in sorted(model.glob("*.safetensors"))}


@pytest.mark.faults
def test_bad_input_is_one_sentence(chosen):
    done = run_afresh(chosen, ["train", "run", "-o", "bad", "--processes", "2", "--set", "train.epochs=nan"])
    assert done.code == 2, done.output
    assert not done.traceback, done.output
    assert len(done.output.strip().splitlines()) == 1, done.output
    assert not (chosen / FOLDER / "bad").exists()


@pytest.mark.faults
@pytest.mark.parametrize(
    ("who", "name", "code"),
    [("all", "SIGTERM", 143), ("all", "SIGINT", 130), ("all", "SIGKILL", -9), ("0", "SIGKILL", 1), ("1", "SIGKILL", 1)],
)
def test_two_processes_that_are_stopped_go_on_to_the_same_weights(who, name, code, chosen, record_property):
    arguments = ["train", "run", "-o", f"{who}-{name}", "--processes", "2"]
    for_a_time = chosen / "temporary" / f"{who}-{name}"
    for_a_time.mkdir(parents=True)
    process = subprocess.Popen(
        [sys.executable, "-m", "sidequest", *arguments],
        cwd=chosen / FOLDER,
        env={**os.environ, **plain_environment(), **place_environment(chosen), "TMPDIR": str(for_a_time)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    out = chosen / FOLDER / f"{who}-{name}"
    wait_until(lambda: process.poll() is not None or list(out.glob("checkpoints/training/*/record.json")), 200)
    started = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    assert len(started) == 2, process.stdout.read()
    assert len(list(for_a_time.glob(".sidequest-rank.*"))) == 2  # the caches of both
    os.kill(process.pid if who == "all" else int(started[int(who)]), getattr(signal, name))
    output, _ = process.communicate(timeout=120)
    wait_until(lambda: all(_state(int(each)) in ("", "Z") for each in started))
    assert process.returncode == code, output
    assert "Traceback" not in output, output
    done = run_afresh(chosen, arguments, environment={"TMPDIR": str(for_a_time)})
    assert done.code == 0, done.output
    assert not list(for_a_time.iterdir())
    record_property("kills", 1)
    assert weights(chosen, f"{who}-{name}") == weights(chosen, "whole")
    assert not temporary(chosen)


@pytest.mark.faults
def test_another_seed_in_two_processes_gives_other_weights(chosen):
    done = run_afresh(chosen, ["train", "run", "-o", "other", "--processes", "2", "--seed", "5"])
    assert done.code == 0, done.output
    assert weights(chosen, "other") != weights(chosen, "whole")
