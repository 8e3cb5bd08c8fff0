"""A model over frozen states starts at the level of a linear probe, and the shared part starts as no change."""

import dataclasses

import numpy as np
import pytest
import torch

from sidequest.learning.torch.learner import TorchLearner
from sidequest.learning.torch.readout import probe_predictions
from sidequest.models.base import head_key
from sidequest.models.direct_path import DirectPath, text_features
from sidequest.numerics.linear_models import ridge
from sidequest.settings import TrainSettings
from tests.models.test_readout import family_of, task_of


def test_a_direct_path_gives_its_solutions_predictions():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(50, 6)) * 3 + 1, rng.normal(size=50)
    path, solution = DirectPath(6, 1), ridge(x, y)
    assert not path(torch.from_numpy(x).float()).any()
    path.start(solution)
    assert np.allclose(path(torch.from_numpy(x).float()).detach().numpy(), solution(x), atol=1e-5)


def test_a_pair_has_a_cosine_for_each_layer():
    u, v = torch.randn(3, 2, 5), torch.randn(3, 2, 5)
    features = text_features(u, v)
    assert features.shape == (3, 2 * (4 * 5 + 1))
    assert torch.allclose(features[:, -1], torch.cosine_similarity(u[:, 1], v[:, 1], dim=-1))
    assert text_features(u, None).shape == (3, 10)


@pytest.mark.parametrize("kind", ["pooled", "bilstm"])
@pytest.mark.parametrize("name", ["one", "pair", "choice", "number", "marks"])
def test_before_any_step_a_model_predicts_as_the_probe_does(name, kind, encoders):
    task = task_of(name)
    family = family_of(encoders(), task, kind=kind)
    learner = TorchLearner(family.suite, family, TrainSettings(learning_rate=0.01))
    probe = probe_predictions(family, task, "select")
    assert np.allclose(learner.predict(name, "select"), probe, atol=1e-4)
    before = learner.truth(name)
    learner.train(name, 5)
    assert not np.allclose(learner.truth(name), before, atol=1e-4)


def test_a_start_depends_on_the_seed_and_the_tasks_own_train_rows_alone(encoders):
    task, other = task_of("one"), task_of("pair")
    alone, among = family_of(encoders(), task).build(3), family_of(encoders(), task, other).build(3)
    own = list(alone.state_dict())
    assert all(torch.equal(alone.state_dict()[name], among.state_dict()[name]) for name in own)
    seeded = family_of(encoders(), task).build(4)
    assert not torch.equal(seeded.trunk[0].weight, alone.trunk[0].weight)
    key = head_key("one")
    assert torch.equal(seeded.direct[key].linear.weight, alone.direct[key].linear.weight)
    fewer = dataclasses.replace(task, splits={**task.splits, "train": task.train.take(np.arange(30))})
    changed = family_of(encoders(), fewer).build(3).direct[key].linear.weight
    assert not torch.equal(changed, alone.direct[key].linear.weight)


def test_another_task_acts_through_the_trunk_and_leaves_this_tasks_paths_alone(encoders):
    task, other = task_of("one"), task_of("pair")
    family = family_of(encoders(), task, other)
    learner = TorchLearner(family.suite, family, TrainSettings(learning_rate=0.01))
    before = {name: value.clone() for name, value in learner.model.state_dict().items()}
    learner.train("pair", 5)
    after = learner.model.state_dict()
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert changed
    assert not any(head_key("one") in name for name in changed)
    assert any(name.startswith("trunk.") for name in changed)


def test_the_read_out_learns_more_slowly_than_the_trunk(encoders):
    task = task_of("one")
    family = family_of(encoders(), task)
    learner = TorchLearner(family.suite, family, TrainSettings(learning_rate=0.01))
    factors = {group["factor"] for group in learner.optimizer.param_groups}
    assert factors == {1.0, 0.1}
