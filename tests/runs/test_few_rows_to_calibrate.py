"""A temperature that is fitted to very few rows is warned of, before the training."""

import warnings

import pytest

from sidequest.recipe import Phase, Recipe
from sidequest.runs.setup import Setup
from sidequest.runs.training import train_recipe
from sidequest.tasks.digits import digits_suite

ROWS = {"top-left": 40, "parity": 0, "bottom-right": 0, "large": 0, "ink": 0, "shuffled": 0}


@pytest.mark.parametrize(("rows", "calibrate", "warned"), [(10, True, True), (10, False, False), (20, True, False)])
def test_a_temperature_of_few_rows_is_warned_of(rows, calibrate, warned, tmp_path, monkeypatch):
    monkeypatch.setenv("SIDEQUEST_CACHE", str(tmp_path / "cache"))
    suite = digits_suite(0, rows=ROWS, select_rows=rows, report_rows=20).subset([])
    setup = Setup.of(suite, {}, {"epochs": 1, "max_batches": 2})
    recipe = Recipe(method="single", primary=suite.primary, phases=(Phase(shares={suite.primary: 1.0}),))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        train_recipe(setup, recipe, 0, directory=tmp_path / "run", calibrate=calibrate)
    said = [str(warning.message) for warning in caught if "--calibrate" in str(warning.message)]
    assert len(said) == warned
    assert all(each.startswith(f"--calibrate: select has {rows} rows, and a temperature") for each in said)
