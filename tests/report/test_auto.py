"""The figure of `auto` shows every arm, and the controls apart."""

import math

import pytest

from sidequest.recipe import Phase, Recipe
from sidequest.records.evidence import AutoRound
from sidequest.report.auto import probes
from sidequest.report.evidence import evidence_figures


def arm(name: str, kind: str, gain: float) -> dict[str, object]:
    return {"arm": name, "kind": kind, "tasks": [], "truth": 0.5, "gain": gain, "error": 0.01}


def test_each_candidate_stands_beside_the_controls():
    arms = [arm("a", "candidate", 0.1), arm("the primary alone", "single", -0.01), arm("b", "candidate", -0.05)]
    rounds = [{"stage": "probe", "length": 0.2, "seeds": [1], "arms": [*arms, arm("a, shuffled", "permuted", 0.02)]}]
    recipe = Recipe(method="auto", primary="p", phases=(Phase(shares={"p": 1}),), evidence={"rounds": rounds})
    (drawn,) = evidence_figures(recipe)
    assert drawn.figure is not None, drawn.note
    by_name = {trace.name: trace for trace in drawn.figure.data}
    assert set(by_name["not chosen"].y) == {"a", "b"}
    assert set(by_name["controls"].y) == {"the primary alone", "a, shuffled"}
    assert list(drawn.figure.layout.yaxis.categoryarray)[-1] == "a"  # the best is at the top
    assert drawn.figure.layout.shapes[0].x0 == 0.02  # the highest control
    assert "0.20 of the primary's full length" in drawn.caption
    together = recipe.model_copy(update={"phases": (Phase(shares={"p": 1, "a": 1}),)})
    drawn = next(each for each in evidence_figures(together) if "full length" in each.caption)
    by_name = {trace.name: trace for trace in drawn.figure.data}
    assert {name: set(trace.y) for name, trace in by_name.items() if name != "controls"} == {
        "chosen": {"a"},
        "not chosen": {"b"},
    }


@pytest.mark.parametrize("gains", [(0.0, 0.004), (-0.05, 0.1), (-0.2, 0.5), (0.0, 0.0), (-3.0, 2.0), (0.6, 0.7)])
def test_the_axis_has_some_round_factors_and_1_among_them_where_they_are(gains):
    shown = AutoRound.of(
        {"stage": "probe", "length": 0.2, "arms": [arm(str(gain), "candidate", gain) for gain in gains]}
    )
    axis = probes(shown).layout.xaxis
    assert 1 <= len(axis.tickvals) <= 5
    assert "1×" in axis.ticktext
    for place, text in zip(axis.tickvals, axis.ticktext, strict=True):
        assert math.exp(place) == pytest.approx(float(text.removesuffix("×")))
        assert axis.range[0] <= place <= axis.range[1]
