"""Exports hold the recipe's mixture: shares as row counts, subsets and labels by name, in files that others can read."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from sidequest.errors import SettingsError
from sidequest.recipe import Phase, Recipe, Subset
from sidequest.runs.exports import FORMATS, export_recipe
from sidequest.runs.exports.rows import epoch_rows
from sidequest.settings import TrainSettings
from sidequest.tasks.examples import Examples
from sidequest.tasks.suite import Suite
from sidequest.tasks.task import Form, Objective, Task


def text_task(name: str, rows: int) -> Task:
    columns = {"text": pa.array([f"{name} says\t{i}" for i in range(rows)]), "text_b": pa.array(["and?"] * rows)}
    examples = Examples(columns, np.arange(rows) % 2, np.arange(rows) + 100)
    return Task(name, Objective.CLASSIFICATION, Form.PAIR, {"train": examples, "select": examples}, ("no", "yes"))


def tag_task(name: str, rows: int) -> Task:
    tokens = pa.array([["the", "dog"]] * rows)
    target = pa.array([[0, 1]] * rows, pa.list_(pa.int64()))
    examples = Examples({"tokens": tokens}, target, np.arange(rows))
    return Task(name, Objective.TAGGING, Form.TOKENS, {"train": examples}, ("O", "B-X"), ("span_f1",))


SUITE = Suite.of(text_task("main-one", 10), [text_task("more", 40), tag_task("tags", 6)])
RECIPE = Recipe(
    method="test",
    primary="main-one",
    phases=(
        Phase(
            shares={"main-one": 1, "more": 2, "tags": 1},
            weights={"more": 0.5},
            subsets={"more": Subset(ids=(101, 105, 107))},
        ),
    ),
    provenance={"seed": 4},
)


def test_an_epoch_holds_tasks_in_their_shares():
    rows = epoch_rows(RECIPE.phases[0], SUITE, 4)
    assert {name: len(part) for name, part in rows.items()} == {"main-one": 10, "more": 20, "tags": 10}
    assert set(rows["more"].ids.tolist()) == {101, 105, 107}
    counts = np.bincount(rows["more"].ids)[[101, 105, 107]]
    assert counts.max() - counts.min() <= 1  # repeated evenly
    assert np.array_equal(rows["more"].ids, epoch_rows(RECIPE.phases[0], SUITE, 4)["more"].ids)


def test_jsonl_rows_are_shuffled_and_complete(tmp_path):
    (path, notes), _ = export_recipe(RECIPE, SUITE, "jsonl", tmp_path)
    assert notes.name == "EXPORT.md"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert len(rows) == 40
    assert [row["task"] for row in rows] != sorted(row["task"] for row in rows)
    more = next(row for row in rows if row["task"] == "more")
    assert (more["weight"], more["label"]) == (0.5, "yes")
    assert next(row for row in rows if row["task"] == "tags")["label"] == ["O", "B-X"]


def test_interleave_arguments_are_accepted_by_datasets(tmp_path):
    from datasets import Dataset, interleave_datasets

    (path, _), _ = export_recipe(RECIPE, SUITE, "interleave", tmp_path)
    (phase,) = json.loads(path.read_text())["phases"]
    parts = [Dataset.from_dict({"task": [name] * 300}) for name in phase["datasets"]]
    mixed = interleave_datasets(parts, **phase["arguments"])
    share = np.mean([row == "more" for row in mixed["task"]])
    assert share == pytest.approx(0.5, abs=0.06)
    assert phase["row_ids"] == {"more": [101, 105, 107]}


def test_parquet_has_a_file_per_task(tmp_path):
    paths, _ = export_recipe(RECIPE, SUITE, "parquet", tmp_path)
    assert {path.stem: pq.read_table(path).num_rows for path in paths if path.suffix == ".parquet"} == {
        "main-one": 10,
        "more": 20,
        "tags": 10,
    }


def test_machamp_columns_match_its_configuration(tmp_path):
    paths, _ = export_recipe(RECIPE, SUITE, "machamp", tmp_path)
    config = json.loads(next(path for path in paths if path.name == "machamp-phase-1.json").read_text())
    entry = config["more"]
    line = (tmp_path / entry["train_data_path"]).read_text().splitlines()[0].split("\t")
    assert entry["sent_idxs"] == [0, 1]
    assert line[entry["tasks"]["more"]["column_idx"]] in ("no", "yes")
    assert len(line) == 3  # a tab in a text does not make a column
    tags = (tmp_path / config["tags"]["train_data_path"]).read_text()
    assert tags.startswith("the\tO\ndog\tB-X\n\n")
    assert config["tags"]["tasks"]["tags"]["task_type"] == "seq_bio"
    assert "dev_data_path" in config["main-one"]


def test_axolotl_lists_files_that_exist(tmp_path):
    paths, said = export_recipe(RECIPE, SUITE, "axolotl", tmp_path, TrainSettings(epochs=7))
    config = yaml.safe_load(next(path for path in paths if path.suffix == ".yaml").read_text())
    assert config["num_epochs"] == 7
    assert "axolotl has no loss weights: those of the recipe are left out (more 0.5)." in said
    for entry in config["datasets"]:
        row = json.loads((tmp_path / entry["path"]).read_text().splitlines()[0])
        assert set(row) == {"instruction", "input", "output"}


def test_trl_keeps_every_row_of_the_files_with_its_fractions(tmp_path):
    export_recipe(RECIPE, SUITE, "trl", tmp_path, TrainSettings(epochs=2.5))
    config = yaml.safe_load((tmp_path / "trl-phase-1.yaml").read_text())
    assert config["num_train_epochs"] == 2.5
    sizes = [len((tmp_path / entry["data_files"]).read_text().splitlines()) for entry in config["datasets"]]
    weights = [entry["fraction"] for entry in config["datasets"]]
    total = min(size / weight for size, weight in zip(sizes, weights, strict=True))  # TRL's own rule
    assert [round(weight * total) for weight in weights] == sizes == [10, 20, 10]
    row = json.loads((tmp_path / config["datasets"][0]["data_files"]).read_text().splitlines()[0])
    assert set(row) == set(config["datasets"][0]["columns"])


def llama_factory_streaming(directory) -> dict:
    """The settings for streaming, which are a comment."""
    _, comment = (directory / "llama-factory-phase-1.yaml").read_text().split("instead of concat:\n")
    return yaml.safe_load(comment.replace("# ", ""))


def test_llama_factory_names_files_that_exist_and_probabilities_for_each(tmp_path):
    export_recipe(RECIPE, SUITE, "llama-factory", tmp_path)
    info = json.loads((tmp_path / "dataset_info.json").read_text())
    config = yaml.safe_load((tmp_path / "llama-factory-phase-1.yaml").read_text())
    assert (config["mix_strategy"], "interleave_probs" in config) == ("concat", False)
    streaming = llama_factory_streaming(tmp_path)
    names, probabilities = config["dataset"].split(","), [float(p) for p in streaming["interleave_probs"].split(",")]
    assert sum(probabilities) == pytest.approx(1)
    assert dict(zip(names, probabilities, strict=True))["more-phase-1"] == pytest.approx(0.5)
    for name in names:
        row = json.loads((tmp_path / info[name]["file_name"]).read_text().splitlines()[0])
        assert {*info[name]["columns"].values()} == {*row}


def pairs(name: str, rows: int, objective: Objective) -> Task:
    columns = {"text": pa.array([f"{name} {i}" for i in range(rows)]), "text_b": pa.array(["so?"] * rows)}
    target = np.linspace(1, 5, rows) if objective == Objective.REGRESSION else np.arange(rows) % 2
    labels = () if objective == Objective.REGRESSION else ("no", "yes")
    return Task(name, objective, Form.PAIR, {"train": Examples(columns, target, np.arange(rows))}, labels)


def test_sentence_transformers_draws_batches_in_the_recipes_shares(tmp_path):
    from datasets import load_dataset

    suite = Suite.of(pairs("near", 64, Objective.REGRESSION), [pairs("nli", 500, Objective.CLASSIFICATION)])
    recipe = Recipe(method="test", primary="near", phases=(Phase(shares={"near": 1, "nli": 3}),))
    export_recipe(recipe, suite, "sentence-transformers", tmp_path, TrainSettings(batch_size=16, epochs=4))
    (phase,) = json.loads((tmp_path / "training.json").read_text())["phases"]
    loaded = {
        name: load_dataset(
            "json", data_files=str(tmp_path / entry["file"]), split="train", cache_dir=str(tmp_path / "hf")
        )
        for name, entry in phase["datasets"].items()
    }
    batches = {name: len(rows) // phase["per_device_train_batch_size"] for name, rows in loaded.items()}
    assert batches == {"near": 4, "nli": 12}
    assert (min(loaded["near"]["score"]), max(loaded["near"]["score"])) == (0, 1)
    assert {name: entry["loss"] for name, entry in phase["datasets"].items()} == {
        "near": "CosineSimilarityLoss",
        "nli": "SoftmaxLoss",
    }
    with pytest.raises(SettingsError, match="no loss for 'tags'"):
        export_recipe(RECIPE, SUITE, "sentence-transformers", tmp_path)


def test_what_a_format_cannot_say_is_said_in_words(tmp_path):
    two = Recipe(
        method="test",
        primary="main-one",
        phases=(Phase(shares={"main-one": 1, "more": 1}), Phase(shares={"main-one": 1}, batches=4)),
    )
    _, said = export_recipe(two, SUITE, "jsonl", tmp_path, TrainSettings(epochs=3, batch_size=5))
    assert any("2 phases" in sentence for sentence in said)
    assert any("random order" in sentence for sentence in said)
    page = (tmp_path / "EXPORT.md").read_text()
    assert "| 1 | more | 0.500 | 3 |" in page
    assert "| 2 | main-one | 1.000 | 2 |" in page  # four batches of five are two passes over ten rows
    for sentence in said:
        assert sentence in page
    plain = Recipe(method="x", primary="main-one", phases=(Phase(shares={"main-one": 1}, stop_early=False),))
    assert export_recipe(plain, SUITE, "jsonl", tmp_path / "plain")[1] == []


def test_every_format_is_in_the_docs():
    from pathlib import Path

    page = (Path(__file__).parents[2] / "docs" / "export.md").read_text(encoding="utf-8")
    for name in FORMATS:
        assert f"`{name}`" in page


def test_bad_requests(tmp_path):
    with pytest.raises(SettingsError, match="Did you mean 'parquet'"):
        export_recipe(RECIPE, SUITE, "parket", tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(SettingsError, match="is a file"):
        export_recipe(RECIPE, SUITE, "jsonl", tmp_path / "file")


def test_a_refused_export_leaves_nothing(tmp_path):
    with pytest.raises(SettingsError, match="sentence-transformers has no loss for 'tags'"):
        export_recipe(RECIPE, SUITE, "sentence-transformers", tmp_path / "out")
    assert not (tmp_path / "out").exists()
