"""Kinds of evidence: typed in the recipe, kept by its file, and drawn by one function each."""

import pytest
from pydantic import ValidationError

from sidequest.evidence import Additions, Bars, Curves, Histograms, Matrix, Points
from sidequest.recipe import Phase, Recipe
from sidequest.report.evidence import evidence_figures
from sidequest.report.kinds import DRAW
from tests.helpers.run_directories import evidences, make_recipe

KINDS = [
    Additions(steps=("a", "b"), scores=(0.5, 0.7, 0.6)),
    Curves(title="Weights", x=(1, 2), lines={"p": (0.5, 0.6), "a": (0.5, 0.4)}, level=0.5, mark=2),
    Bars(title="Gains", groups={"gain": {"a": 0.1, "b": -0.2}}),
    Matrix(title="Likeness", rows=("p", "a"), columns=("p", "a"), values=((1, 0.5), (0.5, 1))),
    Histograms(title="Rows", bins=(0, 1, 2), counts={"a": (3, 1)}, threshold=1),
    Points(title="Map", points={"p": ((0, 0), (1, 1)), "a": ((2, 2),)}),
]


def recipe(*figures):
    return Recipe(method="mine", primary="p", phases=(Phase(shares={"p": 1}),), evidence={"figures": list(figures)})


def test_every_kind_is_kept_by_a_file_and_drawn(tmp_path):
    assert {type(kind) for kind in KINDS} == set(DRAW)
    written = recipe(*KINDS)
    written.write(tmp_path / "recipe.json")
    read = Recipe.read(tmp_path / "recipe.json")
    assert read.figures == KINDS
    assert read.to_json() == written.to_json()
    drawings = evidence_figures(read)
    assert [drawing.title for drawing in drawings] == [kind.title for kind in KINDS]
    assert all(drawing.figure is not None for drawing in drawings)


def test_what_a_figure_shows_is_what_the_evidence_says():
    added, curves, bars, matrix, histograms, points = (drawing.figure for drawing in evidence_figures(recipe(*KINDS)))
    assert list(added.data[0].x) == ["p", "+ a", "+ b"]
    assert list(added.data[0].marker.symbol) == ["circle-open", "circle", "circle-open"]
    assert {trace.name: list(trace.y) for trace in curves.data} == {"p": [0.5, 0.6], "a": [0.5, 0.4]}
    assert [(shape.x0, shape.y0) for shape in curves.layout.shapes] == [(0, 0.5), (2, 0)]
    assert list(bars.data[0].y) == [0.1, -0.2]
    assert list(matrix.data[0].y) == ["a", "p"]
    assert list(histograms.data[0].y) == [0.75, 0.25]
    assert [trace.name for trace in points.data] == ["a", "p"]


def test_additions_that_changed_nothing_have_an_axis_close_to_them():
    ((flat,), (rising,)) = (
        [drawing.figure for drawing in evidence_figures(recipe(Additions(steps=("a",), scores=scores)))]
        for scores in ((0.5, 0.5), (0.5, 0.6))
    )
    assert flat.layout.yaxis.range == (0.4, 0.6)
    assert rising.layout.yaxis.range is None


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        ({"kind": "curves", "title": "t", "x": [1, 2], "lines": {"a": [1]}}, "'a' has 1 values for 2 places"),
        ({"kind": "additions", "steps": ["a"], "scores": [1, 2, 3]}, "at most 2 scores"),
        ({"kind": "matrix", "title": "t", "rows": ["a"], "columns": ["a"], "values": [[1, 2]]}, "1 rows of 1"),
        ({"kind": "curve", "title": "t"}, "does not match any of the expected tags"),
    ],
)
def test_a_kind_that_does_not_fit_is_refused(broken, says):
    with pytest.raises(ValidationError, match=says):
        recipe(broken)


def test_recipes_of_older_methods_are_drawn_too():
    drawn = {drawing.name for drawing in evidence_figures(make_recipe("heu-size", evidences()["heu-size"]))}
    assert "added" in drawn
