"""Suite files as plain data: hostile YAML is refused in one sentence, and variables stand in paths only."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from sidequest.errors import SettingsError, SidequestError
from sidequest.tasks import load_suite
from sidequest.tasks.suite_file import read_suite_file

Write = Callable[[str, "str | bytes"], Path]


def laughs(levels: int) -> str:
    """Every level is ten times the one before."""
    lines = ["a0: &a0 [x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, levels)]
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\na: 2\n", "'a' is written twice.*line 2"),
        ("? [1, 2]\n: 3\n", "a key is a name, not a list or mapping.*line 1"),
        ("- 1\n", "found list"),
        ("a: [" * 40_000, "nested too deeply|not a YAML file"),
        (laughs(30), "stand for more than 100000 values"),
        ("a: &a [*a]\n", "stands for something that it is a part of"),
        ("a: {b: }}\n", "not a YAML file"),
        (b"a: \xff\n", "not a YAML file"),
    ],
)
def test_hostile_files_are_refused_in_a_sentence(write: Write, text: str | bytes, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        read_suite_file(write("s.yaml", text))


def test_aliases_that_people_write_are_read(write: Write) -> None:
    text = (
        "base: &base {text: body, label: y}\ntasks:\n  a: {<<: *base, train: a.csv}\n  b: {<<: *base, train: b.csv}\n"
    )
    assert read_suite_file(write("s.yaml", text))["tasks"]["b"] == {"text": "body", "label": "y", "train": "b.csv"}


def test_variables_stand_in_paths(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATA", "/data")
    text = """
primary: a   # ${NOT_SET} in a comment is nobody's business
tasks:
  a: {train: "${DATA}/a.csv", select: {file: "${DATA}/b.csv"}, path: "${DATA}", report: {image: "${DATA}/i", label: "${DATA}/l"}}
model: {encoder: "${DATA}/encoder"}
"""
    data = read_suite_file(write("s.yaml", text))
    assert data["tasks"]["a"] == {
        "train": "/data/a.csv",
        "select": {"file": "/data/b.csv"},
        "path": "/data",
        "report": {"image": "/data/i", "label": "/data/l"},
    }
    assert data["model"]["encoder"] == "/data/encoder"
    monkeypatch.delenv("DATA")
    with pytest.raises(SettingsError, match=r"s\.yaml: tasks\.a\.train: the environment variable DATA is not set"):
        read_suite_file(write("s.yaml", text))


@pytest.mark.parametrize(
    "field",
    [{"suite": "${TOKEN}"}, {"tasks": {"a": {"kind": "${TOKEN}"}}}, {"tasks": {"a": {"labels": ["${TOKEN}"]}}}],
)
def test_a_variable_elsewhere_is_refused_and_not_told(
    write: Write, monkeypatch: pytest.MonkeyPatch, field: dict
) -> None:
    monkeypatch.setenv("TOKEN", "hunter2")
    with pytest.raises(SettingsError, match="an environment variable may stand in a path") as error:
        read_suite_file(write("s.yaml", json.dumps({"primary": "a"} | field)))
    assert "hunter2" not in str(error.value)


def test_half_a_character_is_no_label(write: Write) -> None:
    write("a.csv", "text,label\na,x\nb,y\n")
    spec = {
        "objective": "classification",
        "train": "a.csv",
        "text": "text",
        "label": "label",
        "labels": ["x", "\ud800"],
    }
    path = write("s.yaml", json.dumps({"primary": "a", "tasks": {"a": spec}}))
    with pytest.raises(SidequestError, match=r"half of a character|not a YAML file"):
        load_suite(path)
