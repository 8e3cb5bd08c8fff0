"""Exports hold the recipe's mixture: shares as row counts, subsets and labels by name, in files that others can read."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from sidequest.errors import SettingsError
from sidequest.recipe import Phase, Recipe, Subset
from sidequest.runs.exporting import epoch_rows, export_recipe
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
    (path,) = export_recipe(RECIPE, SUITE, "jsonl", tmp_path)
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert len(rows) == 40
    assert [row["task"] for row in rows] != sorted(row["task"] for row in rows)
    more = next(row for row in rows if row["task"] == "more")
    assert (more["weight"], more["label"]) == (0.5, "yes")
    assert next(row for row in rows if row["task"] == "tags")["label"] == ["O", "B-X"]


def test_interleave_arguments_are_accepted_by_datasets(tmp_path):
    from datasets import Dataset, interleave_datasets

    (path,) = export_recipe(RECIPE, SUITE, "interleave", tmp_path)
    (phase,) = json.loads(path.read_text())["phases"]
    parts = [Dataset.from_dict({"task": [name] * 300}) for name in phase["datasets"]]
    mixed = interleave_datasets(parts, **phase["arguments"])
    share = np.mean([row == "more" for row in mixed["task"]])
    assert share == pytest.approx(0.5, abs=0.06)
    assert phase["row_ids"] == {"more": [101, 105, 107]}


def test_parquet_has_a_file_per_task(tmp_path):
    paths = export_recipe(RECIPE, SUITE, "parquet", tmp_path)
    assert {path.stem: pq.read_table(path).num_rows for path in paths} == {"main-one": 10, "more": 20, "tags": 10}


def test_machamp_columns_match_its_configuration(tmp_path):
    paths = export_recipe(RECIPE, SUITE, "machamp", tmp_path)
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
    paths = export_recipe(RECIPE, SUITE, "axolotl", tmp_path)
    config = yaml.safe_load(next(path for path in paths if path.suffix == ".yaml").read_text())
    for entry in config["datasets"]:
        row = json.loads((tmp_path / entry["path"]).read_text().splitlines()[0])
        assert set(row) == {"instruction", "input", "output"}


def test_bad_requests(tmp_path):
    with pytest.raises(SettingsError, match="Did you mean 'parquet'"):
        export_recipe(RECIPE, SUITE, "parket", tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(SettingsError, match="is a file"):
        export_recipe(RECIPE, SUITE, "jsonl", tmp_path / "file")
