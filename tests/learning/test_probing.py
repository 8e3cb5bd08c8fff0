"""Probes: short runs judged by the probability of the truth, and controls with shuffled targets."""

import dataclasses

import numpy as np
import pyarrow as pa
import pytest
from scipy.special import softmax

from sidequest.learning.probing import probe
from sidequest.methods.base import Plan
from sidequest.recipe import Phase
from sidequest.search.trials import LocalTrials, TrialCache, plan_key
from sidequest.settings import TrainSettings
from sidequest.tasks.examples import Examples
from sidequest.tasks.permuted import permuted
from sidequest.tasks.task import Form, Objective, Task
from tests.helpers.tiny import tiny_learner, tiny_suite

TRAIN = TrainSettings(batch_size=16, epochs=2)


def test_the_probability_of_the_truth_is_that_of_the_softmax_in_row_order():
    import torch

    learner = tiny_learner()
    learner.train("main-one", 5)
    task = learner.suite.tasks["main-one"]
    inputs = learner.family.inputs(task, task.splits["select"])
    learner.model.eval()
    with torch.inference_mode():
        logits = learner.model("main-one", inputs.collate(np.arange(len(inputs)))).double().numpy()
    expected = softmax(logits, axis=1)[np.arange(len(logits)), task.splits["select"].target]
    np.testing.assert_allclose(learner.truth("main-one"), expected, rtol=1e-6)
    assert learner.truth("value").max() <= 1
    assert learner.truth("value").min() >= 0


def test_a_probe_is_a_function_of_its_seed_and_sees_the_primary_in_the_same_order():
    learner = tiny_learner()
    alone, beside = (Phase(shares={"main-one": 1}),), (Phase(shares={"main-one": 1, "helper": 1}),)
    first = probe(learner.fresh(1), alone, TRAIN, 1)
    assert np.array_equal(first, probe(learner.fresh(1), alone, TRAIN, 1))
    assert not np.array_equal(first, probe(learner.fresh(2), alone, TRAIN, 2))
    assert not np.array_equal(first, probe(learner.fresh(1), beside, TRAIN, 1))


def test_a_trial_measured_by_truth_is_kept_with_its_rows_under_a_key_of_its_own(tmp_path):
    learner = tiny_learner()
    trials = LocalTrials(learner, TRAIN, facts=lambda tasks: "facts", cache=TrialCache(tmp_path))
    plan = Plan(phases=(Phase(shares={"main-one": 1, "helper": 1}),), measure="truth", permuted={"helper": 3})
    first, again = trials.run([plan])[0], trials.run([plan])[0]
    assert again.reused
    assert np.array_equal(first.truth, again.truth)
    assert first.score == pytest.approx(first.truth.mean())
    variants = [plan, *(plan.model_copy(update=change) for change in ({"measure": "metric"}, {"permuted": {}}))]
    assert len({plan_key(one, "facts") for one in variants}) == 3
    plain = trials.run([plan.model_copy(update={"permuted": {}})])[0]
    assert not np.array_equal(plain.truth, first.truth)


def test_shuffled_targets_leave_the_learner_and_the_other_tasks_as_they_are():
    learner = tiny_learner()
    before = {name: task.fingerprints["train"] for name, task in learner.suite.tasks.items()}
    shuffled = learner.with_permuted({"helper": 0})
    after = {name: task.fingerprints["train"] for name, task in shuffled.suite.tasks.items()}
    assert after["helper"] != before["helper"]
    assert {name: value for name, value in after.items() if name != "helper"} == {
        name: value for name, value in before.items() if name != "helper"
    }
    assert learner.suite.tasks["helper"].fingerprints["train"] == before["helper"]
    target, own = shuffled.suite.tasks["helper"].train.target, learner.suite.tasks["helper"].train.target
    assert sorted(target) == sorted(own)
    assert shuffled.train("helper", 3) != learner.fresh(0).train("helper", 3)
    assert shuffled.fresh(0).train("value", 3) == learner.fresh(0).train("value", 3)


def test_every_objective_keeps_valid_targets_when_shuffled():
    tags = pa.array([[0, 1, 2], [1], [], [2, 2]], type=pa.list_(pa.int64()))
    words = pa.array([["a", "b", "c"], ["d"], [], ["e", "f"]])
    tagging = _task(Objective.TAGGING, Form.TOKENS, {"tokens": words}, tags)
    shuffled = permuted(tagging, 1).train.target
    assert [len(row) for row in shuffled.to_pylist()] == [3, 1, 0, 2]
    assert sorted(shuffled.flatten().to_pylist()) == [0, 1, 1, 2, 2, 2]
    assert permuted(tagging, 1).train.target.equals(shuffled)
    choices = pa.array([["x", "y"], ["x", "y", "z"], ["x", "y"], ["x", "y", "z"]] * 20)
    target = np.tile([0, 2, 1, 1], 20)
    choice = _task(Objective.CHOICE, Form.CHOICES, {"text": pa.array(["t"] * 80), "choices": choices}, target)
    counts = np.tile([2, 3, 2, 3], 20)
    assert (permuted(choice, 0).train.target < counts).all()
    assert not np.array_equal(permuted(choice, 0).train.target, target)
    assert not np.array_equal(permuted(choice, 0).train.target, permuted(choice, 1).train.target)


def _task(objective, form, columns, target):
    rows = Examples(columns, target, np.arange(len(target)))
    return dataclasses.replace(
        tiny_suite().tasks["helper"], name="x", objective=objective, form=form, splits={"train": rows}
    )


def test_a_task_without_targets_cannot_be_shuffled():
    bare = Task(
        "x", Objective.REGRESSION, Form.TEXT, {"train": Examples({"text": pa.array(["a"])}, None, np.arange(1))}
    )
    with pytest.raises(ValueError, match="no targets to shuffle"):
        permuted(bare, 0)
