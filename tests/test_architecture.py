"""The drawing of the house is true: every module is in a layer, every room is on the map, no file is long, all is packed and
declared."""

import ast
import re
import statistics
import sys
import tomllib
from collections import defaultdict
from importlib.metadata import packages_distributions
from pathlib import Path, PurePosixPath

from tests.helpers import ROOT

SOURCE = ROOT / "src" / "sidequest"
LONGEST = 350  # lines
USUAL = 108  # lines of the median file, at most


def modules():
    for path in sorted(SOURCE.rglob("*.py")):
        name = path.relative_to(SOURCE.parent).with_suffix("").as_posix().replace("/", ".")
        yield name.removesuffix(".__init__"), path


def test_every_module_is_in_a_layer():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (layers,) = (contract["layers"] for contract in contracts if contract["type"] == "layers")
    rooms = {room.strip() for layer in layers for room in layer.split("|")}
    doors = {"sidequest", "sidequest.learning"}  # packages whose own file imports nothing of the house at start-up
    outside = [
        name
        for name, _ in modules()
        if name not in doors and not any(name == room or name.startswith(f"{room}.") for room in rooms)
    ]
    assert outside == []


def test_every_room_is_on_the_map():
    drawing = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rooms = {path.parent.relative_to(SOURCE).as_posix() for _, path in modules()} - {"."}
    rooms = {room for room in rooms if "/" not in room or room == "learning/torch"}
    files = {path.name for path in SOURCE.glob("*.py")} - {"__init__.py"}
    missing = [place for place in sorted({f"{room}/" for room in rooms} | files) if f"  {place} " not in drawing]
    assert missing == []


def test_no_file_is_longer_than_a_reader_can_hold():
    places = ("src", "experiments", "benchmarks", "examples")
    files = [path for place in places for path in (ROOT / place).rglob("*.py")]
    long = {str(path.relative_to(ROOT)): count for path in files if (count := lines(path)) > LONGEST}
    assert long == {}
    assert statistics.median(lines(path) for _, path in modules()) <= USUAL


def test_files_that_are_no_code_are_in_the_wheel():
    """Truth tables, templates and embedded data: each is named by a pattern of `package-data`, whose `*` enters no folder."""
    patterns = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]["sidequest"]
    files = [path.relative_to(SOURCE) for path in SOURCE.rglob("*") if path.is_file()]
    data = [path.as_posix() for path in files if path.suffix not in (".py", ".pyc")]
    assert "truth/digits.json" in data
    assert [name for name in data if not packed(name, patterns)] == []
    assert not packed("truth/digits.json", [pattern for pattern in patterns if "truth" not in pattern])
    assert not packed("truth/deeper/digits.json", patterns)


def packed(name: str, patterns: list[str]) -> bool:
    path = PurePosixPath(name)
    return any(len(path.parts) == pattern.count("/") + 1 and path.match(pattern) for pattern in patterns)


def test_what_is_imported_is_declared():
    """Each package that the code imports is a dependency or in an extra, and does not only come along with another one."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    listed = [
        *project["dependencies"],
        *(each for extra in project["optional-dependencies"].values() for each in extra),
    ]
    declared = {canonical(re.split(r"[\[<>=~! ]", requirement)[0]) for requirement in listed}
    packages = packages_distributions()
    imported = {name for _, path in modules() for name in imported_packages(path)} - {"sidequest", "pydantic_core"}
    assert {"torch", "yaml", "fsspec"} <= imported
    undeclared = {name for name in imported if not {canonical(each) for each in packages.get(name, [name])} & declared}
    assert undeclared == set()


def imported_packages(path: Path) -> set[str]:
    """The packages outside Python's own library that a file imports, anywhere in it."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.add(str(node.module).partition(".")[0])
    return names - sys.stdlib_module_names


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_a_name_means_one_thing():
    """No two public classes of the package and the experiments have one name."""
    # The user's own Suite and Task stand for those inside; αVIL is a method and the network of its paper.
    twice = {"Suite", "Task", "AlphaVILSettings"}
    places = defaultdict(list)
    for path in (path for place in ("src", "experiments") for path in (ROOT / place).rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(str(path.relative_to(ROOT)))
    assert {name: files for name, files in places.items() if len(files) > 1 and name not in twice} == {}


def lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())
