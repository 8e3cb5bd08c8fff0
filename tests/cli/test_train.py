"""From a recipe to the final model: with the model that chose it, another one, or from a comparison."""

import csv
import json
import re
import sys
from typing import Any

import pytest

from sidequest.recipe import Phase, Recipe
from sidequest.records.comparisons import Comparison
from sidequest.runs.sources import for_other_model, open_source
from tests.helpers.marks import minilm

pytestmark = pytest.mark.usefixtures("few_digits")

SIZES = {"few": 30, "many": 60}
QUICK = ["--set", "train.epochs=2", "--set", "train.max_batches=40"]


@pytest.fixture
def selected(run, tmp_path):
    code, _, errors = run("select", "digits", "-m", "heu-type", "-o", tmp_path / "cheap", *QUICK)
    assert code == 0, errors
    return tmp_path / "cheap"


def test_settings_given_to_train_win_and_the_rest_is_the_recipes(selected):
    plain = open_source(selected).setup
    assert (plain.train.epochs, plain.train.max_batches) == (2, 40)
    longer = open_source(selected, train={"epochs": 5})
    assert (longer.setup.train.epochs, longer.setup.train.max_batches, longer.other_model) == (5, 40, False)
    assert open_source(selected, train={"steps": 4}).setup.train.epochs == 1  # 100 rows are four batches
    wider = open_source(selected, model={"hidden": 7})
    assert wider.other_model
    assert wider.setup.model.hidden == 7
    assert wider.recipe.provenance["chosen_with"]["model"]["hidden"] == 16


def test_a_final_model_is_tuned_and_has_a_place_of_its_own(run, selected, tmp_path):
    (tmp_path / "tuning.json").write_text('{"version": 1, "chosen": {"train.learning_rate": 0.0042}}')
    code, _, errors = run("train", selected, "--tune", tmp_path / "tuning.json")
    assert (code, "needs a place of its own, as in -o runs/final" in errors) == (2, True)
    code, _, errors = run("train", selected, "--tune", tmp_path / "tuning.json", "-o", tmp_path / "final")
    assert code == 0, errors
    assert Recipe.read(tmp_path / "final" / "recipe.json").provenance["train"]["learning_rate"] == 0.0042
    assert Recipe.read(selected / "recipe.json").provenance["train"]["learning_rate"] != 0.0042
    code, _, errors = run("train", selected, "--tune", "nowhere.json", "-o", tmp_path / "other")
    assert (code, "--tune takes a number of trainings or a file" in errors) == (2, True)
    code, said, _ = run("train", selected, "--tune", "12", "--dry-run")
    assert (code, "up to 12 trainings of the primary come on top" in said) == (0, True)


@minilm
def test_a_suite_given_to_train_brings_its_own_settings(run, reviews, tmp_path):
    suite = tmp_path / "suite.yaml"
    code, _, errors = run(
        "init", reviews / "reviews_train.csv", reviews / "other.jsonl", "--primary", "reviews", "-o", suite
    )
    assert code == 0, errors
    code, _, errors = run("select", suite, "-m", "heu-type", "-o", tmp_path / "cheap", "--model", "pooled", *QUICK)
    assert code == 0, errors
    other = tmp_path / "other.yaml"
    other.write_text(suite.read_text() + "\nmodel: {kind: hf, layers: 1}\ntrain: {epochs: 7}\n", encoding="utf-8")
    opened = open_source(tmp_path / "cheap" / "recipe.json", str(other))
    assert opened.other_model
    assert (opened.setup.model.kind, opened.setup.model.layers, opened.setup.train.epochs) == ("hf", 1, 7)
    assert opened.notes == ["chosen with pooled, trained with hf"]


def test_another_model_needs_a_directory_of_its_own(run, selected):
    code, _, errors = run("train", selected, "--set", "model.hidden=7")
    assert code == 2
    assert "needs a place, as in -o runs/final" in errors
    code, _, errors = run("train", selected, "--set", "gamma=1", "-o", selected)
    assert code == 2
    assert "a recipe is chosen already" in errors


def test_a_suite_file_given_for_a_recipe_is_told_what_comes_before(run, tmp_path):
    suite = tmp_path / "suite.yaml"
    suite.write_text("suite: mine\nprimary: a\ntasks: {}\n")
    code, _, errors = run("train", suite, "-o", tmp_path / "out")
    assert code == 2
    assert f"{suite}: is a suite file" in errors
    assert f"sidequest select {suite} -m single -o runs/single, then sidequest train runs/single" in errors
    code, _, errors = run("train", tmp_path / "absent.yaml", "-o", tmp_path / "out")
    assert code == 2
    assert "is a suite file" not in errors


def test_lengths_of_a_recipe_are_carried_over_in_proportion(selected):
    opened = open_source(selected)
    phases = (
        Phase(shares={"top-left": 1}, epochs=1.0),
        Phase(shares={"top-left": 1}, batches=8),
        Phase(shares={"top-left": 1}),
    )
    recipe = Recipe(method="x", primary="top-left", phases=phases, provenance=opened.recipe.provenance)
    longer = for_other_model(recipe, open_source(selected, train={"epochs": 6, "batch_size": 64}).setup)
    assert [phase.epochs for phase in longer.phases] == [3.0, None, None]
    assert longer.phases[1].batches == 12  # three times as long in batches of twice the rows


@pytest.mark.integration
def test_a_comparison_is_trained_by_its_best_method_without_a_second_selection(run, tmp_path):
    out = tmp_path / "compared"
    code, _, errors = run("compare", "digits", "-m", "heu-type", "--seeds", 1, "-o", out, "--workers", 1, *QUICK)
    assert code == 0, errors
    code, text, errors = run("train", out)
    assert code == 2
    assert "needs a place, as in -o runs/final" in errors
    code, text, errors = run("train", out, "--dry-run")  # writes nothing, and needs no place
    assert code == 0, errors
    assert "training the recipe of single: " in text
    code, text, errors = run("train", out, "-o", tmp_path / "final")
    assert code == 0, errors
    assert "single, seed 0: no method is shown to help" in text
    recipe = Recipe.read(tmp_path / "final" / "recipe.json")
    assert recipe.method == "single"
    helping = Comparison.read(out)
    rows = tuple(r.model_copy(update={"verdict": "helps"}) if r.method == "heu-type" else r for r in helping.rows)
    helping.model_copy(update={"rows": rows}).write(out)
    assert open_source(out).recipe.method == "heu-type"


@minilm
@pytest.mark.integration
def test_chosen_with_a_cheap_model_and_trained_with_the_real_one(run, reviews, tmp_path):
    suite = tmp_path / "suite.yaml"
    files = [reviews / "reviews_train.csv", reviews / "reviews_test.csv", reviews / "other.jsonl"]
    assert run("init", *files, "--primary", "reviews", "-o", suite)[0] == 0
    code, _, errors = run("select", suite, "-m", "heu-type", "-o", tmp_path / "cheap", "--model", "pooled", *QUICK)
    assert code == 0, errors
    settings = ["--model", "hf", "--set", "model.layers=1", "--set", "train.steps=6"]
    code, text, errors = run("train", tmp_path / "cheap", "-o", tmp_path / "final", *settings)
    assert code == 0, errors
    assert "chosen with pooled, trained with hf" in text
    card = json.loads((tmp_path / "final" / "model" / "sidequest.json").read_text())
    assert card["loads_with"].startswith("transformers.")
    code, text, errors = run(
        "predict", tmp_path / "final" / "model", reviews / "reviews_test.csv", "-o", tmp_path / "p.csv"
    )
    assert code == 0, errors
    labels = [row["label"] for row in csv.DictReader((tmp_path / "p.csv").open(encoding="utf-8"))]
    assert labels == in_plain_transformers(tmp_path / "final" / "model", reviews / "reviews_test.csv", card)


@minilm
@pytest.mark.integration
def test_the_goal_average_from_compare_to_train(run, reviews, tmp_path):
    """Every policy as long, differences against `uniform`, and the mean of all tasks where the final model is scored."""
    task = f"objective: classification, report: {reviews}/reviews_test.csv, text: body, label: stars"
    lines = ["primary: few", "goal: average", "model: {kind: pooled}", "tasks:"]
    lines += [f"  {name}: {{{task}, train: {reviews}/reviews_train.csv, limit: {n}}}" for name, n in SIZES.items()]
    suite = tmp_path / "suite.yaml"
    suite.write_text("\n".join(lines), encoding="utf-8")
    code, text, errors = run("compare", suite, "-m", "exp3s", "--seeds", "1", "-o", tmp_path / "c", *QUICK)
    assert code == 0, errors
    assert "against uniform" in text
    found = {each.method: each for each in Comparison.read(tmp_path / "c").outcomes}
    assert not {"single-long", "random-subset"} & {*found}
    lengths = {name: (found[name].training.batches or found[name].selection.batches) for name in ("uniform", "exp3s")}
    assert lengths["uniform"] == lengths["exp3s"] > 0
    code, text, errors = run("train", tmp_path / "c" / "exp3s" / "seed-0")
    assert code == 0, errors
    scores = {name: float(score) for name, score in re.findall(r"(few|many) (\d\.\d+)", text)}
    (mean,) = re.findall(r"mean over 2 tasks: (\d\.\d+)", text)
    assert float(mean) == pytest.approx(sum(scores.values()) / 2, abs=1e-4)
    assert "of few alone:\nselect: accuracy" in text


def test_one_primary_has_no_mean_over_tasks(run, selected):
    assert "mean over" not in run("train", selected)[1]


def in_plain_transformers(model, rows, card):
    """What the code on the model's card answers, where sidequest cannot be imported."""
    (code,) = re.findall(r"```python\n(.*?)```", (model / "README.md").read_text(encoding="utf-8"), flags=re.DOTALL)
    column = card["task"]["inputs"]["columns"]["text"]
    texts = [[row[column] for row in csv.DictReader(rows.open(encoding="utf-8"))]]
    names: dict[str, Any] = {"DIRECTORY": str(model), "texts": texts}
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in sys.modules if name.partition(".")[0] == "sidequest"]:
            patch.setitem(sys.modules, name, None)  # importing it fails
        exec(compile(code, "README.md", "exec"), names)
    return [names["model"].config.id2label[int(row.argmax())] for row in names["logits"]]


def test_all_rows_are_learned_from_when_all_is_chosen(run, selected, tmp_path):
    code, text, errors = run("train", selected, "-o", tmp_path / "all", "--all-rows")
    assert code == 0, errors
    assert "select: learned from, and so without scores" in text
    scores = json.loads((tmp_path / "all" / "scores.json").read_text())
    assert (scores["select"], scores["history"]) == ({}, [])
    assert "learned from *train* and *select*" in (tmp_path / "all" / "model" / "README.md").read_text()
    assert "It learned from select, too" in (tmp_path / "all" / "report.html").read_text()
    code, _, errors = run("train", selected, "-o", tmp_path / "usual")
    assert code == 0, errors
    assert json.loads((tmp_path / "usual" / "scores.json").read_text())["select"]
    first, second = (next((tmp_path / name / "model").glob("*.safetensors")).read_bytes() for name in ("all", "usual"))
    assert first != second  # other rows, another model
    assert "chosen with *select*" in (tmp_path / "usual" / "model" / "README.md").read_text()


def test_all_rows_leave_none_to_calibrate_on(run, selected, tmp_path):
    code, _, errors = run("train", selected, "-o", tmp_path / "all", "--all-rows", "--calibrate")
    assert code == 2
    assert "--all-rows leaves none" in errors
    assert not (tmp_path / "all").exists()


def test_joined_rows_keep_their_places(selected):
    setup = open_source(selected).setup
    task, joined = (each.suite.tasks["top-left"] for each in (setup, setup.with_all_rows()))
    assert len(joined.train) == len(task.train) + len(task.splits["select"])
    assert (joined.train.ids[: len(task.train)] == task.train.ids).all()
    assert joined.fingerprints["report"] == task.fingerprints["report"]
    assert joined.fingerprints["train"] != task.fingerprints["train"]
    assert setup.with_all_rows().train.keep == "last"
