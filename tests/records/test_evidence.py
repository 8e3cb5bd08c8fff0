"""What methods leave is of the kinds that the page reads; other content is refused with one message that names the place."""

import inspect

import pytest

from sidequest.errors import SettingsError
from sidequest.methods import get_method
from sidequest.recipe import Recipe
from sidequest.records import evidence as kinds
from sidequest.records.evidence import MethodEvidence
from sidequest.testing.check_method import run, simulated_learner
from tests.helpers.gains import gain_simulated
from tests.helpers.known_heads import go, only_same
from tests.methods.alphavil.test_contract import delta_learner
from tests.methods.autosem.test_autosem import run as run_autosem
from tests.methods.similarity.test_contract import likeness_learner

KINDS = [
    cls
    for _, cls in inspect.getmembers(kinds, inspect.isclass)
    if issubclass(cls, MethodEvidence) and cls is not MethodEvidence
]


def found(evidence):
    return {cls.__name__ for cls in KINDS if cls.find(evidence) is not None}


def as_read(recipe):
    """As read from a file: nothing but the recipe's own bytes."""
    return Recipe.model_validate_json(recipe.to_json()).evidence


def test_autosem_leaves_its_two_stages():
    evidence = as_read(run_autosem("autosem", {"rounds": 10, "trials": 4, "top": 2, "initial": 3}))
    stage1 = kinds.BanditStage.of(evidence["stage1"])
    assert len(stage1.pulled) == len(stage1.rewards) == 10
    assert set(stage1.posterior) == set(stage1.arms)
    stage2 = kinds.MixtureStage.of(evidence["stage2"])
    assert [trial.score for trial in stage2.trials] == [trial["score"] for trial in evidence["stage2"]["trials"]]
    assert stage2.process is not None
    assert len(stage2.process.lengths) == len(stage2.tasks)
    assert found(evidence["stage2"]) == {"MixtureStage"}


def test_a_grid_has_no_process():
    evidence = as_read(run_autosem("autosem-grid", {"rounds": 10, "top": 2}))
    assert kinds.MixtureStage.of(evidence["stage2"]).process is None


@pytest.mark.parametrize("name", ["GradTSThres", "GradTSTrial", "GradTSFg"])
def test_gradts_leaves_heads_and_similarities(name):
    from sidequest.methods.gradts import gradts

    method = getattr(gradts, name)()
    state, _ = go(method, only_same)
    evidence = as_read(method.recipe(state))
    expected = {"HeadImportances", "HeadSimilarity", "KeptRows"}
    expected |= {"GreedyTrials"} if name != "GradTSThres" else set()
    expected |= {"RowTaus"} if name == "GradTSFg" else set()
    assert found(evidence) == expected


SMALL = {"rows": 100, "epochs": 1, "finetune_epochs": 1}
OTHERS = {
    "alphavil": ({"epochs": 4, "tuning_rows": 30}, delta_learner, {"WeightCourse"}),
    "diw": ({"epochs": 3}, None, {"WeightCourse"}),
    "exp3s": ({"steps": 200}, gain_simulated, {"PolicyOverTime", "MeanPolicy"}),
    "counterfactual": (
        {"steps": 200, "entropy_weights": [0.2, 0.5], "cma_iterations": 3},
        gain_simulated,
        {"TriedPolicies", "LearnedPolicy"},
    ),
    "similarity": (
        {**SMALL, "ladder": True, "first": 400, "chunk": 700},
        likeness_learner,
        {"RowRankings", "RowFeatures", "RowLadder", "RowsTaken"},
    ),
    "random-data": ({**SMALL, "count": 300}, likeness_learner, {"RowsTaken"}),
}


@pytest.mark.parametrize("name", OTHERS)
def test_the_other_papers_leave_their_kinds(name):
    settings, learner, expected = OTHERS[name]
    recipe = run(get_method(name), settings, learner or simulated_learner)
    assert found(as_read(recipe)) == expected


def test_auto_leaves_rounds():
    rounds = as_read(run(get_method("auto"), {}, simulated_learner))["rounds"]
    assert rounds
    for one in rounds:
        shown = kinds.AutoRound.of(one)
        assert {arm.arm for arm in shown.arms} == {arm["arm"] for arm in one["arms"]}


def test_content_of_another_shape_is_named():
    broken = {"tau_between": {"names": ["a"], "values": [["much"]]}}
    with pytest.raises(SettingsError, match=r"^evidence: tau_between\.values\.0\.0: input should be a valid number"):
        kinds.HeadSimilarity.find(broken)
    assert kinds.HeadSimilarity.find({"tau": {"a": 0.5}}) is None
    assert kinds.HeadImportances.find({"heads": {}}) is None
