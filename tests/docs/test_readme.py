"""README's Python runs as it stands, and its commands exist."""

import re

import pytest
from typer.main import get_command

from sidequest.cli import app
from tests.helpers import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.integration
@pytest.mark.parametrize("rows", ["few", pytest.param("all", marks=pytest.mark.slow)])
def test_the_python_of_readme_runs(request, capsys, tmp_path, monkeypatch, rows):
    if rows == "few":
        request.getfixturevalue("few_digits")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, "README.md", "exec"), {})
    printed = capsys.readouterr().out
    assert "Verdict:" in printed
    assert "Model of" in printed


def test_the_commands_of_readme_exist_with_their_options():
    commands = get_command(app).commands  # type: ignore[attr-defined]
    lines = re.findall(r"^sidequest (\w+)(.*)$", README, re.MULTILINE)
    assert len(lines) >= 7
    for name, rest in lines:
        known = {option for parameter in commands[name].params for option in parameter.opts}
        used = set(re.findall(r"(?<!\S)(--?[a-z]+)", rest.partition("#")[0]))
        assert used <= known, f"sidequest {name}: README uses {used - known}"
