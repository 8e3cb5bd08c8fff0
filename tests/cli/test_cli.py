"""The command line: the whole way on small suites, one clear message for bad input, instant help."""

import csv
import json
import os
import subprocess
import sys

import numpy as np
import pytest

from sidequest.methods import METHODS
from sidequest.recipe import Recipe
from tests.helpers import ROOT
from tests.helpers.marks import minilm

pytestmark = pytest.mark.usefixtures("few_digits")


@minilm
@pytest.mark.integration
def test_the_whole_way_with_a_users_own_files(run, reviews, tmp_path):
    suite, out = tmp_path / "suite.yaml", tmp_path / "run"
    files = [reviews / "reviews_train.csv", reviews / "reviews_test.csv", reviews / "other.jsonl"]
    code, text, errors = run("init", *files, "--primary", "reviews", "-o", suite)
    assert code == 0, errors
    code, text, errors = run("check", suite)
    assert code == 0, errors
    assert f"next: sidequest select {suite} -o" in text
    settings = ["--model", "pooled", "--set", "train.epochs=6", "--set", "train.patience=null"]
    code, text, errors = run("select", suite, "-m", "heu-size", "-o", out, *settings)
    assert code == 0, errors
    assert "cost" in text
    code, text, errors = run("train", out)
    assert code == 0, errors
    scores = json.loads((out / "scores.json").read_text())
    assert scores["report"]["accuracy"] > 0.8
    predictions = tmp_path / "predictions.csv"
    code, text, errors = run("predict", out / "model", reviews / "reviews_test.csv", "-o", predictions)
    assert code == 0, errors
    with predictions.open(newline="") as file:
        found = list(csv.DictReader(file))
    with (reviews / "reviews_test.csv").open(newline="") as file:
        truth = [row["stars"] for row in csv.DictReader(file)]
    assert len(found) == 40
    right = np.mean([row["label"] == label for row, label in zip(found, truth, strict=True)])
    assert right == pytest.approx(scores["report"]["accuracy"])
    # The recipe alone, elsewhere, with the same data: the same model to the last byte.
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "recipe.json").write_bytes((out / "recipe.json").read_bytes())
    code, text, errors = run("train", elsewhere / "recipe.json", "--suite", suite, "-o", elsewhere / "run")
    assert code == 0, errors
    weights = [place / "model" / "model.safetensors" for place in (out, elsewhere / "run")]
    assert weights[0].read_bytes() == weights[1].read_bytes()
    for form in ("interleave", "jsonl", "parquet", "machamp", "axolotl"):
        code, text, errors = run("export", out, "--to", form, "-o", tmp_path / form)
        assert code == 0, errors
        assert text.strip()


@minilm
@pytest.mark.integration
def test_changed_data_is_refused_when_a_recipe_is_trained(run, reviews, tmp_path):
    for name in ("reviews_train.csv", "reviews_test.csv", "other.jsonl"):
        (tmp_path / name).write_bytes((reviews / name).read_bytes())
    suite, out = tmp_path / "suite.yaml", tmp_path / "run"
    run(
        "init",
        *(tmp_path / name for name in ("reviews_train.csv", "reviews_test.csv", "other.jsonl")),
        "-o",
        suite,
        "--primary",
        "reviews",
    )
    assert run("select", suite, "-m", "all", "-o", out, "--model", "pooled")[0] == 0
    with (tmp_path / "other.jsonl").open("a") as file:
        file.write('{"sentence": "one more", "label": "up"}\n')
    code, _, errors = run("train", out)
    assert code == 2
    assert "the data changed since the recipe was made" in errors
    assert "task 'other', split 'train': the recipe saw" in errors


@pytest.mark.integration
def test_compare_on_digits_resumes_and_shares(run, tmp_path):
    out = tmp_path / "compare"
    command = [
        "compare",
        "digits",
        "-m",
        "heu-type",
        "--seeds",
        "2",
        "-o",
        out,
        "--workers",
        "1",
        "--set",
        "train.epochs=1",
    ]
    code, text, errors = run(*command)
    assert code == 0, errors
    assert "Verdict" in text
    first = json.loads((out / "comparison.json").read_text())
    assert {row["method"] for row in first["rows"]} >= {
        "single",
        "single-long",
        "all",
        "size",
        "random-subset",
        "heu-type",
    }
    (out / "all" / "seed-1" / "outcome.json").unlink()
    assert run(*command)[0] == 0
    second = json.loads((out / "comparison.json").read_text())
    assert [row["scores"] for row in first["rows"]] == [row["scores"] for row in second["rows"]]
    recipe = Recipe.read(out / "all" / "seed-0" / "recipe.json")
    assert recipe.cost.x == 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["select", "digits", "-m", "singel", "-o", "OUT"], "unknown method 'singel'. Did you mean 'single'?"),
        (["select", "nosuch.yaml", "-m", "single", "-o", "OUT"], "nosuch.yaml"),
        (["select", "digits", "-m", "single", "-o", "OUT", "--set", "train.epoch=3"], "Did you mean 'epochs'?"),
        (
            ["select", "digits", "-m", "temperature", "-o", "OUT", "--set", "temprature=3"],
            "Did you mean 'temperature'?",
        ),
        (
            ["select", "digits", "-m", "single", "-o", "OUT", "--model", "pooled"],
            "For images set model.kind to convnet",
        ),
        (["compare", "digits", "--set", "gamma=3", "-o", "OUT"], "say which method"),
        (["select", "digits", "-m", "single", "-o", "OUT", "--effort", "3"], "none of these has an effort: single"),
        (["train", "OUT"], "recipe"),
        (["export", "OUT/recipe.json", "--to", "jsonl", "-o", "OUT"], "a recipe is needed here"),
        (["predict", "OUT"], "at least one model directory"),
        (["predict", "OUT", "file.csv"], "not a model directory"),
    ],
)
def test_bad_input_gives_one_message_and_code_2(run, tmp_path, arguments, says):
    place = str(tmp_path / "out")
    code, _, errors = run(*(argument.replace("OUT", place) for argument in arguments))
    assert code == 2
    assert says in errors
    assert "Traceback" not in errors


def test_without_a_method_auto_chooses_and_says_so_in_a_sentence(run, tmp_path):
    quick = ["--set", "train.epochs=2", "--set", "train.max_batches=8"]
    code, out, errors = run("select", "digits", "-o", tmp_path / "run", "--effort", "1", *quick)
    assert code == 0, errors
    recipe = Recipe.read(tmp_path / "run" / "recipe.json")
    assert recipe.method == "auto"
    assert recipe.provenance["method_settings"]["effort"] == 1
    assert recipe.verdict in out
    code, out, _ = run("select", "digits", "-o", tmp_path / "less", "--effort", "1", "--budget", "0.01", *quick)
    assert "the budget is too small to look at 5 candidates" in out  # a budget wins over the effort


def test_another_run_in_the_directory_is_not_overwritten(run, tmp_path):
    assert run("select", "digits", "-m", "single", "-o", tmp_path / "run")[0] == 0
    before = (tmp_path / "run" / "recipe.json").read_bytes()
    code, _, errors = run("select", "digits", "-m", "all", "-o", tmp_path / "run")
    assert code == 2
    assert "method: there 'single', now 'all'" in errors
    assert (tmp_path / "run" / "recipe.json").read_bytes() == before


def test_places_have_defaults(run, tmp_path, monkeypatch):
    """Like those of compare and demo: the first command of a new user need not name a place."""
    monkeypatch.chdir(tmp_path)
    code, text, errors = run("select", "digits", "-m", "single")
    assert code == 0, errors
    assert "written to runs/select/recipe.json" in text
    code, _, errors = run("export", "runs/select", "--to", "parquet")
    assert code == 0, errors
    assert (tmp_path / "export" / "EXPORT.md").is_file()


def test_methods_shows_whole_names_and_models_in_a_narrow_terminal(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = run("methods")
    assert code == 0
    assert all(f" {name} " in out for name in METHODS)
    (line,) = (line for line in out.splitlines() if " gradts-thres " in line)
    assert "custom" in line


def test_methods_lists_every_method_with_its_settings(run):
    code, text, _ = run("methods", "--json")
    assert code == 0
    listed = {row["name"]: row for row in json.loads(text)}
    assert {"single", "heu-len", "random-subset"} <= set(listed)
    assert "temperature" in listed["temperature"]["settings"]
    assert all(row["summary"] and row["cost"] for row in listed.values())


@pytest.mark.parametrize(
    "command", ["demo", "init", "check", "methods", "select", "train", "predict", "compare", "export"]
)
def test_every_command_has_help_with_an_example(run, command):
    code, text, _ = run(command, "--help")
    assert code == 0
    assert "Example:" in text


def test_help_is_instant():
    """No heavy import at start-up; it then takes about a fifth of a second of CPU time."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", "from sidequest.cli import main; main()", "--help"],
        capture_output=True,
        text=True,
        env=os.environ | {"COLUMNS": "100"},
    )
    assert done.returncode == 0
    assert "compare" in done.stdout
    imported = {line.split("|")[-1].strip() for line in done.stderr.splitlines()}
    assert not imported & {"torch", "transformers", "numpy", "pydantic", "pandas", "scipy", "pyarrow"}


@pytest.mark.parametrize("command", ["select", "train", "tune", "compare", "oracle", "score", "predict", "demo"])
def test_every_command_that_runs_a_model_takes_a_device(command, run):
    assert "--device" in run(command, "--help")[1]


def test_a_device_that_is_none_is_refused(run, tmp_path, monkeypatch):
    monkeypatch.setenv("SIDEQUEST_DEVICE", "cpu")
    code, _, errors = run("select", "digits", "-m", "single", "-o", tmp_path / "run", "--device", "GPU 0")
    assert code == 2
    assert "is not a device" in errors
    code, _, errors = run("select", "digits", "-m", "single", "-o", tmp_path / "run", "--device", "xpu")
    assert code == 2
    assert "finds no xpu device" in errors


@pytest.mark.parametrize(
    "command",
    [
        ["compare", "digits", "-m", "heu-size", "--seeds", "1", "-o", "out", "--workers", "1"],
        ["compare", "digits", "-m", "heu-size", "--seeds", "1", "-o", "out", "--workers", "2"],
        ["oracle", "digits", "--seeds", "2", "-o", "out/truth.json", "--workers", "1"],
    ],
)
def test_a_device_that_is_not_there_is_refused_before_any_work(command, run, tmp_path, monkeypatch):
    monkeypatch.setenv("SIDEQUEST_DEVICE", "cpu")  # put back at the end, whatever --device has set
    monkeypatch.setenv("SIDEQUEST_CACHE", str(tmp_path / "cache"))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    code, said, errors = run(*command, "--device", "xpu")
    assert (code, said) == (2, "")
    assert errors == "sidequest: --device xpu: this machine's torch finds no xpu device; leave it out or use cpu\n"
    assert list(tmp_path.rglob("*")) == [tmp_path / "here"]


def test_a_method_of_a_users_file_selects(run, tmp_path):
    reference = f"{ROOT / 'tests' / 'helpers' / 'toy_method.py'}:LargestGain"
    settings = ["--set", "train.max_batches=2", "--set", "least_gain=0.9"]
    code, _, errors = run("select", "digits", "-m", reference, "-o", tmp_path, *settings)
    assert code == 0, errors
    recipe = Recipe.read(tmp_path / "recipe.json")
    assert recipe.method == "largest-gain"
    assert recipe.provenance["method_settings"] == {"least_gain": 0.9}
