"""The cosine of two tasks' gradients, against gradients taken by hand."""

from __future__ import annotations

import pytest
import torch

from sidequest.learning.protocol import GradientAlignment
from sidequest.learning.torch.losses import task_loss
from tests.helpers.tiny import tiny_learner


def shared_gradient(learner, task):
    """Of the task's next batch, over the parameters that have one; the stream moves on."""
    batch = learner.inputs(task, "train").collate(learner.stream(task).next())
    learner.model.zero_grad(set_to_none=True)
    with learner.randomness.lent():
        learner.model.train()
        task_loss(learner.suite[task], learner.model(task, batch), batch["labels"]).backward()
    return {name: p.grad.clone() for name, p in learner.model.named_parameters() if p.grad is not None}


def test_the_cosine_is_that_of_the_gradients_of_the_shared_parameters():
    learner, copy = tiny_learner(), tiny_learner()
    found = learner[GradientAlignment].train_aligned("helper", "main-one")
    first, second = shared_gradient(copy, "helper"), shared_gradient(copy, "main-one")
    both = sorted(first.keys() & second.keys())
    assert both
    assert first.keys() != second.keys()  # each has a head of its own, which must not count
    one, two = (torch.cat([each[name].flatten() for name in both]).double() for each in (first, second))
    assert found == pytest.approx(float(one @ two / (one.norm() * two.norm())), abs=1e-6)


def test_both_tasks_take_a_step_and_their_next_batches():
    learner = tiny_learner()
    before = {name: p.clone() for name, p in learner.model.named_parameters()}
    learner[GradientAlignment].train_aligned("helper", "main-one")
    moved = {name for name, p in learner.model.named_parameters() if not torch.equal(p, before[name])}
    other = tiny_learner()
    other.train("helper", 1)
    alone = {name for name, p in other.model.named_parameters() if not torch.equal(p, before[name])}
    assert alone < moved
    assert learner.meter.tasks["helper"].batches == learner.meter.tasks["main-one"].batches == 1
    assert "value" not in learner.meter.tasks


def test_a_snapshot_brings_the_same_cosines_again():
    learner = tiny_learner()
    power = learner[GradientAlignment]
    power.train_aligned("helper", "main-one")
    kept = learner.snapshot()
    first = [power.train_aligned("value", "main-one") for _ in range(3)]
    learner.restore(kept)
    assert [power.train_aligned("value", "main-one") for _ in range(3)] == first
    assert len(set(first)) == 3
