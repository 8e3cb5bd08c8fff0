"""Sound inputs made once, and a check that a broken one is refused: exit code 2, a message that says where and what, no
traceback, nothing left behind, and soon."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from tests.helpers.command_line import everything_in, run_command
from tests.helpers.good_runs import Good, make_good


@pytest.fixture(scope="session")
def good(tmp_path_factory) -> Good:
    return make_good(tmp_path_factory.mktemp("good"))


@pytest.fixture
def place(tmp_path, monkeypatch) -> Path:
    """An empty working directory. It is the home directory too, so that what is left there is seen."""
    inside = tmp_path / "place"
    inside.mkdir()
    monkeypatch.chdir(inside)
    monkeypatch.setenv("HOME", str(inside))
    return inside


Refused = Callable[..., None]


@pytest.fixture
def refused(place) -> Refused:
    """`refused(arguments, says)`: the command refuses its input as it should, and its message has all of `says`."""

    def check(arguments: Iterable[object], says: Iterable[str], *, seconds: float = 20.0) -> None:
        before = everything_in(place)
        ended = run_command(*arguments, seconds=seconds)
        assert not ended.raw, "a traceback: " + "\n".join(ended.output.splitlines()[-4:])
        assert ended.code == 2, f"exit code {ended.code}\n{ended.output}"
        flat = " ".join(ended.output.replace("│", " ").split())
        missing = [part for part in says if part not in flat and part.replace(" ", "") not in flat.replace(" ", "")]
        assert not missing, f"not said: {missing}\n{ended.output}"
        assert len(ended.output) < 20_000, "a message is for a person to read"
        after = everything_in(place)
        changed = {name for name in before | after if before.get(name) != after.get(name)}
        assert not changed, f"left behind or changed: {sorted(changed)}\n{ended.output}"

    return check


def copy_of(source: Path, target: Path) -> Path:
    """A copy to be broken."""
    if source.is_dir():
        shutil.copytree(source, target)
    else:
        shutil.copyfile(source, target)
    return target
