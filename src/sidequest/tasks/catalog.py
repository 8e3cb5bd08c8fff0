"""The catalog: benchmarks known by name, read from a directory in the official layout or from the Hugging Face hub.

An entry (`benchmarks` lists them) is a partial task spec; `resolve` completes a user's spec with it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sidequest.errors import DataError, SettingsError, unknown
from sidequest.paths import user_path
from sidequest.tasks.benchmarks import ENTRIES
from sidequest.tasks.spec import TaskSpec

ALIASES = {
    "chunking": "conll2000",
    "ner": "conll2003",
    "pos": "ud",
    "udpos": "ud",
    "udenglishewt": "ud",
    "mnlim": "mnli",
    "commitmentbank": "cb",
    "multimnistleft": "multimnist-top-left",
    "multimnistright": "multimnist-bottom-right",
}
_BY_PLAIN_NAME = {"".join(filter(str.isalnum, name)): name for name in ENTRIES} | ALIASES


def entry_name(name: str) -> str:
    """The entry that a name means: case, hyphens and spaces do not matter (`SST-2`, `sst2`), and there are some aliases."""
    plain = "".join(filter(str.isalnum, name.lower()))
    if plain not in _BY_PLAIN_NAME:
        raise unknown("catalog entry", name, ENTRIES)
    return _BY_PLAIN_NAME[plain]


def resolve(spec: TaskSpec, base: Path) -> TaskSpec:
    """A catalog spec as a plain one: the entry's fields, overridden by those that the user wrote."""
    assert spec.catalog is not None
    entry = ENTRIES[entry_name(spec.catalog)]
    fields: dict[str, Any] = {"objective": entry.objective, "kind": entry.kind, "metric": entry.metrics}
    if entry.labels is not None:
        fields["labels"] = entry.labels
    if spec.path is not None:
        directory = base / user_path(spec.path, "path")
        fields |= entry.official
        for split, pattern in entry.files.items():
            fields[split] = str(_find(directory, pattern))
    elif entry.hub is None:
        raise SettingsError(
            f"catalog entry {spec.catalog!r} has no copy on the hub: say `path:` with the directory of its files"
        )
    else:
        fields |= entry.hub
        if spec.saved is not None:  # a copy of the hub's dataset, saved to disk
            fields = {key: value for key, value in fields.items() if key not in ("hub", "config", "revision")}
    written = spec.model_dump(exclude={"catalog", "path"}, exclude_unset=True)
    return TaskSpec(**(fields | written))


def matches(directory: Path, name: str) -> bool:
    """Whether a directory holds an entry's files under their official names."""
    entry = ENTRIES[name]
    return bool(entry.files) and all(next(directory.glob(pattern), None) for pattern in entry.files.values())


def _find(directory: Path, pattern: str) -> Path:
    files = sorted(directory.glob(pattern)) if directory.is_dir() else []
    if len(files) == 1:
        return files[0]
    if not directory.is_dir():
        raise DataError("no such directory", file=directory)
    if files:
        raise DataError(f"several files match {pattern!r}: {', '.join(path.name for path in files)}", file=directory)
    others = ", ".join(sorted(path.name for path in directory.iterdir())[:8]) or "nothing"
    raise DataError(f"the official layout has a file {pattern!r} here; found {others}", file=directory)
