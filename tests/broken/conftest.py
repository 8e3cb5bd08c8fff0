"""Sound inputs made once, and a check that a broken one is refused: exit code 2, a message that says where and what, no
traceback, nothing left behind, and soon."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.helpers.command_line import everything_in, run_command
from tests.helpers.good_inputs import write_images, write_texts


@dataclass(frozen=True)
class Good:
    """texts, images: suite files. run: of `random-data`, with row ids beside its recipe, trained. compared: a comparison. log: a
    policy log. truth: a truth table. model: the exported model of `run`."""

    texts: Path
    images: Path
    run: Path
    compared: Path
    log: Path
    truth: Path

    @property
    def model(self) -> Path:
        return self.run / "model"


@pytest.fixture(scope="session")
def good(tmp_path_factory) -> Good:
    place = tmp_path_factory.mktemp("good")
    made = Good(
        write_texts(place / "texts"),
        write_images(place / "images"),
        place / "run",
        place / "compared",
        place / "exp3s" / "logs" / "exp3s.parquet",
        place / "truth.json",
    )
    before = os.environ.get("SIDEQUEST_CACHE")
    os.environ["SIDEQUEST_CACHE"] = str(place / "cache")
    try:
        for arguments in (
            ["select", made.images, "-m", "random-data", "-o", made.run, "--set", "rows=10", "--set", "count=20"],
            ["train", made.run],
            ["select", made.images, "-m", "exp3s", "-o", place / "exp3s"],
            ["compare", made.images, "--seeds", 1, "-o", made.compared, "--workers", 1],
            ["oracle", made.images, "--seeds", 2, "-o", made.truth, "--workers", 1],
        ):
            ended = run_command(*arguments, seconds=200)
            assert ended.code == 0, ended.output
    finally:
        if before is not None:
            os.environ["SIDEQUEST_CACHE"] = before
    return made


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
