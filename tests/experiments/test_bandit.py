"""The bandit experiment at two seeds: the order of the paper, and files that others can read."""

from __future__ import annotations

import numpy as np
import pytest

from experiments import Options, bandit, run
from sidequest.files import read_json


@pytest.mark.slow
def test_shows_the_papers_order(tmp_path, capsys):
    options = Options(tmp_path, small=True, seeds=2, results=tmp_path / "results")
    results = run("bandit", options)
    scores = results["experiment"]["final"]
    final = {name: np.median(each) for name, each in scores.items()}
    assert final["oracle"] > final["counterfactual"] > max(final["random"], final["exp3s"], final["random search"])
    assert final["size"] < final["random"]
    assert {f"counterfactual, λ = {weight:g}" for weight in bandit.PAPER_WEIGHTS} <= {*final}
    assert (np.subtract(scores["counterfactual"], scores["random"]) > 0).all()
    assert read_json(tmp_path / "results.json") == results
    assert (tmp_path / "bandit.html").exists()
    assert "| counterfactual " in capsys.readouterr().out


def test_environment_is_chosen_by_its_oracle_alone():
    number = bandit.paper_environment()
    gaps = [bandit.oracle_gap(bandit.environment_of(each)) for each in range(number + 1)]
    assert gaps[-1] < bandit.LARGEST_ORACLE_GAP <= min(gaps[:-1])


def test_arms_are_drawn_from_their_policies():
    policies = [np.array([1.0, 0.0, 0.0]), np.array([0.0, 0.25, 0.75])]
    arms = bandit.draw(policies, 4000, np.random.default_rng(0))
    assert (arms[:, 0] == 0).all()
    assert np.bincount(arms[:, 1], minlength=3) / 4000 == pytest.approx([0, 0.25, 0.75], abs=0.035)  # five deviations
