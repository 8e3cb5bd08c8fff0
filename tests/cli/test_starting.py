"""Starting and stopping: what a command imports, its version, the table of methods, and Ctrl-C."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sidequest import __version__
from sidequest.methods import METHODS

DATA = Path(__file__).resolve().parents[2] / "docs" / "tutorial" / "data"


def sidequest(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "sidequest", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env=os.environ | environment, check=False)


def imported(*arguments: object) -> set[str]:
    """The packages that a command has imported when it ends."""
    code = (
        "import atexit, json, sys\n"
        "atexit.register(lambda: print(json.dumps(sorted(sys.modules)), file=sys.stderr))\n"
        f"sys.argv = {['sidequest', *map(str, arguments)]!r}\n"
        "from sidequest.cli import main\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(json.loads(done.stderr.splitlines()[-1]))


def test_help_imports_nothing_heavy() -> None:
    assert not imported("train", "--help") & {"numpy", "pyarrow", "torch", "transformers", "pandas"}


def test_a_check_of_files_imports_neither_torch_nor_pandas(tmp_path: Path) -> None:
    suite = tmp_path / "suite.yaml"
    assert sidequest("init", DATA / "nli.jsonl", "-o", suite).returncode == 0
    modules = imported("check", suite)
    assert not modules & {"torch", "transformers", "pandas", "scipy", "sklearn", "datasets"}
    assert "pyarrow" in modules


def test_the_list_of_methods_imports_no_learner_and_no_scipy_stats() -> None:
    assert not imported("methods") & {"torch", "transformers", "pandas", "scipy.stats"}


def test_the_list_of_commands_says_what_each_does_in_whole_sentences(run) -> None:
    _, text, _ = run("--help")
    assert not re.search(r"\.\.\.$", text.split("Commands:")[1], re.MULTILINE)
    assert "Validate a suite" in text


def test_a_warning_is_a_sentence_without_a_line_of_python() -> None:
    code = (
        "import sys, warnings\n"
        "from sidequest import cli\n"
        "def warn():\n"
        "    warnings.warn_explicit('no page', UserWarning, cli.__file__, 1)\n"
        "    warnings.warn_explicit('old', UserWarning, '/elsewhere/other.py', 1)\n"
        "cli._all_commands = lambda: warn\n"
        "cli.main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.splitlines()[0] == "warning: no page"
    assert "/elsewhere/other.py:1: UserWarning: old" in done.stderr


def test_the_version() -> None:
    assert sidequest("--version").stdout == f"sidequest {__version__}\n"


@pytest.mark.parametrize("columns", ["80", "50"])
def test_names_of_methods_are_never_cut_and_needs_are_models(run, monkeypatch, columns: str) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    _, text, _ = run("methods")
    for name in METHODS:
        assert re.search(rf"│ {re.escape(name)} +│", text), name
    assert "HeadImportance" not in text
    (exp3s,) = (line for line in text.splitlines() if " exp3s " in line)
    assert "any" in exp3s.split("│")[3]  # every kind of model has what it needs


@pytest.mark.integration
def test_ctrl_c_says_how_to_go_on_and_ends_with_130(tmp_path: Path) -> None:
    out = tmp_path / "a run"
    arguments = ["select", "digits", "-m", "heu-size", "-o", str(out), "--set", "train.epochs=400"]
    process = subprocess.Popen(
        [sys.executable, "-m", "sidequest", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A shell starts background jobs with Ctrl-C ignored, and children inherit that: these tests may be such a job.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    deadline = time.monotonic() + 120
    while not (out / "run.json").exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "stopped. What is done is kept; to go on: sidequest select digits -m heu-size -o " in errors
    assert f"'{out}' --set train.epochs=400" in errors  # quoted, so that it can be pasted
    assert "Traceback" not in errors


@pytest.mark.integration
def test_a_dry_run_says_what_it_would_cost_and_leaves_nothing(run, few_digits, tmp_path: Path) -> None:
    out = tmp_path / "run"
    code, text, errors = run("select", "digits", "-m", "heu-size", "-o", out, "--dry-run", "--tune", "5")
    assert code == 0, errors
    assert re.search(r"choosing by heu-size, \d+ trials: [\d,]+ batches, [\d.]+x", text)
    assert re.search(r"about .* with (one process|\d+ processes)", text)
    assert "--tune 5: up to 5 trainings of the primary come on top" in text
    assert not out.exists()
    code, _, errors = run("select", "digits", "-m", "gradts-thres", "-o", out, "--dry-run")
    assert code == 2
    assert "attention heads" in errors
