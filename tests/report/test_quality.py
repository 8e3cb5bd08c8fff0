"""Regret against cost, over truth tables."""

from sidequest.records.standings import Standing
from sidequest.report.quality import regret_against_cost


def row(method: str, truth: str, x: float, relative: float) -> Standing:
    unknown = dict.fromkeys(("regret", "low", "high", "rank"), float("nan"))
    return Standing(method=method, truth=truth, x=x, relative=relative, subsets=4, seeds=1, **unknown)


def test_a_method_is_at_its_mean_and_says_where_it_was_not_judged():
    standings = [
        row("everywhere", "one", 2.0, 0.2),
        row("everywhere", "two", 4.0, 0.6),
        row("half", "one", 0.0, 1.0),
        row("failed", "one", 0.0, float("nan")),
    ]
    figure = regret_against_cost(standings)
    large = {trace.name: (trace.x[0], trace.y[0]) for trace in figure.data if trace.name}
    assert large == {"everywhere": (1 + 3.0, 0.4), "half (1/2)": (1.0, 1.0)}
    looks = {(trace.marker.color, trace.marker.symbol) for trace in figure.data if trace.name}
    assert len(looks) == len(large)
    small = [trace for trace in figure.data if not trace.name]
    assert sorted(len(trace.x) for trace in small) == [1, 2]
    assert "2 truth tables" in figure.layout.title.text
