"""Start and the tutorial were recorded by their scripts; what trains nothing is recorded again here and must be the same."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from sidequest.cli import app
from tests.helpers import ROOT

TUTORIAL: dict[str, Any] = runpy.run_path(str(ROOT / "docs" / "tutorial" / "make_tutorial.py"))
START: dict[str, Any] = runpy.run_path(str(ROOT / "docs" / "tutorial" / "make_start.py"))
PAGES = pytest.mark.parametrize("script", [START, TUTORIAL], ids=["start", "tutorial"])
PAGE = TUTORIAL["PAGE"].read_text(encoding="utf-8")


@PAGES
def test_the_page_is_made_of_the_scripts_steps(script: dict[str, Any]) -> None:
    page = script["PAGE"].read_text(encoding="utf-8")
    blocks = re.findall(r"^```\n(\$.*?)^```", page, flags=re.MULTILINE | re.DOTALL)
    assert len(blocks) == len(script["STEPS"])
    for block, step in zip(blocks, script["STEPS"], strict=True):
        assert block.startswith(TUTORIAL["typed"](step.command) + "\n")
        assert step.before.strip() in page
    assert page.endswith(script.get("ENDING", ""))


@pytest.mark.integration
@PAGES
def test_what_the_page_shows_of_cheap_steps_is_what_they_print(script: dict[str, Any], tmp_path: Path) -> None:
    page = script["PAGE"].read_text(encoding="utf-8")
    place = TUTORIAL["prepared"](tmp_path / "day")
    cheap = [step for step in script["STEPS"] if step.cheap]
    assert len(cheap) >= 2
    for step in cheap:
        assert TUTORIAL["run"](step, place, tmp_path) in page, step.command


def test_every_option_of_the_page_is_one() -> None:
    commands = get_command(app).commands  # type: ignore[attr-defined]
    found = re.findall(r"^\$ sidequest ([^|\n]*)", PAGE, flags=re.MULTILINE)
    assert {words.split()[0] for words in found} >= {"init", "check", "compare", "train", "predict", "select", "fit"}
    for words in found:
        name, *rest = re.sub(r"\d?>\S+", "", words).split()
        known = {option for parameter in commands[name].params for option in parameter.opts}
        assert {word for word in rest if word.startswith("-")} <= known, words


@PAGES
def test_no_path_of_a_machine_is_on_the_page(script: dict[str, Any]) -> None:
    assert not re.search(r"/(tmp|home|root|work)/", script["PAGE"].read_text(encoding="utf-8"))
