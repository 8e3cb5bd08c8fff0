"""A stored file that came to harm is computed again or refused by name; it never leads to another result without a word."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.faults.damaging import DAMAGES
from tests.faults.killing import PLAIN_PAGE
from tests.faults.runner import FOLDER, differences, left_by, temporary


@dataclass(frozen=True)
class Stored:
    """A file that a command reads.

    case: whose run left it. kept: what stays of that run: `all`; `cache`, and the command begins again; or `killed`, as a kill
        left it when it last replaced a file of this name. recovers: whether the command must come to the same result without it;
        else it may refuse. again: the command that reads it, if it is not the case's own.
    """

    case: str
    path: str
    kept: str = "cache"
    recovers: bool = True
    again: tuple[str, ...] = ()
    without: tuple[str, ...] = ()  # damages that say nothing here


TRAIN = ("train", "run", "-o", "out")
PREDICT = ("predict", "run/model", "{words}/mood-report.jsonl", "-o", "predicted.csv")

STORED = [
    Stored("images-heu-size", "cache/trials/*/*/entry.json"),
    Stored("images-compare", "cache/finals/*/*/entry.json"),
    Stored("images-compare", "cache/finals/*/*/*.npz"),
    Stored("images-tune", "cache/tunings/*/*/entry.json"),
    Stored("frozen-random-data", "cache/states/*/*.npy", again=("train", "run"), kept="all"),
    Stored("frozen-random-data", "cache/states/*/*.npz", again=("train", "run"), kept="all"),
    *(
        Stored("tuned-gradts-fg", f"cache/heads/*/*/{name}")
        for name in ("ids.npy", "total.npy", "values.npy", "entry.json")
    ),
    Stored("frozen-similarity", "cache/discriminators/**/state.safetensors"),
    Stored("frozen-similarity", "cache/discriminators/**/models/**/entry.json"),
    Stored("frozen-similarity", "cache/discriminators/**/arrays.npz"),
    *(
        Stored("images-alphavil", f"work/run/checkpoints/selection/*/{name}", kept="killed")
        for name in (
            "record.json",
            "learner/state.json",
            "learner/state.safetensors",
            "best/state.json",
            "best/state.safetensors",
        )
    ),
    *(
        Stored("images-train", f"work/run/checkpoints/training/*/{name}", kept="killed")
        for name in ("record.json", "now/state.json", "now/state.safetensors", "best/state.safetensors")
    ),
    Stored("images-exp3s", "work/run/journal.jsonl", kept="killed"),
    Stored("images-autosem-no-stage1", "work/run/trials.log", kept="killed"),
    Stored("images-exp3s", "work/run/run.json", kept="killed", recovers=False),
    Stored("images-compare", "work/run/heu-type/seed-0/outcome.json", kept="all"),
    Stored("images-compare", "work/run/heu-type/seed-0/predictions.npz", kept="all"),
    Stored("images-compare", "work/run/comparison.json", kept="all"),
    Stored("images-compare", "work/run/heu-type/seed-0/recipe.json", kept="all", recovers=False),
    Stored("images-alphavil", "work/run/trained/state.json", kept="all", recovers=False, again=TRAIN),
    Stored("images-alphavil", "work/run/trained/state.safetensors", kept="all", recovers=False, again=TRAIN),
    Stored("images-alphavil", "work/run/recipe.json", kept="all", recovers=False, again=TRAIN),
    Stored("frozen-random-data", "work/run/rows-*.npy", kept="all", recovers=False, again=TRAIN),
    Stored("frozen-random-data", "work/run/run.json", kept="all", recovers=False, again=TRAIN),
    Stored("frozen-train", "work/run/model/model.safetensors", kept="all", recovers=False, again=PREDICT),
    Stored("frozen-train", "work/run/model/sidequest.json", kept="all", recovers=False, again=PREDICT),
    Stored("frozen-train", "work/run/model/encoder/model.safetensors", kept="all", recovers=False, again=PREDICT),
    Stored("images-score", "work/truth.json", kept="all", recovers=False),
]
QUICK = ("flipped", "halved")  # of every third file


def parameters():
    """File by damage; some of them quick."""
    made = []
    for number, stored in enumerate(STORED):
        for damage in DAMAGES:
            quick = number % 3 == 0 and damage == QUICK[number % 2]
            name = f"{stored.case}-{stored.kept}-{stored.path.replace('/', ':')}-{damage}"
            made.append(pytest.param(stored, damage, id=name, marks=() if quick else pytest.mark.faults))
    return made


class Bench:
    """Places with finished and killed runs, made once and copied for every damage."""

    def __init__(self, server, every_case, suites, base: Path) -> None:
        self.server, self.cases, self.suites, self.base = server, every_case, suites, base
        self.wholes = {}

    def run(self, place: Path, arguments):
        named = [str(part).replace("{words}", str(self.suites / "words")) for part in arguments]
        return self.server.run(place, named, planted=PLAIN_PAGE)

    def start(self, stored: Stored, name: str) -> Path:
        """A copy of what is there before the damage."""
        case = self.cases[stored.case]
        if not case.whole:
            case.prepare(self.server, self.base, PLAIN_PAGE)
        source = case.base / "whole" if stored.kept != "killed" else self._killed(stored)
        place = self.base / "damaged" / name
        shutil.copytree(source, place)
        if stored.kept == "cache":
            shutil.rmtree(place / FOLDER)
            shutil.copytree(case.base / "start" / FOLDER, place / FOLDER)
        return place

    def _killed(self, stored: Stored) -> Path:
        """A run killed when two checkpoints were there: after the third was started."""
        case = self.cases[stored.case]
        place = case.base / "killed"
        if not place.exists():
            begun = [line.split(" ", 2) for line in case.operations]
            numbers = [
                int(number) for number, name, path in begun if name == "replace" and path.endswith("record.json")
            ]
            case.begin("killed")
            done = self.server.run(place, case.arguments, {"at": numbers[2], "do": "kill before"}, planted=PLAIN_PAGE)
            assert done.code == -9, done.output
        return place

    def whole(self, stored: Stored):
        """What the command leaves when nothing is damaged."""
        key = (stored.case, stored.again)
        if key not in self.wholes:
            place = self.start(stored, f"undamaged-{len(self.wholes)}")
            done = self.run(place, stored.again or self.cases[stored.case].arguments)
            assert done.code == 0, done.output
            self.wholes[key] = left_by(place)
        return self.wholes[key]


@pytest.fixture(scope="module")
def bench(server, every_case, suites, tmp_path_factory):
    return Bench(server, every_case, suites, tmp_path_factory.mktemp("damage"))


def damaged_file(place: Path, pattern: str) -> Path:
    """The last of the files: of checkpoints the newest."""
    return sorted(place.glob(pattern))[-1]


@pytest.mark.parametrize(("stored", "damage"), parameters())
def test_damage_is_noticed(stored, damage, bench, record_property):
    place = bench.start(stored, "now")
    try:
        expected = bench.whole(stored)
        path = damaged_file(place, stored.path)
        before = path.read_bytes()
        DAMAGES[damage](path)
        assert not path.exists() or path.read_bytes() != before
        record_property("damages", 1)
        done = bench.run(place, stored.again or bench.cases[stored.case].arguments)
        assert not done.traceback, done.output
        if done.code == 0:
            damaged = path.relative_to(place / FOLDER).as_posix() if (place / FOLDER) in path.parents else ""
            other = [name for name in differences(expected, left_by(place)) if name != damaged or stored.recovers]
            assert not other, f"silently other: {other}"
            assert not temporary(place)
        else:
            assert not stored.recovers, done.output
            assert done.code in (1, 2)
            assert path.name in done.output, done.output
            assert "Aborted" not in done.output
    finally:
        shutil.rmtree(place, ignore_errors=True)
