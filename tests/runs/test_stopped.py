"""A selection that somebody stops: what it could already say stands beside what it goes on with, and is gone at its end."""

from __future__ import annotations

import pytest

from sidequest.cli.select import telling_the_answer_so_far
from sidequest.errors import SettingsError
from sidequest.progress import Progress
from sidequest.recipe import Recipe
from sidequest.runs.directory import SO_FAR
from sidequest.runs.selecting import select
from sidequest.runs.setup import Setup
from sidequest.runs.sources import open_source
from tests.helpers.command_line import everything_in
from tests.helpers.few_digits import few_digits

QUICK = {"epochs": 2, "max_batches": 8}


class Stopped(Progress):
    """Somebody presses Ctrl-C after so many rounds and trials."""

    def __init__(self, after: int) -> None:
        self._after = after

    def round(self, done, total, entry, x):
        if done == self._after:
            raise KeyboardInterrupt


def run(directory, method="auto", after=None, **settings):
    setup = Setup.of(few_digits(), train=QUICK)
    return select(
        setup, method, settings=settings, directory=directory, progress=None if after is None else Stopped(after)
    )


def stopped(directory, **asked):
    with pytest.raises(KeyboardInterrupt):
        run(directory, **asked)
    return directory / SO_FAR / "recipe.json"


def test_a_stopped_selection_answers_by_what_it_has_seen_and_goes_on_to_the_same_bytes(tmp_path, capsys):
    path = stopped(tmp_path / "run", after=4, effort=1)
    recipe = Recipe.read(path)
    assert recipe.primary in recipe.verdict
    assert "stopped before its end" in recipe.evidence["notes"][-1]
    assert recipe.cost.trials == 4
    with pytest.raises(KeyboardInterrupt), telling_the_answer_so_far(tmp_path / "run", ["--suite", "my suite"]):
        raise KeyboardInterrupt
    said = capsys.readouterr().err
    assert f"so far: {recipe.verdict}" in said
    assert f"sidequest train {path} --suite 'my suite' -o " in said
    with pytest.raises(SettingsError, match=r"stopped before its end.*or train by what it knew: sidequest train"):
        open_source(tmp_path / "run")
    whole, continued = run(tmp_path / "whole", effort=1), run(tmp_path / "run", effort=1)
    assert continued.to_json() == whole.to_json() != recipe.to_json()
    assert set(everything_in(tmp_path / "run")) == set(everything_in(tmp_path / "whole"))  # nothing of it is left


def test_what_can_say_nothing_before_its_end_leaves_nothing(tmp_path, capsys):
    assert not stopped(tmp_path / "run", method="heu-size", after=1).exists()  # its order is not complete
    with pytest.raises(KeyboardInterrupt), telling_the_answer_so_far(tmp_path / "run", []):
        raise KeyboardInterrupt
    with pytest.raises(SettingsError, match=r"not a recipe|no such|is needed"):
        open_source(tmp_path / "run")
    assert capsys.readouterr().err == ""
