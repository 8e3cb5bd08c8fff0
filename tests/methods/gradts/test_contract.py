"""GradTS keeps the contract of methods, on a simulated learner with heads; and finds the helpful candidates there."""

import functools
import re

import numpy as np
import pytest

from sidequest.learning.protocol import HeadImportance, Warmup
from sidequest.methods import get_method
from sidequest.simulation.heads import CHUNK, SimulatedHeads
from sidequest.simulation.learner import helpful
from sidequest.testing import check_learner, check_method
from sidequest.testing.check_method import run, simulated_learner
from tests.helpers import ROOT

SETTINGS = {
    "gradts-thres": {"warmup_epochs": 1, "threshold": 0.3},
    "gradts-trial": {"warmup_epochs": 1},
    "gradts-fg": {"warmup_epochs": 1, "threshold": 0.2},
}


def learner_with_heads(candidates, seed):
    return SimulatedHeads(simulated_learner(candidates, seed).simulation, seed=seed)


@pytest.mark.parametrize("name", SETTINGS)
def test_the_contract(name):
    fresh = name == "gradts-trial"  # the others start in the same way
    check_method(name, settings=SETTINGS[name], make_learner=learner_with_heads, fresh_process=fresh)


def test_the_simulated_heads_are_a_learner_with_the_power():
    check_learner(functools.partial(learner_with_heads, ("close", "far", "harmful", "near")))
    assert isinstance(learner_with_heads((), 0), HeadImportance)


def test_simulated_rows_add_up_to_their_task():
    learner = learner_with_heads(("close",), 0)
    total = learner.head_importance("close", Warmup(epochs=2))
    ids, rows = zip(*learner.instance_importance("close", Warmup(epochs=2)), strict=True)
    assert max(map(len, ids)) == CHUNK
    assert np.concatenate(ids).tolist() == list(range(640))
    np.testing.assert_allclose(np.concatenate(rows).sum(0, dtype=np.float64), total)
    assert learner.meter.tasks["close"].examples == 3 * 640


def test_it_ranks_by_transfer_and_chooses_what_helps():
    recipe = run(get_method("gradts-trial"), SETTINGS["gradts-trial"], learner_with_heads)
    assert recipe.evidence["ranking"][:2] == ["close", "near"]
    assert set(recipe.auxiliaries) == {"close", "near"}
    assert recipe.cost.trials == 4  # alone, + close, + near, and the one that fell


def test_where_nothing_helps_it_chooses_nobody():
    simulation = helpful(0, 3, noise=0.0)
    recipe = run(get_method("gradts-trial"), {}, lambda candidates, seed: SimulatedHeads(simulation, seed=seed))
    assert recipe.auxiliaries == ()


def test_rows_are_a_part_of_what_the_trials_chose():
    trial = run(get_method("gradts-trial"), SETTINGS["gradts-trial"], learner_with_heads)
    fg = run(get_method("gradts-fg"), SETTINGS["gradts-fg"], learner_with_heads)
    assert set(fg.auxiliaries) <= set(trial.auxiliaries)
    assert fg.cost == trial.cost  # rows come with the pass that ranks the tasks
    shares = {name: entry["share"] for name, entry in fg.evidence["instances"].items()}
    assert 0 < shares["near"] < shares["close"] < 1


def test_the_example_in_the_docs_runs(capsys):
    page = (ROOT / "docs" / "methods" / "gradts.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    exec(compile(example, "gradts.md", "exec"), {})
    assert capsys.readouterr().out.startswith("('arm-1', 'arm-2')\n")
