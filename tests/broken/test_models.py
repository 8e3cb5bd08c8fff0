"""Model directories that cannot be: cards with missing or odd fields, weights that are none, files to predict that do not fit."""

from __future__ import annotations

import json
import os
import pickle
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch

from sidequest.files import file_digest
from tests.broken.conftest import copy_of
from tests.broken.test_recipes import Change, drop, put
from tests.helpers.good_inputs import idx

CARDS: dict[str, tuple[Change, list[str]]] = {
    "no task": (drop("task"), ["task"]),
    "a task that is a text": (put("task", "main"), ["task"]),
    "a task without a name": (drop("task", "name"), ["task.name"]),
    "a task without labels": (drop("task", "labels"), ["task.labels"]),
    "no labels": (put("task", "labels", []), ["labels"]),
    "one label": (put("task", "labels", ["a"]), ["labels"]),
    "a label twice": (put("task", "labels", ["a", "a"]), ["labels"]),
    "more labels than outputs": (put("task", "labels", ["a", "b", "c"]), ["weights"]),
    "labels that are numbers": (put("task", "labels", [0, 1]), ["labels"]),
    "10^6 labels": (put("task", "labels", [str(i) for i in range(10**6)]), ["labels"]),
    "an objective that is none": (put("task", "objective", "guessing"), ["objective"]),
    "another objective": (put("task", "objective", "regression"), ["weights"]),
    "tagging of images": (put("task", "objective", "tagging"), ["tagging"]),
    "a form that is none": (put("task", "form", "sound"), ["form"]),
    "another form": (put("task", "form", "text"), ["form"]),
    "no columns": (put("task", "columns", []), ["columns"]),
    "a column that is none": (put("task", "columns", ["sound"]), ["columns"]),
    "no image": (put("task", "image", None), ["image"]),
    "a shape of two": (put("task", "image", "shape", [6, 6]), ["shape"]),
    "a shape of zero": (put("task", "image", "shape", [1, 0, 6]), ["shape"]),
    "a shape of 10^9": (put("task", "image", "shape", [10**9, 10**9, 10**9]), ["shape"]),
    "a shape of 10^30": (put("task", "image", "shape", [1, 10**30, 6]), ["shape"]),
    "a type that is none": (put("task", "image", "dtype", "object"), ["dtype"]),
    "a type of complex numbers": (put("task", "image", "dtype", "complex128"), ["dtype"]),
    "a type that numpy lacks": (put("task", "image", "dtype", "float8"), ["dtype"]),
    "metrics that are none": (put("task", "metrics", ["acuracy"]), ["acuracy"]),
    "no metrics": (put("task", "metrics", []), ["metrics"]),
    "inputs that are a list": (put("task", "inputs", [1]), ["inputs"]),
    "inputs of texts": (put("task", "inputs", {"columns": "image"}), ["inputs"]),
    "an input that is none": (put("task", "inputs", "columns", {"sound": "a"}), ["sound"]),
    "a column of lists": (put("task", "inputs", "columns", {"image": {"a": 1}}), ["image"]),
    "reading of no kind": (put("task", "inputs", "reading", {"format": "excel"}), ["format", "excel"]),
    "reading by a codec": (put("task", "inputs", "reading", {"encoding": ["a"]}), ["encoding"]),
    "no model": (drop("model"), ["model"]),
    "a model that is a text": (put("model", "convnet"), ["model"]),
    "a model without a kind": (drop("model", "kind"), ["kind"]),
    "a kind that is none": (put("model", "kind", "convnett"), ["convnett"]),
    "another kind": (put("model", {"kind": "hf"}), ["model"]),
    "hidden units of 10^12": (put("model", "hidden", 10**12), ["hidden"]),
    "hidden units of 60,000": (put("model", "hidden", 60_000), ["weights"]),
    "channels of zero": (put("model", "channels", [0, 1]), ["channels"]),
    "dropout of two": (put("model", "dropout", 2), ["dropout"]),
    "a mean of NaN": (put("target", {"mean": float("nan"), "deviation": 1}), ["target"]),
    "a deviation of zero": (put("target", {"mean": 0, "deviation": 0}), ["deviation"]),
    "another version": (put("version", 3), ["version", "3"]),
    "a version of words": (put("version", "two"), ["version"]),
    "a negative version": (put("version", -1), ["version"]),
    "no version": (drop("version"), ["version"]),
    "a temperature of zero": (
        put("calibration", {"temperature": 0, "split": "a", "items": 1, "loss": [1, 1], "error": [1, 1]}),
        ["temperature"],
    ),
    "a calibration that is a number": (put("calibration", 3), ["calibration"]),
    "an unknown field": (put("extra", 1), ["extra"]),
    "a digest of other weights": (put("weights", "0" * 64), ["model.safetensors", "digest"]),
    "a digest that is a number": (put("weights", 3), ["weights"]),
    "a reader that is a number": (put("loads_with", 3), ["loads_with"]),
}


def write_card(good: Any, place: Path, change: Change) -> Path:
    directory = copy_of(good.model, place / "model")
    card = json.loads((directory / "sidequest.json").read_text())
    card.pop("sha256")
    change(card)
    (directory / "sidequest.json").write_text(json.dumps(card))
    return directory


def rows_to_predict(place: Path) -> Path:
    path = place / "new-images"
    path.write_bytes(idx(np.full((5, 6, 6), 9, np.uint8)))
    return path


@pytest.mark.parametrize("name", CARDS)
def test_a_card_of_another_shape_is_refused(name, good, place, refused):
    change, says = CARDS[name]
    directory = write_card(good, place, change)
    refused(["predict", directory, rows_to_predict(place), "-o", "out.csv"], says)


FILES: dict[str, tuple[str | bytes | None, list[str]]] = {
    "nothing": ("", ["sidequest.json"]),
    "not JSON": ("{", ["sidequest.json"]),
    "a list": ("[]", ["sidequest.json"]),
    "null": ("null", ["sidequest.json"]),
    "deep": ("[" * 100_000, ["sidequest.json"]),
    "not UTF-8": (b"\xff\xfe", ["sidequest.json"]),
    "5,000 digits": ('{"version": ' + "9" * 5000 + "}", ["sidequest.json"]),
    "no card": (None, ["sidequest.json"]),
    "a changed card": ("changed", ["sidequest.json", "sha256"]),
}


@pytest.mark.parametrize("name", FILES)
def test_what_is_no_card_is_refused(name, good, place, refused):
    directory = copy_of(good.model, place / "model")
    card = directory / "sidequest.json"
    content, says = FILES[name]
    if content is None:
        card.unlink()
    elif content == "changed":
        card.write_text(card.read_text().replace('"deviation": 1.0', '"deviation": 2.0'))
    else:
        card.write_bytes(content if isinstance(content, bytes) else content.encode())
    refused(["predict", directory, rows_to_predict(place), "-o", "out.csv"], says)


def changed(change: Callable[[dict[str, torch.Tensor]], Any]) -> Callable[[bytes], bytes]:
    def rewrite(data: bytes) -> bytes:
        tensors = safetensors.torch.load(data)
        change(tensors)
        return safetensors.torch.save(tensors)

    return rewrite


def first(tensors: dict[str, torch.Tensor]) -> str:
    return next(iter(tensors))


def lying_header(size: int) -> bytes:
    header = json.dumps({"a": {"dtype": "F32", "shape": [size], "data_offsets": [0, 4 * size]}}).encode()
    return struct.pack("<Q", len(header)) + header + b"\0" * 16


WEIGHTS: dict[str, Callable[[bytes], bytes | None]] = {
    "nothing": lambda data: b"",
    "no file": lambda data: None,
    "a cut file": lambda data: data[:-100],
    "a flipped byte": lambda data: data[:-50] + bytes([data[-50] ^ 255]) + data[-49:],
    "a pickle": lambda data: pickle.dumps({"a": 1}),
    "a pickle that runs code": lambda data: b"cos\nsystem\n(S'touch owned'\ntR.",
    "a header of 10^18 bytes": lambda data: struct.pack("<Q", 10**18) + data[8:],
    "a promise of 10^12 numbers": lambda data: lying_header(10**12),
    "NaN": changed(lambda tensors: tensors[first(tensors)].fill_(float("nan"))),
    "infinity": changed(lambda tensors: tensors[first(tensors)].fill_(float("inf"))),
    "a tensor too few": changed(lambda tensors: tensors.pop(first(tensors))),
    "a tensor too many": changed(lambda tensors: tensors.update(more=torch.zeros(3))),
    "another shape": changed(lambda tensors: tensors.update({first(tensors): torch.zeros(3)})),
    "words": lambda data: b"hello, these are weights",
}


@pytest.mark.parametrize("known", [True, False], ids=["with its digest", "with a digest of its own"])
@pytest.mark.parametrize("name", WEIGHTS)
def test_weights_that_are_none_are_refused(name, known, good, place, refused):
    """Also where the card agrees: whoever makes a directory can write any digest."""
    if name == "a flipped byte" and not known:
        pytest.skip("other weights with their own digest are another model")
    directory = copy_of(good.model, place / "model")
    weights = directory / "model.safetensors"
    made = WEIGHTS[name](weights.read_bytes())
    weights.unlink()
    if made is not None:
        weights.write_bytes(made)
    if not known:
        card = json.loads((directory / "sidequest.json").read_text())
        card.pop("sha256")
        card["weights"] = file_digest(weights) if weights.exists() else ""
        (directory / "sidequest.json").write_text(json.dumps(card))
    refused(["predict", directory, rows_to_predict(place), "-o", "out.csv"], ["weights"])


PREDICT: dict[str, tuple[list[str], list[str]]] = {
    "no rows": (["model"], ["model"]),
    "no model": (["nowhere", "new-images"], ["nowhere"]),
    "a file as a model": (["new-images", "new-images"], ["new-images"]),
    "a pipe as a model": (["pipe", "new-images"], ["pipe"]),
    "no file": (["model", "nowhere"], ["nowhere"]),
    "a folder": (["model", "model"], ["model"]),
    "a pipe": (["model", "pipe"], ["pipe"]),
    "a device": (["model", "/dev/zero"], ["/dev/zero"]),
    "other images": (["model", "other-images"], ["other-images"]),
    "images of NaN": (["model", "nan-images"], ["nan-images", "finite"]),
    "a text": (["model", "text.csv"], ["text.csv"]),
    "an unknown format": (["model", "new-images", "-o", "out.xlsx"], ["out.xlsx", ".csv"]),
    "a folder as output": (["model", "new-images", "-o", "folder.csv"], ["folder.csv"]),
    "output below a file": (["model", "new-images", "-o", "text.csv/out.csv"], ["text.csv"]),
    "output by a long name": (["model", "new-images", "-o", "x" * 300 + ".csv"], ["x.csv"]),
    "a column that is not there": (["model", "new-images", "--keep", "url", "-o", "out.csv"], ["url"]),
    "a factory of no file": (["model", "new-images", "--factory", "nowhere.py:build"], ["factory"]),
    "a device that is none": (["model", "new-images", "--device", "abacus"], ["abacus"]),
    "a device of words": (["model", "new-images", "--device", "../x"], ["../x"]),
}


@pytest.mark.parametrize("name", PREDICT)
def test_a_prediction_that_cannot_be_is_refused(name, good, place, refused, monkeypatch):
    monkeypatch.setenv("SIDEQUEST_DEVICE", "cpu")  # put back at the end, whatever --device has set
    copy_of(good.model, place / "model")
    rows_to_predict(place)
    (place / "other-images").write_bytes(idx(np.zeros((5, 9, 9), np.uint8)))
    (place / "nan-images").write_bytes(idx(np.full((5, 6, 6), np.nan, np.float32)))
    (place / "text.csv").write_text("text\nhello\n")
    (place / "folder.csv").mkdir()
    os.mkfifo(place / "pipe")
    arguments, says = PREDICT[name]
    refused(["predict", *arguments], says)


# name → (a field of an encoder's configuration, what the message says)
CONFIGS: dict[str, tuple[dict[str, Any] | str, list[str]]] = {
    "10^6 layers": ({"num_hidden_layers": 10**6}, ["num_hidden_layers", "1000000"]),
    "no layers": ({"num_hidden_layers": 0}, ["num_hidden_layers", "0"]),
    "negative layers": ({"num_hidden_layers": -1}, ["num_hidden_layers", "-1"]),
    "layers of NaN": ({"num_hidden_layers": float("nan")}, ["num_hidden_layers", "nan"]),
    "layers of words": ({"num_hidden_layers": "many"}, ["num_hidden_layers", "many"]),
    "a vocabulary of 10^12": ({"vocab_size": 10**12}, ["vocab_size"]),
    "no vocabulary": ({"vocab_size": 0}, ["vocab_size"]),
    "a width of 10^9": ({"hidden_size": 10**9}, ["hidden_size"]),
    "no heads": ({"num_attention_heads": 0}, ["num_attention_heads"]),
    "heads that do not divide the width": ({"num_attention_heads": 7}, ["num_attention_heads", "7"]),
    "10^12 positions": ({"max_position_embeddings": 10**12}, ["max_position_embeddings"]),
    "no positions": ({"max_position_embeddings": 0}, ["max_position_embeddings"]),
    "a width for each of 10^9 parts": ({"hidden_size": [24, 10**9]}, ["hidden_size"]),
    "a type that is none": ({"model_type": "evil"}, ["evil"]),
    "a type of a list": ({"model_type": ["bert"]}, ["model.encoder"]),
    "a function that is none": ({"hidden_act": "evil"}, ["evil"]),
    "a list": ("[]", ["config.json", "list"]),
    "null": ("null", ["config.json", "NoneType"]),
    "deep": ("[" * 100_000, ["config.json"]),
    "nothing": ("", ["config.json"]),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_an_encoder_whose_numbers_cannot_be_is_refused(name, encoder, good, place, refused):
    changes, says = CONFIGS[name]
    copy_of(encoder, place / "encoder")
    config = place / "encoder" / "config.json"
    text = changes if isinstance(changes, str) else json.dumps(json.loads(config.read_text()) | changes)
    config.write_text(text)
    command = ["select", good.texts, "--model", "pooled", "--encoder", "encoder", "-m", "single", "-o", "out"]
    refused([*command, "--workers", "1"], says)


# name → (a file of an encoder, its content; None: a pipe; what the message says)
ENCODER_FILES: dict[str, tuple[str, str | bytes | None, list[str]]] = {
    "a tokeniser that is no JSON": ("tokenizer.json", "{", ["tokenizer.json"]),
    "a tokeniser of nothing": ("tokenizer.json", "{}", ["tokenizer.json"]),
    "a tokeniser that is a list": ("tokenizer.json", "[]", ["tokenizer.json"]),
    "a deep tokeniser": ("tokenizer.json", "[" * 100_000, ["tokenizer.json"]),
    "a tokeniser of other bytes": ("tokenizer.json", b"\xff", ["tokenizer.json"]),
    "a tokeniser that is a pipe": ("tokenizer.json", None, ["tokenizer.json", "pipe"]),
    "settings that are no JSON": ("tokenizer_config.json", "{", ["tokenizer_config.json"]),
    "settings that are a list": ("tokenizer_config.json", "[]", ["tokenizer_config.json", "list"]),
    "a negative length": ("tokenizer_config.json", '{"model_max_length": -5}', ["model_max_length", "-5"]),
    "a length of NaN": ("tokenizer_config.json", '{"model_max_length": NaN}', ["model_max_length", "nan"]),
    "a length of words": ("tokenizer_config.json", '{"model_max_length": "x"}', ["model_max_length", "x"]),
    "settings that are a pipe": ("tokenizer_config.json", None, ["tokenizer_config.json", "pipe"]),
    "weights that are a pipe": ("model.safetensors", None, ["model.safetensors", "pipe"]),
    "weights of nothing": ("model.safetensors", "", ["model.encoder"]),
    "weights of words": ("model.safetensors", "hello", ["model.encoder"]),
    "an index that is a list": ("model.safetensors.index.json", "[]", ["index.json", "list"]),
    "an index of a list": ("model.safetensors.index.json", '{"weight_map": []}', ["weight_map", "list"]),
    "an index of other folders": (
        "model.safetensors.index.json",
        '{"weight_map": {"a": "../other.safetensors"}}',
        ["weight_map", "../other"],
    ),
}


@pytest.mark.parametrize("name", ENCODER_FILES)
def test_an_encoder_with_a_broken_file_is_refused(name, encoder, good, place, refused):
    file, content, says = ENCODER_FILES[name]
    path = copy_of(encoder, place / "encoder") / file
    path.unlink(missing_ok=True)
    if content is None:
        os.mkfifo(path)
    else:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    command = ["select", good.texts, "--model", "pooled", "--encoder", "encoder", "-m", "single", "-o", "out"]
    refused([*command, "--workers", "1"], says)


@pytest.mark.parametrize("where", [".", "encoder"])
def test_an_encoder_of_a_model_directory_is_checked_too(where, good, place, refused):
    directory = copy_of(good.model, place / "model")
    (directory / where).mkdir(exist_ok=True)
    (directory / where / "config.json").write_text('{"num_hidden_layers": 1000000}')
    refused(["predict", directory, rows_to_predict(place), "-o", "out.csv"], ["config.json", "num_hidden_layers"])
