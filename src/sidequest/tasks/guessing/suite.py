"""A suite file from data files, for `sidequest init`: guesses that a user looks over and edits."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from sidequest.errors import DataError, SettingsError, SidequestError, unknown
from sidequest.paths import what_is_at
from sidequest.tasks import catalog
from sidequest.tasks.benchmarks import ENTRIES
from sidequest.tasks.check import check_labels_and_lengths
from sidequest.tasks.guessing.columns import guess_columns, has_labels
from sidequest.tasks.guessing.files import FileGuess, guess_file
from sidequest.tasks.loading import load_suite_data, load_task
from sidequest.tasks.multimnist import FILES as MNIST_FILES
from sidequest.tasks.problems import Problems
from sidequest.tasks.readers import (
    ReadSettings,
    Table,
    guess_format,
    is_saved_dataset,
    read_file,
    read_idx_array,
    read_saved,
    saved_splits,
)

ROLES = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("dev", "val", "valid", "validation", "eval", "select", "testa"), "dev"),
    **dict.fromkeys(("test", "testing", "report", "testb"), "test"),
}
# Official file names that no other dataset has, so that the directory's name need not tell.
DISTINCTIVE = ("meld", "conll2003", "ud")
SKIPPED_SUFFIXES = (".md", ".yaml", ".yml", ".py", ".pdf", ".zip", ".gitignore")


@dataclass
class _Source:
    """Files that belong to one task."""

    name: str
    files: dict[str, Path] = field(default_factory=dict)  # role → file
    fields: dict[str, Any] | None = None  # already known, as for a catalog entry
    remarks: dict[str, str] = field(default_factory=dict)  # field → why it was guessed, and what else it could be
    rows: int = 0
    phrase: str = ""


def guess_suite(
    paths: Sequence[Path | str], primary: str | None = None, relative_to: Path | str | None = None
) -> tuple[str, list[str]]:
    """The text of a suite file, and what should be said about it.

    paths: files and directories. relative_to: the directory of the suite file, to which its paths are relative; the working
    directory by default. The primary is the smallest task unless it is named.
    """
    base = Path(relative_to or ".").resolve()
    notes: list[str] = []
    reader = _Reader()
    sources = _merge([source for path in paths for source in _collect(Path(path))])
    done: list[_Source] = []
    for source in sources:
        try:
            _complete(source, base, reader, notes)
            done.append(source)
        except SidequestError as error:
            notes.append(f"{source.name}: left out: {error}")
    if not done:
        named = ", ".join(str(path) for path in paths)
        raise SettingsError("\n".join([f"{named}: no task could be guessed from these files", *notes]))
    names = [source.name for source in done]
    if primary is not None and primary not in names:
        raise unknown("task", primary, names)
    chosen = primary or min(done, key=lambda source: (source.rows, source.name)).name
    if primary is None and len(done) > 1:
        notes.append(
            f"primary: {chosen}, because it is the smallest; edit `primary:` if another task is the one to improve"
        )
    text = _write(done, chosen)
    problems = Problems()
    loaded = load_suite_data(yaml.safe_load(text), base, "the guessed suite", problems, read=reader)
    check_labels_and_lengths(loaded, problems)
    notes += [f"{'please fix' if problem.level == 'error' else 'note'}: {problem}" for problem in problems.items]
    return text, notes


def _collect(path: Path) -> list[_Source]:
    """The tasks that a file or directory holds."""
    if (there := what_is_at(path)) in ("nothing", "other"):
        raise DataError("no such file" if there == "nothing" else "a pipe or a device, not a file", file=path)
    if there == "file":
        return [_source_of_file(path)]
    if splits := saved_splits(path):
        return [_saved_source(path, splits)]
    if is_saved_dataset(path):
        return [_Source(_task_name(path.name), {"train": path})]
    known = _catalog_entry(path)
    if known is not None:
        return [_Source(_task_name(path.name), fields={"catalog": known, "path": path}, phrase=ENTRIES[known].about)]
    digits = {key: next(iter(sorted(path.glob(pattern))), None) for key, pattern in MNIST_FILES.items()}
    if all(digits.values()):
        return [_image_source(path, {key: file for key, file in digits.items() if file is not None})]
    sources: list[_Source] = []
    for child in sorted(path.iterdir()):
        if child.name.startswith(".") or child.suffix.lower() in SKIPPED_SUFFIXES or "licen" in child.name.lower():
            continue
        sources += _collect(child)
    return sources


def _catalog_entry(directory: Path) -> str | None:
    try:
        names: tuple[str, ...] = (catalog.entry_name(directory.resolve().name),)
    except SettingsError:
        names = DISTINCTIVE
    return next((name for name in names if catalog.matches(directory, name)), None)


class _Reader:
    """Reads files, each once: a file that was looked at while guessing is not read again to check the suite."""

    def __init__(self) -> None:
        self._tables: dict[tuple[Path, ReadSettings], Table] = {}

    def guess(self, path: Path) -> FileGuess:
        guess = guess_file(path)
        self._tables[path.resolve(), ReadSettings(**guess.fields)] = guess.table
        return guess

    def __call__(self, path: Path, settings: ReadSettings) -> Table:
        key = (path.resolve(), settings)
        if key not in self._tables:
            self._tables[key] = read_file(path, settings)
        return self._tables[key]


def _saved_source(path: Path, splits: list[str]) -> _Source:
    """A saved dataset dict; splits whose labels are withheld are not used."""
    roles = {ROLES.get(split.lower(), "train"): split for split in reversed(splits)}
    table = read_saved(path, roles.setdefault("train", splits[0]))
    name = _task_name(path.name)
    guess = guess_columns(table, name)
    scored = [
        roles[role]
        for role in ("test", "dev")
        if role in roles and has_labels(read_saved(path, roles[role]), guess.fields)
    ]
    names = {"train": roles["train"]} | dict(zip(("report", "select"), scored, strict=False))
    known = {"objective": guess.fields.pop("objective"), "saved": path, **names, **guess.fields}
    return _Source(name, fields=known, remarks=guess.remarks, rows=len(table), phrase=guess.phrase)


def _image_source(directory: Path, files: dict[tuple[str, str], Path]) -> _Source:
    fields: dict[str, Any] = {"objective": "classification"}
    for split, part in (("train", "train"), ("report", "test")):
        fields[split] = {"image": files[part, "image"], "label": files[part, "label"]}
    fields |= {"metric": "accuracy", "kind": "image"}
    rows = len(read_idx_array(files["train", "label"]))
    return _Source(_task_name(directory.name), fields=fields, rows=rows, phrase="images and their classes")


def _source_of_file(path: Path) -> _Source:
    """`reviews_train.csv` is the train role of the task `reviews`; `train.csv` that of its directory's task."""
    stem = path.name.removesuffix(".gz")
    stem = stem[: -len(Path(stem).suffix)] if guess_format(path) or Path(stem).suffix == ".txt" else stem
    words = [word for word in re.split(r"[._\-\s]+", stem) if word]
    role = next((word for word in words if word.lower() in ROLES), None)
    if role is None:
        return _Source(_task_name(stem), {"train": path})
    name = "_".join(word for word in words if word is not role) or path.resolve().parent.name
    return _Source(_task_name(name), {ROLES[role.lower()]: path})


def _merge(sources: list[_Source]) -> list[_Source]:
    """One source per task: files of one name in one directory belong together; equal names elsewhere get a number."""
    merged: dict[tuple[str, Path | None], _Source] = {}
    for source in sources:
        home = next((file.resolve().parent for file in source.files.values()), None)
        key = (source.name, home) if source.files else (f"{source.name}\0{len(merged)}", None)
        present = merged.setdefault(key, source)
        for role, file in source.files.items():
            if present.files.setdefault(role, file) != file:
                raise SettingsError(
                    f"{file}: both this and {present.files[role]} look like the {role} split of {source.name!r}"
                )
    taken: set[str] = set()
    for source in merged.values():
        name, number = source.name, 2
        while source.name in taken:
            source.name, number = f"{name}-{number}", number + 1
        taken.add(source.name)
    return list(merged.values())


def _complete(source: _Source, base: Path, reader: _Reader, notes: list[str]) -> None:
    """Fill in the fields of a source from its files."""
    remarks: list[str] = []
    if source.fields is None:
        source.fields = _guess_files(source, reader, remarks)
    elif "catalog" in source.fields:
        task = load_task(source.name, {"catalog": source.fields["catalog"], "path": str(source.fields["path"])})
        source.rows = len(task.train) + len(task.splits["select"])
    source.fields = {key: _relative(value, base) for key, value in source.fields.items()}
    about = f"{source.rows} rows; {source.phrase}" if source.rows else source.phrase
    source.remarks = {key: _one_line(remark) for key, remark in source.remarks.items()}
    notes.append(f"{source.name}: {about}")
    for key, value in source.fields.items():
        if key in source.remarks:
            notes.append(f"  {key} {_one_line(_inline(value))}: {source.remarks[key]}")
    notes += remarks


def _guess_files(source: _Source, reader: _Reader, notes: list[str]) -> dict[str, Any]:
    files = dict(source.files)
    if "train" not in files:
        role = next(iter(files))
        files = {"train": files.pop(role)} | files
        notes.append(f"  {files['train'].name} is taken as train, because no file says that it is")
    reading = reader.guess(files["train"])
    guess = guess_columns(reading.table, source.name)
    source.phrase, source.rows, source.remarks = (
        _one_line(guess.phrase),
        len(reading.table),
        reading.remarks | guess.remarks,
    )
    splits: dict[str, Any] = {"train": files["train"]}
    scored = []
    for role in ("test", "dev"):
        if role in files:
            if has_labels(reader(files[role], ReadSettings(**reading.fields)), guess.fields):
                scored.append(files[role])
            else:
                notes.append(f"  {files[role].name} has no labels and is not used")
    splits |= dict(zip(("report", "select"), scored, strict=False))
    objective = guess.fields.pop("objective")
    return {"objective": objective, **splits, **reading.fields, **guess.fields}


def _write(sources: list[_Source], primary: str) -> str:
    lines = [
        "# A suite file, guessed from data files. Look it over, then: sidequest check FILE",
        "suite: my-suite",
        f"primary: {_inline(primary)}  # the task to improve; the others are candidates to train with",
        "goal: primary  # or average: the mean score over all tasks",
        "seed: 0  # decides carved splits and samples; it is not the training seed",
        "tasks:",
    ]
    for source in sources:
        about = f"{source.rows} rows; {source.phrase}" if source.rows else source.phrase
        lines.append(f"  {source.name}:  # {about}")
        for key, value in (source.fields or {}).items():
            remark = source.remarks.get(key, "")
            if key == "metric" and isinstance(value, list):
                remark = "a list: the first is the score"
            lines.append(f"    {key}: {_inline(value)}" + (f"  # {remark}" if remark else ""))
        if "report" not in (source.fields or {}) and "catalog" not in (source.fields or {}):
            lines.append("    # report: FILE  # rows that only the final score may see")
        lines.append("    # limit: 1000  # use at most so many labelled rows")
    lines += ["# model: {kind: pooled}  # hf, bilstm, pooled, convnet", "# train: {epochs: 5}", ""]
    return "\n".join(lines)


def _inline(value: Any) -> str:
    """A value in YAML's flow style, on one line."""
    return yaml.safe_dump([value], default_flow_style=True, width=10**6, allow_unicode=True, sort_keys=False).strip()[
        1:-1
    ]


def _one_line(text: str) -> str:
    """Fit for a comment, whatever a file's names and values hold."""
    return "".join(character if character.isprintable() else " " for character in text)


def _relative(value: Any, base: Path) -> Any:
    if isinstance(value, Path):
        return Path(os.path.relpath(value.resolve(), base)).as_posix()
    return {key: _relative(item, base) for key, item in value.items()} if isinstance(value, dict) else value


def _task_name(text: str) -> str:
    return re.sub(r"[^\w-]+", "-", text, flags=re.ASCII).strip("-_") or "task"
