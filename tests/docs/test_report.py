"""The commands and the Python of docs/report.md work as they stand."""

import re
from pathlib import Path

from typer.main import get_command

from sidequest.cli import app
from sidequest.methods.base import Plan
from sidequest.recipe import Phase
from sidequest.search.ledger import Ledger
from sidequest.search.trials import TrialResult
from tests.helpers import ROOT

DOC = (ROOT / "docs" / "report.md").read_text(encoding="utf-8")


def test_the_commands_exist_with_their_options():
    commands = get_command(app).commands  # type: ignore[attr-defined]
    lines = re.findall(r"^sidequest (\w+)(.*)$", DOC, re.MULTILINE)
    assert len(lines) >= 3
    for name, rest in lines:
        known = {option for parameter in commands[name].params for option in parameter.opts}
        used = set(re.findall(r"(?<!\S)(--?[a-z]+)", rest.partition("#")[0]))
        assert used <= known, f"sidequest {name}: the page uses {used - known}"


def test_optuna_reads_the_ledger_as_the_page_says(tmp_path, monkeypatch, capsys):
    from sidequest.learning.meter import Meter

    monkeypatch.chdir(tmp_path)
    ledger = Ledger.open(Path("runs/autosem/trials.log"), "digits, autosem, seed 0")
    plan = Plan(phases=(Phase(shares={"p": 1, "a": 3}),))
    ledger.begun(plan, "key")
    ledger.ended(plan, "key", TrialResult(0.75, [], Meter()))
    (block,) = re.findall(r"```python\n(.*?)```", DOC, re.DOTALL)
    exec(compile(block, "report.md", "exec"), {})
    shown = capsys.readouterr().out
    assert shown.startswith("digits, autosem, seed 0 1 ")
    assert "values=[0.75]" in shown
    assert "'a': 0.75" in shown
