"""The tutorial was recorded by its script; what trains nothing is recorded again here and must be the same."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from sidequest.cli import app
from tests.helpers import ROOT

SCRIPT: dict[str, Any] = runpy.run_path(str(ROOT / "docs" / "tutorial" / "make_tutorial.py"))
PAGE = (ROOT / "docs" / "tutorial" / "index.md").read_text(encoding="utf-8")


def test_the_page_is_made_of_the_scripts_steps() -> None:
    blocks = re.findall(r"^```\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)
    assert len(blocks) == len(SCRIPT["STEPS"])
    for block, step in zip(blocks, SCRIPT["STEPS"], strict=True):
        assert block.startswith(SCRIPT["typed"](step.command) + "\n")
        assert step.before.strip() in PAGE


@pytest.mark.integration
def test_what_the_page_shows_of_cheap_steps_is_what_they_print(tmp_path: Path) -> None:
    place = SCRIPT["prepared"](tmp_path / "day")
    cheap = [step for step in SCRIPT["STEPS"] if step.cheap]
    assert len(cheap) >= 4
    for step in cheap:
        assert SCRIPT["run"](step, place, tmp_path) in PAGE, step.command


def test_every_option_of_the_page_is_one() -> None:
    commands = get_command(app).commands  # type: ignore[attr-defined]
    found = re.findall(r"^\$ sidequest ([^|\n]*)", PAGE, flags=re.MULTILINE)
    assert {words.split()[0] for words in found} >= {"init", "check", "compare", "train", "predict", "select", "fit"}
    for words in found:
        name, *rest = re.sub(r"\d?>\S+", "", words).split()
        known = {option for parameter in commands[name].params for option in parameter.opts}
        assert {word for word in rest if word.startswith("-")} <= known, words


def test_no_path_of_a_machine_is_on_the_page() -> None:
    assert not re.search(r"/(tmp|home|root|work)/", PAGE)
