"""Data files that cannot be: each is refused by `check` with the file, the line where there is one, and what was found."""

from __future__ import annotations

import gzip
import io
import json
import os
import struct
import zipfile
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from tests.broken.conftest import copy_of
from tests.helpers.good_inputs import csv_text, idx, text_rows

GOOD = csv_text(text_rows())
WORDS = "".join(f"word{i}\t{'B-X' if i % 3 else 'O'}\n" + ("\n" if i % 4 == 3 else "") for i in range(60))


def parquet(columns: dict[str, object]) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.table(columns), out)
    return out.getvalue()


def lines(rows: list[object]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


ROWS = text_rows()
DEEP = "[" * 100_000 + "]" * 100_000

# name → (file, content, other fields of the task, what the message says)
TEXTS: dict[str, tuple[str, str | bytes, dict[str, object], list[str]]] = {
    "empty csv": ("d.csv", "", {}, ["d.csv", "empty"]),
    "only blank lines": ("d.csv", "\n\n\n", {}, ["d.csv", "empty"]),
    "header alone": ("d.csv", "text,label\n", {}, ["d.csv", "no rows"]),
    "one row": ("d.csv", "text,label\nhello,up\n", {}, ["d.csv"]),
    "two rows of one label": ("d.csv", "text,label\na,up\nb,up\n", {}, ["d.csv", "up"]),
    "unclosed quote": ("d.csv", GOOD + 'a "quote,up\n"never,up\n', {}, ["d.csv", "line"]),
    "too many fields": ("d.csv", GOOD + "a,b,c\n", {}, ["d.csv", "line 42", "3 fields", "2"]),
    "too few fields": ("d.csv", GOOD + "a\n", {}, ["d.csv", "line 42", "1 fields"]),
    "nothing left by bad_rows": ("d.csv", "text,label\na\nb\n", {"bad_rows": "skip"}, ["d.csv"]),
    "nothing left by unlabelled": ("d.csv", "text,label\na,\nb,\n", {"unlabelled": "drop"}, ["d.csv"]),
    "skip_rows beyond the end": ("d.csv", GOOD, {"skip_rows": 1000}, ["d.csv", "1000"]),
    "skip_rows of 10^30": ("d.csv", GOOD, {"skip_rows": 10**30}, ["skip_rows"]),
    "NUL bytes": ("d.csv", b"text,label\n\0\0\0,up\nb,down\n" * 20, {"text": "no"}, ["d.csv", "no"]),
    "not UTF-8": ("d.csv", GOOD.encode() + b"caf\xe9,up\n", {}, ["d.csv", "line 42", "0xe9"]),
    "UTF-16": ("d.csv", GOOD.encode("utf-16"), {}, ["d.csv", "utf-16"]),
    "no such encoding": ("d.csv", GOOD, {"encoding": "utf-9"}, ["d.csv", "utf-9"]),
    "a codec of bytes": ("d.csv", GOOD, {"encoding": "base64"}, ["d.csv", "base64"]),
    "a codec that rotates": ("d.csv", GOOD, {"encoding": "rot13"}, ["d.csv", "rot13"]),
    "a codec that unpacks": ("d.csv", GOOD, {"encoding": "zlib"}, ["d.csv", "zlib"]),
    "the codec idna": ("d.csv", GOOD.encode() + b"\xff,up\n", {"encoding": "idna"}, ["d.csv"]),
    "the codec punycode": ("d.csv", "é".encode() * 9, {"encoding": "punycode"}, ["d.csv"]),
    "the codec undefined": ("d.csv", GOOD, {"encoding": "undefined"}, ["d.csv", "undefined"]),
    "the codec unicode_escape": ("d.csv", GOOD + "\\ud800,up\n", {"encoding": "unicode_escape"}, ["d.csv"]),
    "an encoding with NUL": ("d.csv", GOOD, {"encoding": "utf\0-8"}, ["encoding"]),
    "an encoding of 10^5 signs": ("d.csv", GOOD, {"encoding": "u" * 10**5}, ["d.csv"]),
    "utf-7 that is none": ("d.csv", "text,label\n+AAA-+,up\n+\xff", {"encoding": "utf-7"}, ["d.csv"]),
    "utf-32 of odd length": ("d.csv", b"abc", {"encoding": "utf-32"}, ["d.csv"]),
    "an empty encoding": ("d.csv", GOOD, {"encoding": ""}, ["d.csv"]),
    "a delimiter of two signs": ("d.csv", GOOD, {"delimiter": ";;"}, ["delimiter", ";;"]),
    "a line end as delimiter": ("d.csv", GOOD, {"delimiter": "\n"}, ["delimiter"]),
    "a quote as delimiter": ("d.csv", GOOD, {"delimiter": '"'}, ["delimiter"]),
    "a carriage return as delimiter": ("d.csv", GOOD, {"delimiter": "\r"}, ["delimiter"]),
    "a line end as delimiter, unquoted": ("d.csv", GOOD, {"delimiter": "\n", "quoting": "none"}, ["delimiter"]),
    "no such quoting": ("d.csv", GOOD, {"quoting": "half"}, ["quoting", "half"]),
    "a header of one name": ("d.csv", GOOD, {"header": ["text"]}, ["d.csv"]),
    "a header of no names": ("d.csv", GOOD, {"header": []}, ["header"]),
    "a header with a name twice": ("d.csv", GOOD, {"header": ["text", "text"]}, ["text"]),
    "no such column": ("d.csv", GOOD, {"text": "body"}, ["d.csv", "body", "label"]),
    "no such label column": ("d.csv", GOOD, {"label": "lable"}, ["d.csv", "lable", "label"]),
    "a column beyond the last": ("d.csv", GOOD, {"text": 7}, ["d.csv", "7"]),
    "a column of 10^30": ("d.csv", GOOD, {"text": 10**30}, ["column"]),
    "a template of no column": ("d.csv", GOOD, {"text": "{title}"}, ["d.csv", "title"]),
    "a template that is not closed": ("d.csv", GOOD, {"text": "{text"}, ["d.csv", "{text"]),
    "a template of attributes": ("d.csv", GOOD, {"text": "{text.__class__}"}, ["d.csv"]),
    "a template of empty braces": ("d.csv", GOOD, {"text": "{}"}, ["d.csv"]),
    "a template with a huge column": ("d.csv", GOOD, {"text": "{" + "9" * 5000 + "}"}, ["d.csv"]),
    "a label that is not listed": ("d.csv", GOOD, {"labels": ["up", "dwon"]}, ["d.csv", "down", "dwon"]),
    "labels listed twice": ("d.csv", GOOD, {"labels": ["up", "up"]}, ["up", "twice"]),
    "labels of one": ("d.csv", GOOD, {"labels": ["up"]}, ["down"]),
    "labels that are a number": ("d.csv", GOOD, {"labels": 3}, ["labels", "3"]),
    "labels nested": ("d.csv", GOOD, {"labels": [["up"], ["down"]]}, ["labels"]),
    "words for numbers": ("d.csv", GOOD, {"objective": "regression"}, ["d.csv", "line 2", "label"]),
    "an infinite number": (
        "d.csv",
        "text,label\n" + "a,1\n" * 20 + "b,inf\n",
        {"objective": "regression"},
        ["d.csv", "line 22", "inf"],
    ),
    "NaN": ("d.csv", "text,label\n" + "a,1\n" * 20 + "b,nan\n", {"objective": "regression"}, ["d.csv", "line 22"]),
    "a number of 5,000 digits": (
        "d.csv",
        "text,label\n" + "a,1\n" * 20 + f"b,{'9' * 5000}\n",
        {"objective": "regression"},
        ["d.csv", "line 22"],
    ),
    "a number of 5,000 digits in JSON": (
        "d.jsonl",
        lines(ROWS) + '{"text": "a", "label": ' + "9" * 5000 + "}\n",
        {"objective": "regression"},
        ["d.jsonl"],
    ),
    "numbers that are too large to tell apart": (
        "d.csv",
        "text,label\n" + "a,1e308\nb,-1e308\n" * 20,
        {"objective": "regression"},
        ["d.csv"],
    ),
    "all numbers equal": ("d.csv", "text,label\n" + "a,1\nb,1\n" * 20, {"objective": "regression"}, ["d.csv"]),
    "a list as JSON": ("d.jsonl", "[1, 2, 3]", {}, ["d.jsonl", "object", "int"]),
    "cut-off JSON": ("d.jsonl", lines(ROWS) + '{"text": "a', {}, ["d.jsonl", "line 41"]),
    "JSON without a comma": ("d.json", '[{"text": "a"} {"text": "b"}]', {}, ["d.json", "line 1"]),
    "JSON after the end": ("d.json", json.dumps(ROWS) + "\nmore", {}, ["d.json", "line 2"]),
    "deep JSON": ("d.jsonl", f'{{"text": {DEEP}, "label": "up"}}\n', {}, ["d.jsonl", "line 1", "deep"]),
    "a deep JSON list": ("d.json", f"[{DEEP}]", {}, ["d.json", "deep"]),
    "deep JSON at the row": ("d.jsonl", '{"a":' * 50_000 + "1" + "}" * 50_000, {}, ["d.jsonl", "deep"]),
    "half a character": ("d.jsonl", lines(ROWS) + '{"text": "\\ud800", "label": "up"}', {}, ["d.jsonl", "line 41"]),
    "half a character as a label": (
        "d.jsonl",
        lines(ROWS) + '{"text": "x", "label": "\\udfff"}',
        {},
        ["d.jsonl", "line 41"],
    ),
    "half a character as a column": ("d.jsonl", '{"text\\ud800": "x", "label": "up"}\n' * 9, {}, ["d.jsonl"]),
    "half a character in a list": (
        "d.jsonl",
        '{"text": ["x\\ud800"], "label": "up"}\n' * 9,
        {},
        ["d.jsonl", "line 1"],
    ),
    "objects as texts": ("d.jsonl", '{"text": {"a": 1}, "label": "up"}\n' * 20, {}, ["d.jsonl", "text"]),
    "lists as texts": ("d.jsonl", '{"text": ["a"], "label": "up"}\n' * 20, {}, ["d.jsonl", "text"]),
    "null texts": ("d.jsonl", '{"text": null, "label": "up"}\n' * 20, {}, ["d.jsonl", "text"]),
    "a missing text": ("d.jsonl", lines(ROWS) + '{"label": "up"}\n', {}, ["d.jsonl", "line 41", "text"]),
    "a missing label": ("d.jsonl", lines(ROWS) + '{"text": "a"}\n', {}, ["d.jsonl", "line 41", "label"]),
    "lists as labels": ("d.jsonl", '{"text": "a", "label": ["up"]}\n' * 20, {}, ["d.jsonl", "label"]),
    "empty objects": ("d.jsonl", "{}\n" * 20, {}, ["d.jsonl"]),
    "blank JSON": ("d.jsonl", " \n \n", {}, ["d.jsonl", "no rows"]),
    "not a parquet file": ("d.parquet", GOOD, {}, ["d.parquet"]),
    "an empty parquet file": ("d.parquet", b"", {}, ["d.parquet"]),
    "a cut parquet file": ("d.parquet", parquet({"text": ["a"] * 99, "label": ["u"] * 99})[:-20], {}, ["d.parquet"]),
    "parquet without rows": (
        "d.parquet",
        parquet({"text": pa.array([], pa.string()), "label": pa.array([], pa.string())}),
        {},
        ["d.parquet", "no rows"],
    ),
    "parquet without columns": ("d.parquet", parquet({}), {}, ["d.parquet"]),
    "parquet with a lying footer": (
        "d.parquet",
        parquet({"text": ["a"] * 9, "label": ["u"] * 9})[:-8] + struct.pack("<I", 2**31 - 1) + b"PAR1",
        {},
        ["d.parquet"],
    ),
    "parquet of structures": (
        "d.parquet",
        parquet({"text": pa.array([{"a": 1}] * 20), "label": ["u", "d"] * 10}),
        {},
        ["d.parquet", "text"],
    ),
    "parquet of bytes": (
        "d.parquet",
        parquet({"text": pa.array([b"\xff\xfe"] * 20), "label": ["u", "d"] * 10}),
        {},
        ["d.parquet", "text"],
    ),
    "parquet with a column twice": ("d.parquet", None, {}, ["d.parquet", "text"]),
    "not gzip": ("d.csv.gz", GOOD, {}, ["d.csv.gz", "gzip"]),
    "cut gzip": ("d.csv.gz", gzip.compress(GOOD.encode())[:-12], {}, ["d.csv.gz", "gzip"]),
    "gzip with a wrong sum": (
        "d.csv.gz",
        gzip.compress(GOOD.encode())[:-8] + b"12345678",
        {},
        ["d.csv.gz", "gzip"],
    ),
    "a name without a format": ("d", GOOD, {}, ["d", "format"]),
    "no such format": ("d.csv", GOOD, {"format": "excel"}, ["format", "excel"]),
    "a workbook": ("d.xlsx", b"PK\x03\x04", {}, ["d.xlsx", "format"]),
    "a zip": ("d.zip", b"", {}, ["d.zip"]),
    "idx as text": ("d-idx3-ubyte", b"\0\0\x08\x03", {}, ["idx"]),
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_broken_file_is_refused_with_its_place(name, place, refused):
    file, content, fields, says = TEXTS[name]
    if name == "a zip":
        with zipfile.ZipFile(place / "d.zip", "w") as archive:
            archive.writestr("d.csv", GOOD)
    elif name == "parquet with a column twice":
        table = pa.Table.from_arrays([pa.array(["a"] * 20), pa.array(["u", "d"] * 10)], names=["text", "text"])
        pq.write_table(table, place / file)
    else:
        (place / file).write_bytes(content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content)
    task = {"objective": "classification", "train": file, "text": "text", "label": "label", **fields}
    (place / "suite.yaml").write_text(yaml.safe_dump({"primary": "main", "tasks": {"main": task}}))
    refused(["check", "suite.yaml"], says)


# Tagging, choice and multi-label
TASKS: dict[str, tuple[str, str, dict[str, object], list[str]]] = {
    "no words": ("d.conll", "\n\n", {}, ["d.conll", "no words"]),
    "a word without a tag": ("d.conll", WORDS + "alone\n", {}, ["d.conll", "line 76", "1 columns"]),
    "documents alone": ("d.conll", "-DOCSTART- -X- O\n\n" * 9, {}, ["d.conll", "no words"]),
    "nine columns of CoNLL-U": ("d.conllu", "1\ta\tb\tc\td\te\tf\tg\th\n", {}, ["d.conllu", "line 1", "9"]),
    "an ID that is none": ("d.conllu", "x\t" + "\t".join("abcdefghi") + "\n", {}, ["d.conllu", "line 1", "ID"]),
    "comments alone": ("d.conllu", "# text\n# more\n", {}, ["d.conllu"]),
    "one tag for all": ("d.conll", "word O\nother O\n\n" * 20, {}, ["d.conll", "O"]),
    "more tags than words": (
        "d.jsonl",
        '{"w": ["a", "b"], "t": ["O"]}\n' * 20,
        {"tokens": "w", "tags": "t"},
        ["d.jsonl", "line 1", "1 tags for 2 words"],
    ),
    "sentences without words": (
        "d.jsonl",
        '{"w": [], "t": []}\n' * 20,
        {"tokens": "w", "tags": "t"},
        ["d.jsonl", "line 1", "word"],
    ),
    "numbers as sentences": (
        "d.jsonl",
        '{"w": 1, "t": ["O"]}\n' * 20,
        {"tokens": "w", "tags": "t"},
        ["d.jsonl", "w"],
    ),
    "missing words": (
        "d.jsonl",
        '{"w": ["a", null], "t": ["O", "O"]}\n' * 20,
        {"tokens": "w", "tags": "t"},
        ["d.jsonl", "w"],
    ),
    "no column of tags": (
        "d.jsonl",
        '{"w": ["a"], "t": ["O"]}\n' * 20,
        {"tokens": "w", "tags": "tags"},
        ["d.jsonl", "tags"],
    ),
    "a list of lists as words": (
        "d.jsonl",
        '{"w": [["a"]], "t": ["O"]}\n' * 20,
        {"tokens": "w", "tags": "t"},
        ["d.jsonl", "w"],
    ),
    "a column beyond CoNLL's": ("d.conll", WORDS, {"tags": 9}, ["d.conll", "9"]),
}


@pytest.mark.parametrize("name", TASKS)
def test_broken_sentences_are_refused_with_their_place(name, place, refused):
    file, content, fields, says = TASKS[name]
    (place / file).write_text(content)
    task = {"objective": "tagging", "train": file, **fields}
    (place / "suite.yaml").write_text(yaml.safe_dump({"primary": "main", "tasks": {"main": task}}))
    refused(["check", "suite.yaml"], says)


CHOICES: dict[str, tuple[list[object], dict[str, object], list[str]]] = {
    "one choice": ([{"q": "a", "c": ["x"], "a": 0}] * 20, {}, ["d.jsonl", "line 1", "two choices"]),
    "an answer beyond the choices": ([{"q": "a", "c": ["x", "y"], "a": 2}] * 20, {}, ["d.jsonl", "line 1", "2"]),
    "a negative answer": ([{"q": "a", "c": ["x", "y"], "a": -1}] * 20, {}, ["d.jsonl", "line 1"]),
    "an answer that is no number": ([{"q": "a", "c": ["x", "y"], "a": "z"}] * 20, {}, ["d.jsonl", "line 1", "z"]),
    "an answer of 10^30": ([{"q": "a", "c": ["x", "y"], "a": 10**30}] * 20, {}, ["d.jsonl", "line 1"]),
    "texts as choices": ([{"q": "a", "c": "x", "a": 0}] * 20, {}, ["d.jsonl", "c"]),
    "no choices": ([{"q": "a", "c": None, "a": 0}] * 20, {}, ["d.jsonl"]),
    "a missing column of choices": ([{"q": "a", "c": "x", "a": 0}] * 20, {"choices": ["c", "d"]}, ["d.jsonl", "d"]),
    "choices that are no columns": ([{"q": "a", "c": "x", "a": 0}] * 20, {"choices": []}, ["choices"]),
    "choices of null": ([{"q": "a", "c": ["x", None], "a": 0}] * 20, {}, ["d.jsonl", "c"]),
}


@pytest.mark.parametrize("name", CHOICES)
def test_broken_choices_are_refused_with_their_place(name, place, refused):
    rows, fields, says = CHOICES[name]
    (place / "d.jsonl").write_text(lines(rows))
    task = {"objective": "multiple-choice", "train": "d.jsonl", "text": "q", "choices": "c", "label": "a", **fields}
    (place / "suite.yaml").write_text(yaml.safe_dump({"primary": "main", "tasks": {"main": task}}))
    refused(["check", "suite.yaml"], says)


MANY: dict[str, tuple[list[object], dict[str, object], list[str]]] = {
    "no lists": ([{"text": "a", "l": 3}] * 20, {"label": "l"}, ["d.jsonl", "l"]),
    "an empty list": (
        [*({"text": f"{i}", "l": ["a"] if i % 2 else ["b"]} for i in range(20)), {"text": "x", "l": []}],
        {"label": "l"},
        ["d.jsonl", "line 21"],
    ),
    "the same for all": ([{"text": "a", "l": ["x", "y"]}] * 20, {"label": "l"}, ["d.jsonl", "nothing to learn"]),
    "columns of twos": (
        [{"text": "a", "x": 2, "y": 0}] * 20,
        {"labels": ["x", "y"]},
        ["d.jsonl", "line 1", "2"],
    ),
    "columns of words": ([{"text": "a", "x": "yes", "y": 0}] * 20, {"labels": ["x", "y"]}, ["d.jsonl", "yes"]),
    "columns that are not there": ([{"text": "a", "x": 1}] * 20, {"labels": ["x", "y"]}, ["d.jsonl", "y"]),
    "one column": ([{"text": "a", "x": 1}] * 20, {"labels": ["x"]}, ["labels", "two"]),
    "an empty separator": (
        [{"text": "a", "l": "x;y"}] * 20,
        {"label": "l", "label_separator": ""},
        ["label_separator"],
    ),
    "a null in a list": ([{"text": "a", "l": ["x", None]}] * 20, {"label": "l"}, ["d.jsonl"]),
}


@pytest.mark.parametrize("name", MANY)
def test_broken_lists_of_labels_are_refused_with_their_place(name, place, refused):
    rows, fields, says = MANY[name]
    (place / "d.jsonl").write_text(lines(rows))
    task = {"objective": "multi-label", "train": "d.jsonl", "text": "text", **fields}
    (place / "suite.yaml").write_text(yaml.safe_dump({"primary": "main", "tasks": {"main": task}}))
    refused(["check", "suite.yaml"], says)


IMAGES = np.random.default_rng(0).integers(0, 255, (40, 4, 4)).astype(np.uint8)
LABELS = np.arange(40, dtype=np.uint8) % 2


def header(*shape: int, kind: int = 8) -> bytes:
    return struct.pack(f">BBBB{len(shape)}I", 0, 0, kind, len(shape), *shape)


PICTURES: dict[str, tuple[bytes, bytes, list[str]]] = {
    "nothing": (b"", idx(LABELS), ["images", "idx"]),
    "another kind of file": (b"\x89PNG\r\n", idx(LABELS), ["images", "89 50"]),
    "an unknown type": (header(40, 4, 4, kind=7), idx(LABELS), ["images"]),
    "a cut header": (idx(IMAGES)[:9], idx(LABELS), ["images", "header"]),
    "cut data": (idx(IMAGES)[:-1], idx(LABELS), ["images", "640", "639"]),
    "data too long": (idx(IMAGES) + b"x", idx(LABELS), ["images", "641"]),
    "sizes beyond 64 bits": (header(*[2**32 - 1] * 6), idx(LABELS), ["images"]),
    "sizes that wrap round to nothing": (header(2**31, 2**31, 4), idx(LABELS), ["images"]),
    "more dimensions than arrays have": (header(*[1] * 255) + b"x", idx(LABELS), ["images"]),
    "no dimension": (header() + b"x", idx(LABELS), ["images"]),
    "two dimensions": (idx(IMAGES[0]), idx(LABELS), ["images", "dimensions"]),
    "no rows": (header(0, 4, 4), header(0), ["images"]),
    "no width": (header(40, 4, 0), idx(LABELS), ["images"]),
    "no height": (header(40, 0, 4), idx(LABELS), ["images"]),
    "fewer labels": (idx(IMAGES), idx(LABELS[:39]), ["labels", "40", "39"]),
    "labels of two dimensions": (idx(IMAGES), idx(LABELS[:, None]), ["labels"]),
    "images as labels": (idx(IMAGES), idx(IMAGES), ["labels"]),
    "NaN in an image": (
        idx(np.where(np.arange(640).reshape(40, 4, 4) == 33, np.nan, 1).astype(np.float32)),
        idx(LABELS),
        ["images", "finite", "row 2"],
    ),
    "infinity in an image": (
        idx(np.where(np.arange(640).reshape(40, 4, 4) == 33, np.inf, 1).astype(np.float64)),
        idx(LABELS),
        ["images", "finite", "row 2"],
    ),
    "images beyond float32": (
        idx(np.where(np.arange(640).reshape(40, 4, 4) == 33, 1e300, 1).astype(np.float64)),
        idx(LABELS),
        ["images", "finite", "row 2"],
    ),
    "labels that are NaN": (idx(IMAGES), idx(np.full(40, np.nan, np.float32)), ["images"]),
    "one label": (idx(IMAGES), idx(np.zeros(40, np.uint8)), ["images", "nothing to learn"]),
}


@pytest.mark.parametrize("name", PICTURES)
def test_broken_images_are_refused_with_their_place(name, place, refused):
    images, labels, says = PICTURES[name]
    (place / "images").write_bytes(images)
    (place / "labels").write_bytes(labels)
    task = {"objective": "classification", "train": {"image": "images", "label": "labels"}}
    (place / "suite.yaml").write_text(yaml.safe_dump({"primary": "main", "tasks": {"main": task}}))
    refused(["check", "suite.yaml"], says)


@pytest.fixture(scope="session")
def saved_dataset(tmp_path_factory):
    """A directory that `save_to_disk` has written."""
    datasets = pytest.importorskip("datasets")
    directory = tmp_path_factory.mktemp("saved") / "ds"
    rows = {"text": [f"row {i}" for i in range(40)], "label": ["up", "down"] * 20}
    datasets.Dataset.from_dict(rows).save_to_disk(str(directory))
    return directory


# name → (the file, its content: a text, a change of its JSON, or a change of its bytes; what the message says)
SAVED: dict[str, tuple[str, Any, list[str]]] = {
    "a state of nothing": ("state.json", "{}", ["state.json", "_data_files"]),
    "a state that is a list": ("state.json", "[]", ["state.json", "list"]),
    "a state that is no JSON": ("state.json", "{", ["state.json", "JSON"]),
    "a deep state": ("state.json", "[" * 100_000, ["state.json"]),
    "no state": ("state.json", None, ["state.json"]),
    "no files": ("state.json", lambda data: data.update(_data_files=[]), ["_data_files"]),
    "files that are a text": ("state.json", lambda data: data.update(_data_files="x"), ["_data_files"]),
    "files without names": ("state.json", lambda data: data.update(_data_files=[{}]), ["_data_files", "None"]),
    "files elsewhere": (
        "state.json",
        lambda data: data.update(_data_files=[{"filename": "../ds/data-00000-of-00001.arrow"}]),
        ["_data_files", "../ds"],
    ),
    "a file that is not there": (
        "state.json",
        lambda data: data.update(_data_files=[{"filename": "x.arrow"}]),
        ["x.arrow"],
    ),
    "a pipe": ("state.json", lambda data: data.update(_data_files=[{"filename": "pipe"}]), ["pipe"]),
    "a format that is none": ("state.json", lambda data: data.update(_format_type="evil"), ["evil"]),
    "a format of other columns": ("state.json", lambda data: data.update(_format_columns=["nope"]), ["nope"]),
    "facts that are a list": ("dataset_info.json", "[]", ["dataset_info.json", "list"]),
    "facts that are deep": ("dataset_info.json", '{"a":' * 50_000, ["dataset_info.json"]),
    "a type that is none": (
        "dataset_info.json",
        lambda data: data["features"]["text"].update(dtype="evil"),
        ["evil"],
    ),
    "features of another kind": (
        "dataset_info.json",
        lambda data: data.update(features={"text": 3, "label": 4}),
        ["ds"],
    ),
    "classes for texts": (
        "dataset_info.json",
        lambda data: data["features"].update(label={"_type": "ClassLabel", "names": ["a"]}),
        ["ds"],
    ),
    "rows that are cut": ("data-00000-of-00001.arrow", lambda data: data[: len(data) // 2], ["ds"]),
    "rows of nothing": ("data-00000-of-00001.arrow", lambda data: b"", ["ds"]),
    "rows of words": ("data-00000-of-00001.arrow", lambda data: b"hello", ["ds"]),
    "rows with other bytes": (
        "data-00000-of-00001.arrow",
        lambda data: data[:100] + b"\xff" * 8 + data[108:],
        ["ds"],
    ),
    "splits that are a number": ("dataset_dict.json", '{"splits": 3}', ["dataset_dict.json", "splits"]),
    "splits of a list": ("dataset_dict.json", "[]", ["dataset_dict.json", "splits"]),
    "splits elsewhere": ("dataset_dict.json", '{"splits": ["../ds"]}', ["dataset_dict.json", "splits"]),
    "splits that are not there": ("dataset_dict.json", '{"splits": ["train"]}', ["train"]),
}


@pytest.mark.parametrize("name", SAVED)
def test_a_broken_saved_dataset_is_refused(name, saved_dataset, place, refused):
    file, change, says = SAVED[name]
    copy_of(saved_dataset, place / "ds")
    path = place / "ds" / file
    os.mkfifo(place / "ds" / "pipe")
    if change is None:
        path.unlink()
    elif isinstance(change, str):
        path.write_text(change)
    elif file.endswith(".json"):
        data = json.loads(path.read_text())
        change(data)
        path.write_text(json.dumps(data))
    else:
        path.write_bytes(change(path.read_bytes()))
    task = {"objective": "classification", "train": "ds", "text": "text", "label": "label"}
    (place / "suite.yaml").write_text(yaml.safe_dump({"primary": "main", "tasks": {"main": task}}))
    refused(["check", "suite.yaml"], says)


@pytest.mark.parametrize("content", ["[]", '{"splits": 3}', "{"])
def test_init_of_a_broken_saved_dataset_is_refused(content, saved_dataset, place, refused):
    copy_of(saved_dataset, place / "ds")
    (place / "ds" / "dataset_dict.json").write_text(content)
    refused(["init", "ds", "-o", "suite.yaml"], ["dataset_dict.json"])
