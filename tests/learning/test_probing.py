"""Probes: short runs judged by the likelihood of the truth, and controls with shuffled targets."""

import dataclasses

import numpy as np
import pyarrow as pa
import pytest
from scipy.special import softmax

from sidequest.learning.likelihood import GUESS, Items, joined, row_likelihood
from sidequest.learning.probing import probe
from sidequest.methods.base import Plan
from sidequest.recipe import Phase
from sidequest.search.trials import LocalTrials, TrialCache, plan_key
from sidequest.settings import TrainSettings
from sidequest.tasks.examples import Examples
from sidequest.tasks.permuted import permuted
from sidequest.tasks.task import Form, Objective, Task
from tests.helpers.tiny import tiny_learner, tiny_suite

GRID = np.geomspace(0.05, 5, 400)
TRAIN = TrainSettings(batch_size=16, epochs=2)


def test_truth_is_the_likelihood_after_the_best_temperature_in_row_order():
    import torch

    learner = tiny_learner()
    learner.train("main-one", 5)
    task = learner.suite.tasks["main-one"]
    inputs = learner.family.inputs(task, task.splits["select"])
    learner.model.eval()
    with torch.inference_mode():
        logits = learner.model("main-one", inputs.collate(np.arange(len(inputs)))).double().numpy()

    def likelihood(inverse):
        chosen = softmax(logits * inverse, axis=1)[np.arange(len(logits)), task.splits["select"].target]
        return np.log((1 - GUESS) * chosen + GUESS / logits.shape[1])

    plain = [
        np.log(softmax(logits * i, axis=1)[np.arange(len(logits)), task.splits["select"].target]).mean() for i in GRID
    ]
    best = GRID[int(np.argmax(plain))]
    found = learner.truth("main-one")
    np.testing.assert_allclose(found, likelihood(best), atol=0.02)
    assert np.abs(found - likelihood(best * 3)).max() > 0.05
    assert np.isfinite(learner.truth("value")).all()


def test_rows_held_out_are_looked_at_after_those_of_select_and_not_learned_from():
    learner = tiny_learner()
    kept = learner.all_but("main-one", 20)
    train, select = learner.suite.tasks["main-one"].train, learner.suite.tasks["main-one"].splits["select"]
    assert len(kept.ids) == len(train) - 20
    assert kept == learner.fresh(3).all_but("main-one", 20)
    assert len(learner.truth("main-one", kept)) == len(select) + 20
    alone = (Phase(shares={"main-one": 1}),)
    held = probe(learner.fresh(1), alone, TRAIN, 1, hold_out=20)
    assert len(held) == len(select) + 20
    assert not np.allclose(held[: len(select)], probe(learner.fresh(1), alone, TRAIN, 1))


@pytest.mark.parametrize("scale", [0.3, 1.0, 4.0])
def test_how_sure_a_model_is_does_not_change_its_likelihood(scale):
    rng = np.random.default_rng(0)
    logits, truth = rng.normal(size=(60, 4)), rng.integers(0, 4, 60)
    logits[np.arange(60), truth] += 1
    counts = np.ones(60, dtype=np.int64)
    found = row_likelihood(Items(logits * scale, truth, counts), Objective.CLASSIFICATION)
    np.testing.assert_allclose(found, row_likelihood(Items(logits, truth, counts), Objective.CLASSIFICATION), atol=1e-3)
    wrong = row_likelihood(Items(logits * scale, (truth + 1) % 4, counts), Objective.CLASSIFICATION)
    assert wrong.mean() < found.mean() - 0.1


def test_a_row_has_the_mean_of_its_items_and_choices_that_it_lacks_do_not_count():
    words = Items(np.array([[9.0, 0.0], [0.0, 9.0], [9.0, 0.0]]), np.array([0, 1, 1]), np.array([2, 0, 1]))
    found = row_likelihood(words, Objective.TAGGING)
    assert found[0] > found[2]
    assert found[1] == 0
    two, three = (
        Items(np.array([[1.0, 0.0]]), np.array([0]), np.array([1])),
        Items(np.eye(3)[:1], np.array([0]), np.array([1])),
    )
    both = row_likelihood(joined([two, three]), Objective.CHOICE)
    assert np.isfinite(both).all()
    assert both[0] > both[1]


def test_values_are_judged_by_the_spread_of_their_errors():
    truth = np.random.default_rng(0).normal(size=50)
    counts = np.ones(50, dtype=np.int64)
    near, far = (row_likelihood(Items(truth + off, truth, counts), Objective.REGRESSION) for off in (0.1, 0.5))
    assert near.mean() - far.mean() == pytest.approx(np.log(5))


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
