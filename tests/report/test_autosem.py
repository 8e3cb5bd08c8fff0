"""Figures are drawn from a recipe file alone, and show what the recipe says."""

import numpy as np
import plotly.graph_objects as go
import pytest

from sidequest.numerics.gp_hedge import HedgeSearch
from sidequest.numerics.mixture_search import Observation
from sidequest.numerics.mixtures import MixtureSpace
from sidequest.recipe import Recipe
from sidequest.records.evidence import BanditStage, MixtureStage
from sidequest.report import autosem as figures
from sidequest.simulation.learner import helpful
from tests.methods.autosem.test_autosem import run


@pytest.fixture(scope="module")
def recipe(tmp_path_factory):
    path = tmp_path_factory.mktemp("recipe") / "recipe.json"
    run("autosem", {"rounds": 40, "trials": 9, "top": 3}, simulation=helpful(2, 3)).write(path)
    return Recipe.read(path)


def test_densities_integrate_to_one_and_bars_are_the_intervals(recipe):
    stage1 = recipe.evidence["stage1"]
    figure = figures.utility_densities(BanditStage.of(stage1))
    curves = [trace for trace in figure.data if trace.mode == "lines"]
    assert [trace.name for trace in curves] == stage1["arms"]
    for trace in curves:
        assert np.trapezoid(trace.y, trace.x) == pytest.approx(1, abs=0.01)
    bars = [trace for trace in figure.data if trace.mode == "lines+markers"]
    assert [list(bar.x) for bar in bars] == [
        [p["low"], p["mean"], p["high"]] for p in (stage1["posterior"][name] for name in stage1["arms"])
    ]


def test_the_course_ends_at_the_posterior(recipe):
    stage1 = recipe.evidence["stage1"]
    for trace in figures.utility_over_rounds(BanditStage.of(stage1)).data:
        decayed = stage1["posterior"][trace.name]["decayed"]
        assert trace.y[-1] == pytest.approx(decayed["alpha"] / (decayed["alpha"] + decayed["beta"]), rel=1e-12)
        assert len(trace.y) == 41
    for trace in figures.pulls_over_rounds(BanditStage.of(stage1)).data:
        assert trace.y[-1] == stage1["posterior"][trace.name]["pulls"]


def test_the_process_of_the_figure_is_that_of_the_search(recipe):
    stage2 = recipe.evidence["stage2"]
    evidence = MixtureStage.of(stage2)
    process, space = figures.process_of(evidence, evidence.process)
    history = tuple(Observation(tuple(trial["mixture"]), trial["score"]) for trial in stage2["trials"])
    fitted = HedgeSearch(MixtureSpace(3, 20, 5)).process(history)
    for ours, theirs in zip(process.predict(space.coordinates), fitted.predict(space.coordinates), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)
    expected = [trial["expected"] for trial in stage2["trials"]]
    np.testing.assert_allclose(process.predict(process.x)[0], expected, atol=1e-6)


def test_slices_pass_through_the_chosen_mixture(recipe):
    stage2 = recipe.evidence["stage2"]
    evidence = MixtureStage.of(stage2)
    figure = figures.mixture_slices(evidence, evidence.process)
    lines = [trace for trace in figure.data if trace.mode == "lines" and trace.name]
    assert [line.name for line in lines] == stage2["tasks"]
    process, _ = figures.process_of(evidence, evidence.process)
    best = process.x[stage2["best"]]
    for index, line in enumerate(lines):
        assert np.interp(best[index], line.x, line.y) == pytest.approx(
            stage2["trials"][stage2["best"]]["expected"], abs=2e-3
        )
    assert "1/2" in figure.layout.xaxis.ticktext


def test_the_surface_shows_every_trial(recipe):
    stage2 = MixtureStage.of(recipe.evidence["stage2"])
    figure = figures.mixture_surface(stage2, stage2.process)
    assert isinstance(figure.data[0], go.Contour)
    assert list(figure.data[1].text) == [str(number) for number in range(1, 10)]


def test_best_so_far():
    figure = figures.best_so_far({"a": [[1, 2, 2], [0, 4, 5]], "b": [[0, 0, 1]]})
    median = {trace.name: list(trace.y) for trace in figure.data if trace.name}
    assert median == {"a": [0.5, 3, 3.5], "b": [0, 0, 1]}
    trials = [{"mixture": [1, 0], "score": score} for score in (0.2, 0.1, 0.4)]
    stage2 = {"tasks": ["a"], "settings": {"max_primary": 20, "max_auxiliary": 5}, "trials": trials}
    assert figures.running_best(MixtureStage.of(stage2)) == [0.2, 0.2, 0.4]


def test_best_so_far_keeps_the_best_of_a_search_that_ended_early():
    figure = figures.best_so_far({"a": [[1, 3], [1, 1, 1]]})
    assert list(figure.data[-1].y) == [1, 2, 2]
