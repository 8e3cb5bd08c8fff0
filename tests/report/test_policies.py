"""Figures of policies, and their static pictures."""

from __future__ import annotations

from xml.etree import ElementTree

import plotly.graph_objects as go
import pytest

from sidequest.report.policies import candidate_scores, policy_against_sizes, policy_over_time, scores_over_time
from sidequest.report.style import save
from sidequest.report.svg import can_draw, nice_ticks, to_svg

SVG = "{http://www.w3.org/2000/svg}"
CURVES = {
    name: {"step": [1, 50, 100], "median": [0.0, high / 2, high], "low": [0.0, 0.1, 0.2], "high": [0.1, 0.5, 0.9]}
    for name, high in (("random", 0.4), ("oracle <best>", 0.8))
}
EVIDENCE = {
    "policy_over_time": {"step": [10, 20], "policy": {"a": [0.5, 0.6], "b": [0.5, 0.4]}},
    "candidates": [
        {"iteration": 1, "entropy_weight": 0.5, "score": 0.6},
        {"iteration": 1, "entropy_weight": 0.1, "score": 0.5},
        {"iteration": 2, "entropy_weight": 0.1, "score": None},
    ],
}


def drawn(figure) -> ElementTree.Element:
    return ElementTree.fromstring(to_svg(figure))


def points(element) -> list[tuple[float, float]]:
    return [tuple(map(float, pair.split(","))) for pair in element.attrib["points"].split()]


def test_curves_have_a_line_and_a_band_each():
    figure = scores_over_time(CURVES, "title", "score")
    assert [trace.name for trace in figure.data if trace.name] == ["random", "oracle <best>"]
    root = drawn(figure)
    lines, bands = root.findall(f"{SVG}polyline"), root.findall(f"{SVG}polygon")
    assert len(lines) == len(bands) == 2
    for line, high in zip(lines, (0.4, 0.8), strict=True):
        (x0, y0), (x1, y1), (x2, y2) = points(line)
        assert x0 < x1 < x2
        assert y0 > y1 > y2  # up is a smaller y
        assert (y0 - y1) == pytest.approx((y0 - y2) / 2, abs=0.2), high
    assert all(0 <= x <= 800 and 0 <= y <= 450 for each in (*lines, *bands) for x, y in points(each))
    assert "oracle <best>" in [text.text for text in root.findall(f"{SVG}text")]


def test_numbers_on_the_axes_stay_inside_the_plot():
    """The range from 3.1 to 96.2 asks for the round numbers 0 and 100, which lie beyond it."""
    figure = go.Figure(go.Scatter(x=[3.1, 96.2], y=[3.1, 96.2], mode="markers"))
    root = to_svg(figure)
    labels = {text.text: float(text.attrib["x"]) for text in ElementTree.fromstring(root).findall(f"{SVG}text")}
    below = [x for label, x in labels.items() if label and label.replace(".", "").isdigit()]
    assert {"20", "80"} <= set(labels)
    assert all(0 <= x <= 800 - 20 for x in below)


def test_policy_over_time_shows_every_task_and_the_uniform_policy():
    root = drawn(policy_over_time(EVIDENCE))
    assert len(root.findall(f"{SVG}polyline")) == 2
    assert len([line for line in root.findall(f"{SVG}line") if "stroke-dasharray" in line.attrib]) == 1


def test_candidates_are_in_order_of_lambda_and_untried_ones_are_left_out():
    figure = candidate_scores(EVIDENCE)
    assert [list(trace.x) for trace in figure.data] == [[0.1, 0.5]]
    (line,) = drawn(figure).findall(f"{SVG}polyline")
    assert len(points(line)) == 2


def test_bars_are_as_high_as_their_shares():
    figure = policy_against_sizes({"a": 0.2, "b": 0.8}, {"a": 900, "b": 100})
    assert list(figure.data[0].x) == ["a", "b"]  # the largest dataset first
    heights = [float(bar.attrib["height"]) for bar in drawn(figure).findall(f"{SVG}rect")]
    assert heights[1] / heights[0] == pytest.approx(4, rel=0.01)
    assert heights[2] / heights[3] == pytest.approx(9, rel=0.02)


def test_traces_that_cannot_be_drawn_are_refused():
    heatmap = go.Figure(go.Heatmap(z=[[1]]))
    with pytest.raises(ValueError, match="found \\['heatmap'\\]"):
        to_svg(heatmap)
    for figure in (
        heatmap,
        go.Figure(),
        go.Figure(go.Scatter(x=[1, 2], y=[1, 2], line={"shape": "hv"})),
        go.Figure(go.Scatter(x=[1, 2], y=[1, 2], error_y={"array": [1, 1]})),
        go.Figure(go.Bar(x=["a"], y=[1]), layout={"barmode": "stack"}),
    ):
        assert not can_draw(figure)


def test_lines_across_the_figure_are_where_they_say():
    figure = go.Figure(go.Scatter(x=[0, 10], y=[0, 1]))
    figure.add_vline(x=5)
    figure.add_hline(y=2)  # above the data
    assert can_draw(figure)
    dashed = [line.attrib for line in drawn(figure).findall(f"{SVG}line") if "stroke-dasharray" in line.attrib]
    upright, level = dashed
    assert upright["x1"] == upright["x2"] == f"{(60 + 780) / 2:.1f}"
    assert level["y1"] == level["y2"] == "40.0"


def test_saving_writes_a_page_and_a_picture(tmp_path):
    written = save(policy_over_time(EVIDENCE), tmp_path / "figures" / "policy")
    assert {path.suffix for path in written} >= {".html", ".svg"}
    ElementTree.parse(tmp_path / "figures" / "policy.svg")


@pytest.mark.parametrize(("low", "high"), [(0, 1), (0.31, 0.69), (-3, 47), (0, 2000), (5, 5)])
def test_ticks_are_few_and_span_the_data(low, high):
    ticks = nice_ticks(low, high)
    assert ticks[0] <= low
    assert high <= ticks[-1]
    assert 1 <= len(ticks) <= 9
