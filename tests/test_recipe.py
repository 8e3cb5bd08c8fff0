"""Recipes: the same recipe is the same bytes; files round-trip; broken files are refused with place and reason."""

import json

import numpy as np
import pytest
from pydantic import ValidationError

from sidequest.errors import RunMismatch, SettingsError
from sidequest.recipe import Phase, Recipe, Subset

RECIPE = Recipe(
    method="test",
    primary="a",
    phases=(
        Phase(order="cycle", shares={"a": 1, "b": 5, "c": 0}, subsets={"b": Subset(ids=(4, 1, 9))}, weights={"b": 0.5}),
        Phase(order="sample", shares={"a": 1.0}, batches=10),
    ),
    evidence={"scores": [0.1, 1 / 3]},
)


def test_round_trip_through_files(tmp_path):
    RECIPE.write(tmp_path / "recipe.json")
    assert Recipe.read(tmp_path / "recipe.json") == RECIPE
    text = json.loads((tmp_path / "recipe.json").read_text())
    assert text["phases"][0]["subsets"]["b"]["rows"] == 3
    assert "ids" not in text["phases"][0]["subsets"]["b"]


def test_equal_recipes_are_equal_bytes(tmp_path):
    RECIPE.write(tmp_path / "one.json")
    Recipe(**RECIPE.model_dump()).write(tmp_path / "two.json")
    assert (tmp_path / "one.json").read_bytes() == (tmp_path / "two.json").read_bytes()


def test_tasks_in_order_of_use_without_dropped_ones():
    assert RECIPE.tasks == ("a", "b")
    assert RECIPE.auxiliaries == ("b",)


@pytest.mark.parametrize(
    ("phase", "says"),
    [
        ({"shares": {"a": 0}}, "at least one task"),
        ({"shares": {"a": -1}}, "at least"),
        ({"shares": {"a": 1.5}}, "whole-number"),
        ({"shares": {"a": 1}, "epochs": 1, "batches": 1}, "not both"),
        ({"shares": {"a": 1}, "weights": {"a": float("nan")}}, "finite"),
        ({"shares": {"a": 1}, "typo": 1}, "not permitted"),
    ],
)
def test_senseless_phases_are_refused(phase, says):
    with pytest.raises(ValidationError, match=says):
        Phase(**phase)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{", "not a recipe"),
        ("[]", "version"),
        ('{"version": 99}', "version 1, found 99"),
        ('{"version": 1, "method": "m", "primary": "a", "phases": [{"shares": {"a": "x"}}]}', "phases.0.shares.a"),
    ],
)
def test_broken_files_are_refused_with_place(tmp_path, content, says):
    path = tmp_path / "recipe.json"
    path.write_text(content)
    with pytest.raises(SettingsError, match=says):
        Recipe.read(path)


def test_a_missing_row_file_is_named(tmp_path):
    RECIPE.write(tmp_path / "recipe.json")
    next(tmp_path.glob("rows-*.npy")).unlink()
    with pytest.raises(RunMismatch, match=r"subsets\.b: its rows should be"):
        Recipe.read(tmp_path / "recipe.json")


def test_rows_of_a_subset_are_one_array_that_nobody_can_change():
    mine = np.array([4, 1, 9])
    subset = Subset(ids=mine)
    mine[0] = 7
    assert subset.ids.tolist() == [4, 1, 9]
    assert subset.ids.dtype == np.int64
    with pytest.raises(ValueError, match="read-only"):
        subset.ids[0] = 2
    assert subset == Subset(ids=(4, 1, 9))
    assert subset.key == Subset(ids=[4, 1, 9]).key
    assert subset != Subset(ids=(1, 4, 9))
    assert Subset.model_validate_json(subset.model_dump_json()) == subset
    assert Phase.model_validate(Phase(shares={"a": 1}, subsets={"a": subset}).model_dump()).subsets == {"a": subset}


@pytest.mark.parametrize(
    "ids", [[-1], [2**63], [0.5], ["a"], [True], "12", np.array([-3]), np.array([[1]]), np.array([0.5])]
)
def test_rows_that_are_no_ids_are_refused(ids):
    with pytest.raises(ValidationError, match="row ids are"):
        Subset(ids=ids)
