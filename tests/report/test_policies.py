"""Figures of policies."""

from __future__ import annotations

from sidequest.records.evidence import PolicyOverTime, TriedPolicies
from sidequest.report.policies import candidate_scores, policy_against_sizes, policy_over_time, scores_over_time

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


def test_curves_have_a_line_and_a_band_each():
    figure = scores_over_time(CURVES, "title", "score")
    assert [trace.name for trace in figure.data if trace.name] == ["random", "oracle <best>"]
    bands = [trace for trace in figure.data if trace.fill == "toself"]
    lines = [trace for trace in figure.data if trace.fill is None]
    assert [list(line.y) for line in lines] == [curve["median"] for curve in CURVES.values()]
    for band in bands:
        assert list(band.x) == [1, 50, 100, 100, 50, 1]
        assert list(band.y) == [0.1, 0.5, 0.9, 0.2, 0.1, 0.0]


def test_policy_over_time_shows_every_task_and_the_uniform_policy():
    figure = policy_over_time(PolicyOverTime.of(EVIDENCE))
    assert [trace.name for trace in figure.data] == ["a", "b"]
    (uniform,) = figure.layout.shapes
    assert uniform.y0 == uniform.y1 == 0.5
    assert uniform.line.dash == "dot"


def test_candidates_are_in_order_of_lambda_and_untried_ones_are_left_out():
    figure = candidate_scores(TriedPolicies.of(EVIDENCE))
    assert [(list(trace.x), list(trace.y)) for trace in figure.data] == [([0.1, 0.5], [0.5, 0.6])]


def test_bars_are_as_high_as_their_shares():
    figure = policy_against_sizes({"a": 0.2, "b": 0.8}, {"a": 900, "b": 100})
    learned, by_size = figure.data
    assert list(learned.x) == ["a", "b"]  # the largest dataset first
    assert list(learned.y) == [0.2, 0.8]
    assert list(by_size.y) == [0.9, 0.1]
