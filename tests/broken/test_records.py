"""Records, truth tables, tuning files and policy logs of other shapes: refused by the commands that read them."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.broken.conftest import copy_of
from tests.broken.test_recipes import Change, drop, put

TRUTH: dict[str, tuple[Change, list[str]]] = {
    "another version": (put("version", 2), ["version"]),
    "no subsets": (put("subsets", []), ["subsets"]),
    "subsets that are a text": (put("subsets", "many"), ["subsets"]),
    "one subset": (lambda data: data.update(subsets=data["subsets"][:1]), ["subsets"]),
    "a subset twice": (lambda data: data["subsets"].append(data["subsets"][0]), ["twice"]),
    "a score too few": (lambda data: data["subsets"][0].update(report=[0.5]), ["subsets.0.report"]),
    "a score of NaN": (lambda data: data["subsets"][0].update(report=[0.5, float("nan")]), ["subsets.0.report"]),
    "a score of words": (lambda data: data["subsets"][0].update(report=["good", "bad"]), ["subsets.0.report"]),
    "a stranger's subset": (lambda data: data["subsets"][1].update(auxiliaries=["naer"]), ["naer"]),
    "one seed": (put("seeds", [0]), ["seeds"]),
    "a seed twice": (put("seeds", [0, 0]), ["seeds"]),
    "no data": (drop("data"), ["data"]),
    "other data": (put("data", "main", {"train": "0" * 64}), ["main", "changed"]),
    "another primary": (put("primary", "near"), ["near"]),
    "a kind that is none": (put("model", {"kind": "convnett"}), ["convnett"]),
    "training of NaN": (put("train", {"epochs": float("nan")}), ["epochs"]),
    "a suite that is nowhere": (put("suite", "nowhere.yaml"), ["nowhere.yaml"]),
    "a suite that is a number": (put("suite", 3), ["suite"]),
    "an unknown field": (put("extra", 1), ["extra"]),
}


@pytest.mark.parametrize("name", TRUTH)
def test_a_truth_table_of_another_shape_is_refused(name, good, place, refused):
    change, says = TRUTH[name]
    table = json.loads(good.truth.read_text())
    table.pop("sha256", None)
    table["suite"] = str(good.images)
    change(table)
    (place / "truth.json").write_text(json.dumps(table))
    refused(["score", "-m", "single", "--truth", "truth.json"], ["truth.json" if "suite" not in name else "", *says])


CONTENTS: dict[str, str | bytes] = {
    "nothing": "",
    "not JSON": "{",
    "a list": "[]",
    "null": "null",
    "deep": "[" * 100_000,
    "not UTF-8": b"\xff",
    "5,000 digits": '{"version": ' + "9" * 5000 + "}",
    "half a character": '{"version": "\\ud800"}',
}


@pytest.mark.parametrize("name", CONTENTS)
@pytest.mark.parametrize(
    "file", ["truth.json", "tuning.json", "comparison.json", "run.json", "record.json", "fit.json"]
)
def test_what_is_no_record_is_refused(file, name, good, place, refused):
    content = CONTENTS[name]
    directory = place / "run"
    if file in ("run.json", "record.json"):
        copy_of(good.run, directory)
    directory.mkdir(exist_ok=True)
    (directory / file).write_bytes(content if isinstance(content, bytes) else content.encode())
    arguments: list[Any] = {
        "truth.json": ["score", "-m", "single", "--truth", directory / file],
        "tuning.json": ["select", good.images, "-m", "single", "-o", "out", "--tune", directory / file],
        "run.json": ["train", directory, "-o", "out"],
    }.get(file, ["report", directory])
    refused(arguments, [file])


TUNING: dict[str, tuple[dict[str, Any], list[str]]] = {
    "another version": ({"version": 9}, ["version", "9"]),
    "a setting that is none": ({"chosen": {"train.epoch": 3}}, ["epoch"]),
    "a setting of NaN": ({"chosen": {"train.epochs": float("nan")}}, ["epochs"]),
    "a setting of a list": ({"chosen": {"train.epochs": [3]}}, ["epochs"]),
    "a setting without a room": ({"chosen": {"epochs": 3}}, ["epochs", "train.NAME"]),
    "settings that are a list": ({"chosen": [3]}, ["tuning.json"]),
    "another primary": ({"primary": "near"}, ["near"]),
    "another kind": ({"kind": "hf"}, ["hf"]),
    "another kind chosen": ({"chosen": {"model.kind": "hf"}}, ["model.kind"]),
    "an unknown field": ({"extra": 1}, ["tuning.json"]),
}


@pytest.mark.parametrize("name", TUNING)
def test_a_tuning_of_another_shape_is_refused(name, good, place, refused):
    data, says = TUNING[name]
    (place / "tuning.json").write_text(json.dumps({"version": 1, **data}))
    refused(["select", good.images, "-m", "single", "-o", "out", "--tune", "tuning.json"], says)


COMPARED: dict[str, tuple[Change, list[str]]] = {
    "no rows": (drop("rows"), ["rows"]),
    "rows that are a text": (put("rows", "many"), ["rows"]),
    "outcomes that are null": (put("outcomes", None), ["outcomes"]),
    "no primary": (drop("primary"), ["primary"]),
    "another version": (put("version", 99), ["version", "99"]),
    "an unknown field": (put("extra", 1), ["extra"]),
    "runs that are not here": (lambda data: [each.update(directory="gone") for each in data["outcomes"]], ["not here"]),
}


@pytest.mark.parametrize("command", ["report", "train"])
@pytest.mark.parametrize("name", COMPARED)
def test_a_comparison_of_another_shape_is_refused(name, command, good, place, refused):
    change, says = COMPARED[name]
    data = json.loads((good.compared / "comparison.json").read_text())
    data.pop("sha256")
    change(data)
    (place / "comparison.json").write_text(json.dumps(data))
    refused([command, place, *(["-o", "out"] if command == "train" else [])], says)


def rewritten(path: Path, **changes: Any) -> bytes:
    """A policy log with other metadata or other columns."""
    table = pq.read_table(path)
    meta = json.loads(table.schema.metadata[b"sidequest.policy_log"])
    columns = {name: changes.pop(name, table[name]) for name in table.column_names}
    columns = {name: column for name, column in columns.items() if column is not None}
    written = json.dumps({**meta, **changes}).encode()
    new = pa.table(columns).replace_schema_metadata({b"sidequest.policy_log": written})
    out = io.BytesIO()
    pq.write_table(new, out)
    return out.getvalue()


LOGS: dict[str, dict[str, Any]] = {
    "another version": {"version": 9},
    "tasks that are a text": {"tasks": "main"},
    "tasks that are numbers": {"tasks": [1, 2]},
    "other tasks": {"tasks": ["a", "b"]},
    "a goal that is none": {"goal": "win"},
    "no propensity": {"propensity": None},
    "no steps": {"step": None},
}


@pytest.mark.parametrize("name", [*LOGS, "not parquet", "metadata that is no JSON"])
def test_a_policy_log_of_another_shape_is_refused(name, good, place, refused):
    if name == "not parquet":
        data = b"PAR1 no"
    elif name == "metadata that is no JSON":
        table = pq.read_table(good.log).replace_schema_metadata({b"sidequest.policy_log": b"{\xff"})
        out = io.BytesIO()
        pq.write_table(table, out)
        data = out.getvalue()
    else:
        data = rewritten(good.log, **LOGS[name])
    (place / "log.parquet").write_bytes(data)
    arguments = ["select", good.images, "-m", "counterfactual", "-o", "out", "--set", "log=[log.parquet]"]
    refused(arguments, ["log.parquet"])
