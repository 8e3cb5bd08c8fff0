"""The figure of `auto` shows every arm, and the controls apart."""

from sidequest.recipe import Phase, Recipe
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
    assert set(by_name["candidates"].y) == {"a", "b"}
    assert set(by_name["controls"].y) == {"the primary alone", "a, shuffled"}
    assert list(drawn.figure.layout.yaxis.categoryarray)[-1] == "a"  # the best is at the top
    assert drawn.figure.layout.shapes[0].x0 == 0.02  # the highest control
    assert "0.20 of the primary's length" in drawn.caption
