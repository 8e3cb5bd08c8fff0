"""Comparisons: paired with the baseline on the same seeds, corrected for many, with a verdict in words; and their figure."""

import numpy as np
import pytest

from sidequest.records.comparisons import Outcome
from sidequest.records.runs import Spent
from sidequest.report.comparison import scores_with_intervals
from sidequest.runs.setup import Setup
from sidequest.runs.summarising import summarise
from sidequest.settings import ModelSettings, TrainSettings
from tests.helpers.tiny import tiny_suite


def outcomes(scores: dict[str, np.ndarray]) -> list[Outcome]:
    return [
        Outcome(
            method=method,
            seed=seed,
            score=float(score),
            report={},
            select={},
            tasks={},
            auxiliaries=["helper"] if method != "single" else [],
            selection=Spent(x=1.0),
            training=Spent(x=2.0),
        )
        for method, found in scores.items()
        for seed, score in enumerate(found)
    ]


def summary(scores: dict[str, np.ndarray]):
    setup = Setup(tiny_suite(), ModelSettings(kind="custom"), TrainSettings())
    seeds = list(range(len(next(iter(scores.values())))))
    return summarise(setup, outcomes(scores), list(scores), seeds)


def test_a_clear_gain_helps_and_identical_scores_do_not():
    base = np.array([0.60, 0.62, 0.61, 0.63, 0.59])
    found = summary({"single": base, "better": base + 0.05 + 0.001 * np.arange(5), "same": base, "worse": base - 0.1})
    verdicts = {row.method: row.verdict for row in found.rows}
    assert verdicts["better"] == "helps"
    assert verdicts["same"] == "not shown"
    assert verdicts["single"] == "baseline"
    assert "better is +0.052" in found.verdict
    better = next(row for row in found.rows if row.method == "better")
    assert better.difference == pytest.approx(0.052)
    assert better.x == pytest.approx(3.0)
    assert better.chosen == {"helper": 1.0, "value": 0.0}


def test_where_nothing_was_shown_the_verdict_says_so():
    rng = np.random.default_rng(0)
    found = summary({"single": rng.normal(0.6, 0.02, 5), "other": rng.normal(0.6, 0.02, 5)})
    assert found.verdict.startswith("not shown: no method beats single beyond the noise of 5 seeds")


@pytest.mark.statistical
def test_where_nothing_helps_a_claim_is_rare():
    """Eight methods without effect, 400 comparisons of five seeds: "helps" for any of them in at most 2.5 % of cases in
    expectation (a two-sided 5 % corrected for eight). The bound of 5 % is broken by chance with probability below 0.002."""
    rng = np.random.default_rng(1)
    claims = 0
    for _ in range(400):
        noise = rng.normal(0.6, 0.02, (9, 5))
        found = summary({"single": noise[0], **{f"m{i}": noise[i] for i in range(1, 9)}})
        claims += any(row.verdict == "helps" for row in found.rows)
    assert claims <= 20


def test_the_figure_has_a_line_per_method():
    base = np.array([0.6, 0.62, 0.61])
    figure = scores_with_intervals(summary({"single": base, "other": base + 0.1}))
    assert {trace.y[0] for trace in figure.data} == {"single", "other"}
    assert list(figure.layout.yaxis.ticktext) == ["single (3.0x)", "other (3.0x)"]
