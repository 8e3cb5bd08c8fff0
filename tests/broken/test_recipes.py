"""Recipes of other shapes, absurd numbers, and row ids that are none: refused by every command that reads a recipe."""

from __future__ import annotations

import io
import json
import os
import pickle
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.broken.conftest import copy_of

Change = Callable[[dict[str, Any]], Any]


def plain_recipe(good):
    """A recipe as a user would write it: without the digest that sidequest adds."""
    data = json.loads((good.run / "recipe.json").read_text())
    del data["sha256"]
    return data


def put(*path: Any) -> Change:
    """`put("phases", 0, "order", value)`: a value at a place."""

    def change(data: dict[str, Any]) -> None:
        inside: Any = data
        for part in path[:-2]:
            inside = inside[part]
        inside[path[-2]] = path[-1]

    return change


def drop(*path: Any) -> Change:
    def change(data: dict[str, Any]) -> None:
        inside: Any = data
        for part in path[:-1]:
            inside = inside[part]
        del inside[path[-1]]

    return change


SHAPES: dict[str, tuple[Change, list[str]]] = {
    "another version": (put("version", 2), ["version", "2"]),
    "no version": (drop("version"), ["version"]),
    "a version of words": (put("version", "one"), ["version", "one"]),
    "no phases": (drop("phases"), ["phases"]),
    "an empty list of phases": (put("phases", []), ["phases"]),
    "phases that are a mapping": (put("phases", {"a": 1}), ["phases"]),
    "phases that are null": (put("phases", None), ["phases"]),
    "phases that are texts": (put("phases", ["a", "b"]), ["phases"]),
    "a number as phases": (put("phases", 3), ["phases"]),
    "10^5 phases": (lambda data: data.update(phases=data["phases"] * 10**5), ["phases", "10000"]),
    "a phase that is null": (put("phases", [None]), ["phases"]),
    "a phase without shares": (drop("phases", 0, "shares"), ["shares"]),
    "shares that are a list": (put("phases", 0, "shares", [1, 2]), ["shares"]),
    "shares that are empty": (put("phases", 0, "shares", {}), ["share"]),
    "shares of zero": (put("phases", 0, "shares", {"main": 0}), ["share"]),
    "negative shares": (put("phases", 0, "shares", {"main": -1}), ["-1"]),
    "shares of 1e9": (put("phases", 0, "shares", {"main": 1, "near": 10**9}), ["shares"]),
    "shares of 1e300": (put("phases", 0, "shares", {"main": 1e300}), ["shares"]),
    "shares of 1e300 that are drawn": (
        put("phases", 0, {"order": "sample", "shares": {"main": 1e300, "near": 1e-300}}),
        ["shares"],
    ),
    "half shares in a cycle": (put("phases", 0, "shares", {"main": 0.5}), ["0.5"]),
    "shares of words": (put("phases", 0, "shares", {"main": "much"}), ["much"]),
    "a task that is not there": (put("phases", 0, "shares", {"main": 1, "naer": 1}), ["naer", "near"]),
    "an order that is none": (put("phases", 0, "order", "random"), ["order", "random"]),
    "weights of 1e300": (put("phases", 0, "weights", {"main": 1e300}), ["weights"]),
    "negative weights": (put("phases", 0, "weights", {"main": -1}), ["-1"]),
    "weights of no task": (put("phases", 0, "weights", {"naer": 1}), ["naer"]),
    "weights that are a list": (put("phases", 0, "weights", [1]), ["weights"]),
    "epochs of zero": (put("phases", 0, "epochs", 0), ["epochs", "0"]),
    "epochs of 1e15": (put("phases", 0, "epochs", 1e15), ["epochs"]),
    "batches of 1e15": (put("phases", 0, "batches", 10**15), ["batches"]),
    "batches of half": (put("phases", 0, "batches", 1.5), ["batches", "1.5"]),
    "epochs and batches": (lambda data: data["phases"][0].update(epochs=1, batches=1), ["epochs", "batches"]),
    "subsets that are a list": (put("phases", 0, "subsets", ["rows"]), ["subsets"]),
    "subsets that are null": (put("phases", 0, "subsets", None), ["subsets"]),
    "a subset that is null": (put("phases", 0, "subsets", {"near": None}), ["subsets"]),
    "a subset that is a text": (put("phases", 0, "subsets", {"near": "file"}), ["subsets"]),
    "a subset of a numbered file": (put("phases", 0, "subsets", {"near": {"file": 3}}), ["subsets"]),
    "a subset of no task": (put("phases", 0, "subsets", {"naer": {"ids": [1]}}), ["naer"]),
    "a subset that is empty": (put("phases", 0, "subsets", {"near": {"ids": []}}), ["near"]),
    "ids that are not there": (put("phases", 0, "subsets", {"near": {"ids": [10**6]}}), ["near", "1000000"]),
    "negative ids": (put("phases", 0, "subsets", {"near": {"ids": [-1]}}), ["near"]),
    "ids of 10^30": (put("phases", 0, "subsets", {"near": {"ids": [10**30]}}), ["near"]),
    "ids of words": (put("phases", 0, "subsets", {"near": {"ids": ["a"]}}), ["near"]),
    "a file of ids elsewhere": (
        put("phases", 0, "subsets", {"near": {"file": "../rows.npy"}}),
        ["near", "../rows.npy"],
    ),
    "a file of ids by a long name": (put("phases", 0, "subsets", {"near": {"file": "x" * 5000}}), ["near"]),
    "a file of ids with NUL": (put("phases", 0, "subsets", {"near": {"file": "a\0b"}}), ["near"]),
    "no method": (drop("method"), ["method"]),
    "no primary": (drop("primary"), ["primary"]),
    "another primary": (put("primary", "near"), ["near", "main"]),
    "a primary of a list": (put("primary", ["main"]), ["primary"]),
    "an unknown field": (put("pahses", 1), ["pahses"]),
    "provenance that is a list": (put("provenance", [1]), ["provenance"]),
    "provenance that is null": (put("provenance", None), ["provenance"]),
    "a model that is a text": (put("provenance", "model", "convnet"), ["model"]),
    "a model that is a list": (put("provenance", "model", [1]), ["model"]),
    "a kind that is none": (put("provenance", "model", {"kind": "convnett"}), ["convnett"]),
    "a kind that is a number": (put("provenance", "model", {"kind": 3}), ["kind"]),
    "a model with strange fields": (put("provenance", "model", {"kind": "convnet", "wide": 1}), ["wide"]),
    "training that is a text": (put("provenance", "train", "long"), ["train"]),
    "training of NaN": (put("provenance", "train", {"weight_decay": float("nan")}), ["weight_decay"]),
    "data that are a text": (put("provenance", "data", "digest"), ["data"]),
    "data of a task that are a text": (put("provenance", "data", {"main": "digest"}), ["data"]),
    "rows that are a text": (put("provenance", "rows", "many"), ["rows"]),
    "digests that are numbers": (put("provenance", "data", {"main": {"train": 3}}), ["main"]),
    "other data": (put("provenance", "data", {"main": {"train": "0" * 64}}), ["main", "train", "changed"]),
    "a seed of words": (put("provenance", "seed", "one"), ["seed", "one"]),
    "a negative seed": (put("provenance", "seed", -1), ["seed", "-1"]),
    "a seed of 10^40": (put("provenance", "seed", 10**40), ["seed"]),
    "a cost that is a text": (put("cost", "much"), ["cost"]),
    "evidence that is a list": (put("evidence", [1]), ["evidence"]),
    "a verdict that is a list": (put("verdict", [1]), ["verdict"]),
}


def write_recipe(good: Any, place: Path, data: Any) -> Path:
    """A run directory's recipe in a directory of its own, with its row ids."""
    for path in good.run.glob("rows-*.npy"):
        copy_of(path, place / path.name)
    path = place / "recipe.json"
    path.write_text(data if isinstance(data, str) else json.dumps(data))
    return path


@pytest.mark.parametrize("name", SHAPES)
def test_a_recipe_of_another_shape_is_refused(name, good, place, refused):
    change, says = SHAPES[name]
    data = plain_recipe(good)
    change(data)
    recipe = write_recipe(good, place, data)
    refused(["train", recipe, "--suite", good.images, "-o", "out"], [*says])


CONTENTS: dict[str, tuple[str | bytes, list[str]]] = {
    "nothing": ("", ["recipe.json"]),
    "not JSON": ("{", ["recipe.json"]),
    "a list": ("[]", ["recipe.json", "list"]),
    "null": ("null", ["recipe.json"]),
    "not UTF-8": (b'{"version": "\xff"}', ["recipe.json"]),
    "deep": ("[" * 100_000 + "]" * 100_000, ["recipe.json", "deep"]),
    "deep evidence": ('{"version": 1, "evidence": ' + '{"a":' * 50_000 + "1" + "}" * 50_001, ["recipe.json", "deep"]),
    "5,000 digits": ('{"version": ' + "9" * 5000 + "}", ["recipe.json"]),
    "half a character": (
        '{"version": 1, "method": "\\ud800", "primary": "main", "phases": [{"shares": {"main": 1}}]}',
        ["recipe.json"],
    ),
}


@pytest.mark.parametrize("name", CONTENTS)
@pytest.mark.parametrize("command", ["train", "show", "export"])
def test_what_is_no_recipe_is_refused(name, command, good, place, refused):
    content, says = CONTENTS[name]
    (place / "recipe.json").write_bytes(content if isinstance(content, bytes) else content.encode())
    more = {"train": ["-o", "out"], "show": [], "export": ["--to", "jsonl", "-o", "out"]}[command]
    refused([command, "recipe.json", "--suite", good.images, *more], says)


def npy(array: np.ndarray, **more: Any) -> bytes:
    out = io.BytesIO()
    np.save(out, array, **more)
    return out.getvalue()


def npz() -> bytes:
    out = io.BytesIO()
    np.savez(out, ids=np.arange(3))
    return out.getvalue()


def promise(rows: int) -> bytes:
    """The header of an array of so many numbers, without the numbers."""
    header = f"{{'descr': '<i8', 'fortran_order': False, 'shape': ({rows},), }}".encode()
    header += b" " * (64 - (10 + len(header) + 1) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + b"\0" * 64


ROW_IDS: dict[str, bytes] = {
    "nothing": b"",
    "words": b"hello",
    "a pickle": pickle.dumps([1, 2, 3]),
    "a pickle that runs code": b"cos\nsystem\n(S'touch owned'\ntR.",
    "objects": npy(np.array([1, "a"], dtype=object), allow_pickle=True),
    "several arrays": npz(),
    "a cut file": npy(np.arange(100))[:-8],
    "a promise of 10^11 rows": promise(10**11),
    "a promise of 10^30 rows": promise(10**30),
    "a negative promise": promise(-1),
    "two dimensions": npy(np.arange(10).reshape(5, 2)),
    "no dimension": npy(np.int64(3)),
    "floats": npy(np.arange(10.0)),
    "NaN": npy(np.full(10, np.nan)),
    "texts": npy(np.array(["a", "b"])),
    "booleans": npy(np.array([True, False])),
    "no rows": npy(np.zeros(0, np.int64)),
    "other rows": npy(np.arange(10)),
    "rows that are not there": npy(np.array([10**6])),
    "a header that is code": b"\x93NUMPY\x01\x00\x16\x00__import__('os').abort",
}


@pytest.mark.parametrize("name", ROW_IDS)
def test_row_ids_that_are_none_are_refused(name, good, place, refused):
    recipe = write_recipe(good, place, plain_recipe(good))
    rows = min(place.glob("rows-*.npy"))
    rows.write_bytes(ROW_IDS[name])
    refused(["train", recipe, "--suite", good.images, "-o", "out"], [rows.name])


def test_row_ids_behind_a_link_or_a_pipe_are_refused(good, place, refused):
    recipe = write_recipe(good, place, plain_recipe(good))
    rows = min(place.glob("rows-*.npy"))
    moved = rows.rename(place / "elsewhere")
    rows.symlink_to(moved)
    refused(["train", recipe, "--suite", good.images, "-o", "out"], [rows.name])
    rows.unlink()
    os.mkfifo(rows)
    refused(["train", recipe, "--suite", good.images, "-o", "out"], [rows.name])
    rows.unlink()
    refused(["train", recipe, "--suite", good.images, "-o", "out"], [rows.name])


PLACES: dict[str, tuple[str, list[str]]] = {
    "nowhere": ("nowhere.json", ["nowhere.json"]),
    "an empty folder": ("folder", ["folder"]),
    "a pipe": ("pipe.json", ["pipe.json"]),
    "a long name": ("x" * 5000, ["xxx"]),
    "a data file": ("data.csv", ["data.csv"]),
    "below a file": ("data.csv/recipe.json", ["data.csv"]),
    "a device": ("/dev/zero", ["/dev/zero"]),
}


@pytest.mark.parametrize("command", ["train", "show", "export", "report"])
@pytest.mark.parametrize("name", PLACES)
def test_a_recipe_that_is_not_there_is_refused(name, command, good, place, refused):
    (place / "folder").mkdir()
    (place / "data.csv").write_text("a,b\n")
    os.mkfifo(place / "pipe.json")
    where, says = PLACES[name]
    more = {"train": ["-o", "out"], "show": [], "export": ["--to", "jsonl", "-o", "out"], "report": []}[command]
    suite = [] if command == "report" else ["--suite", good.images]
    refused([command, where, *suite, *more], says)
