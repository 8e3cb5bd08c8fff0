"""Figures from recipes alone: what they show is what the recipe says."""

import numpy as np
import pytest

from sidequest.methods.gradts.gradts import GradTSFg, GradTSTrial
from sidequest.recipe import Recipe
from sidequest.records.evidence import HeadImportances, HeadSimilarity, RowTaus
from sidequest.report import gradts as figures
from sidequest.report.images import save_figures
from tests.helpers.known_heads import MATRICES, go, only_same


@pytest.fixture(scope="module")
def recipes():
    """As read from a file: nothing but the recipe's own bytes."""
    found = {}
    for method in (GradTSTrial(), GradTSFg()):
        state, _ = go(method, only_same)
        found[method.name] = Recipe.model_validate_json(method.recipe(state).to_json())
    return found


def test_the_heat_map_shows_the_scaled_matrix(recipes):
    evidence = recipes["gradts-trial"].evidence
    figure = figures.head_importance(HeadImportances.of(evidence), "p")
    np.testing.assert_array_equal(figure.data[0].z, evidence["heads"]["p"])
    assert np.array(figure.data[0].z).shape == MATRICES["p"].shape


def test_the_matrix_of_tau_has_names_on_both_sides(recipes):
    figure = figures.tau_between_tasks(HeadSimilarity.of(recipes["gradts-trial"].evidence))
    cells = figure.data[0]
    assert list(cells.x) == list(cells.y)[::-1] == ["p", "far", "mid", "near", "same"]
    for row, name in enumerate(cells.y):
        assert cells.z[row][list(cells.x).index(name)] == pytest.approx(1.0)


def test_tau_stands_beside_what_each_candidate_is_worth():
    figure = figures.tau_against_gains({"sst2": {"b": (0.5, -1.0), "a": (0.1, 2.0)}, "pos": {"a": (0.3, 0.0)}})
    first, second = figure.data
    assert (list(first.text), list(first.x), list(first.y)) == (["a", "b"], [0.1, 0.5], [2.0, -1.0])
    assert list(second.x) == [0.3]
    assert first.marker.color != second.marker.color


def test_shares_of_tasks_and_of_rows(recipes):
    assert figures.selected_shares(recipes["gradts-trial"]) == {"far": 0.0, "mid": 0.0, "near": 0.0, "same": 1.0}
    assert figures.selected_shares(recipes["gradts-fg"]) == {"far": 0.0, "mid": 0.0, "near": 0.0, "same": 0.5}


def test_the_selection_map_has_a_row_per_primary(recipes):
    fg = recipes["gradts-fg"]
    evidence = fg.evidence | {"ranking": ["p", "far"], "instances": {}}
    other = fg.model_copy(update={"primary": "same", "evidence": evidence})
    figure = figures.selection_map([fg, other])
    cells = figure.data[0]
    assert list(cells.y) == ["same", "p"]
    assert list(cells.x)[:2] == ["p", "same"]
    assert cells.z[1][1] == 0.5
    assert np.isnan(cells.z[0][1])  # a task is no auxiliary of its own


def test_the_histogram_marks_the_threshold(recipes, tmp_path):
    figure = figures.row_taus(RowTaus.of(recipes["gradts-fg"].evidence))
    assert sum(figure.data[0].y) == pytest.approx(1.0)
    assert figure.layout.shapes[0].x0 == 0.42
    (written,), _ = save_figures({"taus": figure}, tmp_path, ["html"])
    assert written.exists()
