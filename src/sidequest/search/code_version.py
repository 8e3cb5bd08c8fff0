"""A version of the code that decides results, so that results of other code are not taken for it.

It is a digest of the syntax trees without docstrings: a comment, a docstring or a line break changes nothing. Trees take a second
or two to make, so the version is kept by the bytes of the files.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import sys
from collections.abc import Iterable
from pathlib import Path

from sidequest.store import ContentStore

PACKAGE = Path(__file__).parents[1]
TRAINING = ("learning", "models", "tasks/metrics.py")  # what turns a plan into a score
SELECTION = (*TRAINING, "methods", "numerics")  # what turns a suite into a recipe, with the packages of all papers


def training_code_version() -> str:
    """Of the code that turns a plan into a score: when it changes, stored trials no longer count."""
    return _version(TRAINING)


def selection_code_version(paper: str | None = None) -> str:
    """Of the code that turns a suite into a recipe; paper: with one package of `methods` alone, which no other one changes."""
    if paper is None:
        return _version(SELECTION)
    shared = (path.relative_to(PACKAGE).as_posix() for path in (PACKAGE / "methods").glob("*.py"))
    return _version((*TRAINING, "numerics", f"methods/{paper}", *sorted(shared)))


@functools.cache
def _version(rooms: tuple[str, ...]) -> str:
    files = {path for room in rooms for path in _python_files(PACKAGE / room)}
    sources = [(path.relative_to(PACKAGE).as_posix(), path.read_bytes()) for path in sorted(files)]
    content = hashlib.sha256(sys.version.encode())  # trees are not the same in every Python
    for name, source in sources:
        content.update(f"{name}\0{len(source)}\0".encode() + source)
    kept = ContentStore("code").get_or_make(content.hexdigest(), lambda _: {"version": code_digest(sources)})
    return str(kept.data["version"])


def _python_files(place: Path) -> Iterable[Path]:
    return place.rglob("*.py") if place.is_dir() else [place]


def code_digest(sources: Iterable[tuple[str, bytes]]) -> str:
    """A digest of Python sources by name."""
    hashed = hashlib.sha256()
    for name, source in sources:
        hashed.update(f"{name}\n{ast.dump(_without_docstrings(ast.parse(source)))}\n".encode())
    return hashed.hexdigest()[:16]


def _without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
        if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None:
            del node.body[0]
    return tree
