"""Trials on a Ray cluster give what local trials give; where Ray is missing, one message says how to get it."""

import functools
import importlib.util

import pytest

from sidequest.errors import SettingsError
from sidequest.methods.base import Plan
from sidequest.recipe import Phase
from sidequest.runs.selecting import local_trials
from sidequest.runs.setup import Setup
from sidequest.search.ray_trials import RayTrials
from sidequest.tasks.loading import load_suite

HAS_RAY = importlib.util.find_spec("ray") is not None


@pytest.fixture
def make_runner(tmp_path, monkeypatch):
    monkeypatch.setenv("SIDEQUEST_CACHE", str(tmp_path))
    setup = Setup.of(load_suite("digits"), {}, {"epochs": 1, "max_batches": 2})
    return functools.partial(local_trials, setup)


@pytest.mark.skipif(HAS_RAY, reason="ray is installed")
def test_a_missing_ray_is_said(make_runner):
    with pytest.raises(SettingsError, match=r"sidequest\[ray\]"):
        RayTrials(make_runner, 2, "local")


@pytest.mark.skipif(not HAS_RAY, reason="ray is not installed (extra `ray`)")
def test_results_equal_local_trials(make_runner, tmp_path, monkeypatch):
    plans = [Plan(phases=(Phase(shares={"top-left": 1}),), seed=seed) for seed in (3, 1, 2)]
    with RayTrials(make_runner, 2, "local") as trials:
        found = [result.score for result in trials.run(plans)]
    monkeypatch.setenv("SIDEQUEST_CACHE", str(tmp_path / "another"))  # so that nothing is found instead of run
    assert found == [result.score for result in make_runner().run(plans)]
