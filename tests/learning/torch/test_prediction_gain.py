"""Measuring a step changes nothing about it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from sidequest.learning.protocol import PredictionGain
from sidequest.learning.torch.losses import task_loss
from tests.helpers.tiny import tiny_learner


def same(first, second) -> bool:
    one, two = first.snapshot(), second.snapshot()
    return one.tensors.keys() == two.tensors.keys() and all(
        torch.equal(tensor, two.tensors[name]) for name, tensor in one.tensors.items()
    )


def test_torch_learner_has_the_power():
    assert isinstance(tiny_learner()[PredictionGain], PredictionGain)


@pytest.mark.parametrize("target", [None, "main-one", "value"])
def test_a_measured_step_is_a_plain_step(target):
    """Weights, batch-norm statistics, optimiser, dropout's random state and the order of rows, to the bit."""
    plain, measured = tiny_learner(), tiny_learner()
    for task in ["main-one", "helper", "value", "main-one", "main-one", "helper"] * 3:
        (loss,) = plain.train(task, 1)
        before, _ = measured[PredictionGain].train_with_gain(task, target=target)
        if target is None:
            assert before == loss
    assert same(plain, measured)


def test_after_is_the_loss_of_the_same_batch_with_the_same_dropout():
    learner, copy = tiny_learner(), tiny_learner()
    spec = learner.suite["main-one"]
    positions = copy.stream("main-one").next()
    batch = copy.inputs(spec.name, "train").collate(positions)
    masks = learner.randomness.states["random"].clone()
    _, after = learner[PredictionGain].train_with_gain("main-one")
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.set_rng_state(masks)
        learner.model.train()
        expected = task_loss(spec, learner.model("main-one", batch), batch["labels"]).item()
    assert after == pytest.approx(expected, abs=1e-7)


def test_gains_on_the_same_batch_are_mostly_positive():
    learner = tiny_learner()
    pairs = np.array([learner[PredictionGain].train_with_gain("main-one") for _ in range(40)])
    assert np.mean(pairs[:, 0] > pairs[:, 1]) > 0.8


def test_a_target_is_measured_on_rows_in_an_order_of_their_own():
    """Two learners that train on different tasks see the same probe batches: their first losses are equal."""
    first, second = tiny_learner(), tiny_learner()
    one, _ = first[PredictionGain].train_with_gain("helper", target="main-one")
    two, _ = second[PredictionGain].train_with_gain("value", target="main-one")
    assert one == two
    next_one, _ = first[PredictionGain].train_with_gain("helper", target="main-one")
    assert next_one != one


def test_probe_positions_are_restored():
    learner = tiny_learner()
    for _ in range(3):
        learner[PredictionGain].train_with_gain("helper", target="main-one")
    kept = learner.snapshot()
    onwards = [learner[PredictionGain].train_with_gain("value", target="main-one") for _ in range(8)]
    learner.restore(kept)
    assert [learner[PredictionGain].train_with_gain("value", target="main-one") for _ in range(8)] == onwards
    other = tiny_learner()
    other.restore(kept)
    assert [other[PredictionGain].train_with_gain("value", target="main-one") for _ in range(8)] == onwards


def test_the_extra_passes_are_metered():
    learner = tiny_learner()
    learner[PredictionGain].train_with_gain("helper")
    learner[PredictionGain].train_with_gain("helper", target="main-one")
    helper, primary = learner.meter.of("helper"), learner.meter.of("main-one")
    assert (helper.batches, helper.examples, helper.evaluated_examples) == (2, 32, 16)
    assert (primary.batches, primary.examples, primary.evaluated_examples) == (0, 0, 32)
