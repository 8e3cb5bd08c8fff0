"""Same seed, same machine: the same bytes in a fresh process, with any number of workers, warm or cold cache, candidates in any
order. A control in each test must differ."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import yaml

from sidequest.files import read_json, write_json
from tests.faults.cases import SEARCH, sets
from tests.faults.killing import PLAIN_PAGE
from tests.faults.runner import CACHE, DIGEST, FOLDER, differences, left_by, run_afresh


@pytest.fixture(scope="module")
def ran(server, tmp_path_factory):
    """What a command leaves in a new folder. cache: one that is there already."""
    base = tmp_path_factory.mktemp("determinism")

    def run(arguments, cache: Path | None = None):
        place = base / f"run-{len(list(base.iterdir()))}"
        place.mkdir()
        if cache is not None:
            shutil.copytree(cache, place / CACHE)
        done = server.run(place, arguments, planted=PLAIN_PAGE)
        assert done.code == 0, done.output
        return left_by(place), place

    return run


def results(left):
    """The files that are results, whichever their names: recipes, weights, comparisons, tables."""
    names = (
        "recipe.json",
        "comparison.json",
        "truth.json",
        "state.safetensors",
        "model.safetensors",
        "predictions.npz",
    )
    found = {name: content for name, content in left.items() if name.endswith(names)}
    if "truth.json" in found:  # it says the command that made it, which says the number of workers
        named = json.loads(found["truth.json"])
        found["truth.json"] = [(key, value) for key, value in named.items() if key not in ("command", DIGEST)]
    return found


COMMANDS = {
    "select": ("select", "{images}", "-m", "heu-size", "-o", "run"),
    "compare": ("compare", "{words}", "-m", "heu-type", "--seeds", "1", "-o", "run"),
    "oracle": ("oracle", "{images}", "--seeds", "2", "-o", "truth.json"),
    "search": ("select", "{images}", "-m", "autosem-no-stage1", "-o", "run", *sets(*SEARCH)),
}


def given(name, suites, workers=1, *more):
    named = {"{images}": str(suites / "images" / "suite.yaml"), "{words}": str(suites / "words" / "suite.yaml")}
    return [*(named.get(part, part) for part in COMMANDS[name]), "--workers", str(workers), *more]


@pytest.mark.parametrize(
    "name", ["select", *(pytest.param(name, marks=pytest.mark.faults) for name in ("compare", "oracle", "search"))]
)
def test_workers_and_a_warm_cache_change_nothing(name, ran, suites):
    cold, place = ran(given(name, suites))
    assert results(cold)
    assert results(ran(given(name, suites, 2))[0]) == results(cold)
    assert results(ran(given(name, suites), place / CACHE)[0]) == results(cold)
    assert results(ran(given(name, suites, 2), place / CACHE)[0]) == results(cold)
    other = ("--seeds", "3") if name in ("compare", "oracle") else ("--seed", "1")
    assert results(ran(given(name, suites, 1, *other))[0]) != results(cold)


@pytest.mark.faults
@pytest.mark.parametrize("name", ["select", "compare"])
def test_a_fresh_process_changes_nothing(name, ran, suites, tmp_path):
    here, _ = ran(given(name, suites))
    (tmp_path / FOLDER).mkdir()
    done = run_afresh(tmp_path, given(name, suites), environment={"PYTHONHASHSEED": "77"})
    assert done.code == 0, done.output
    afresh = left_by(tmp_path)
    assert results(afresh) == results(here)
    assert [name for name in differences(here, afresh) if not name.startswith("run/tables/")] == []


@pytest.mark.parametrize(
    "method", ["heu-size", *(pytest.param(name, marks=pytest.mark.faults) for name in ("auto", "exp3s", "alphavil"))]
)
def test_the_order_of_candidates_changes_nothing(method, ran, suites):
    folder = suites / "images"
    plain = yaml.safe_load((folder / "suite.yaml").read_text())
    plain["tasks"] = dict(reversed(plain["tasks"].items()))
    other = folder / "reversed.yaml"
    other.write_text(yaml.safe_dump(plain, sort_keys=False))
    more = {"exp3s": sets("steps=8", "round_steps=4"), "alphavil": sets("epochs=2")}.get(method, [])
    arguments = ["-m", method, "-o", "run", "--workers", "1", *more]
    first = results(ran(["select", str(folder / "suite.yaml"), *arguments])[0])
    assert results(ran(["select", str(other), *arguments])[0]) == first
    plain["tasks"]["parity"]["limit"] = 20  # the control: other data
    other.write_text(yaml.safe_dump(plain, sort_keys=False))
    assert results(ran(["select", str(other), *arguments])[0]) != first


# Trainings that are kept, run again


def falsify(cache: Path, kind: str) -> None:
    """Another score in every kept entry of a kind, sealed as if it had been computed."""
    for path in sorted(cache.glob(f"{kind}/*/*/entry.json")):
        record = read_json(path)
        record["data"]["score"] += 0.25
        write_json(path, record)


@pytest.mark.parametrize(
    ("name", "kind", "workers"),
    [
        ("select", "trials", 1),
        pytest.param("compare", "finals", 1, marks=pytest.mark.faults),
        pytest.param("search", "trials", 2, marks=pytest.mark.faults),
        pytest.param("oracle", "finals", 2, marks=pytest.mark.faults),
    ],
)
def test_a_falsified_training_is_found_by_running_it_again(name, kind, workers, ran, server, suites):
    """What is true passes the same check, and what is false passes without it."""
    whole, place = ran(given(name, suites))
    again, _ = ran([*given(name, suites, workers), "--recheck", "1"], place / CACHE)
    assert results(again) == results(whole)
    falsify(place / CACHE, kind)
    believed = place.with_name(f"{place.name}-believed")
    checked = place.with_name(f"{place.name}-checked")
    for each in (believed, checked):
        each.mkdir()
        shutil.copytree(place / CACHE, each / CACHE)
    assert server.run(believed, given(name, suites, workers), planted=PLAIN_PAGE).code == 0
    done = server.run(checked, [*given(name, suites, workers), "--recheck", "1"], planted=PLAIN_PAGE)
    assert done.code == 1, done.output
    assert not done.traceback, done.output
    assert "a training that was run again came out otherwise" in " ".join(done.output.split())  # a table is folded
