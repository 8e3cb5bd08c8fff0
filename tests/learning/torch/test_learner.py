"""The training loop: exact snapshots, independence of other tasks, schedules and weights that do what they say."""

import itertools

import numpy as np
import pytest
import torch

from sidequest.errors import DataError, SettingsError
from sidequest.learning.torch.learner import TorchLearner
from sidequest.learning.torch.losses import task_loss
from sidequest.learning.torch.optimising import schedule
from sidequest.model_settings import CustomSettings
from sidequest.recipe import Subset
from sidequest.settings import TrainSettings
from tests.helpers.tiny import TinyFamily, tiny_learner, tiny_suite


def parameters(learner) -> dict[str, torch.Tensor]:
    state = learner.model.state_dict()
    return {name: tensor.clone() for name, tensor in state.items()}


def same(one: dict[str, torch.Tensor], two: dict[str, torch.Tensor]) -> bool:
    return one.keys() == two.keys() and all(torch.equal(one[name], two[name]) for name in one)


def work(learner) -> list[float]:
    losses = learner.train("main-one", 4)
    losses += learner.train("helper", 3, weight=0.5)
    losses += learner.train("helper", 2, subset=Subset(ids=tuple(range(5, 40))))
    return losses + learner.train("value", 2)


def test_train_restore_train_is_bit_identical():
    learner = tiny_learner()
    learner.begin(40)
    work(learner)
    snapshot = learner.snapshot()
    first = work(learner)
    after = parameters(learner)
    learner.restore(snapshot)
    assert not same(parameters(learner), after)
    assert work(learner) == first
    assert same(parameters(learner), after)


@pytest.mark.parametrize("optimizer", ["adamw", "sgd"])
def test_save_and_load_into_another_learner_continue_exactly(tmp_path, optimizer):
    learner = tiny_learner(optimizer=optimizer)
    learner.begin(40)
    work(learner)
    learner.save(tmp_path / "state")
    expected = work(learner)
    other = tiny_learner(optimizer=optimizer, seed=0)
    other.load(tmp_path / "state")
    assert work(other) == expected
    assert same(parameters(other), parameters(learner))


def test_training_leaves_the_global_random_state_alone():
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    work(tiny_learner())
    assert torch.equal(torch.rand(3), expected)


def test_a_result_does_not_depend_on_other_tasks():
    suite = tiny_suite()
    full, alone = tiny_learner(suite), tiny_learner(suite.subset(["helper"]))
    for learner in (full, alone):
        learner.train("main-one", 3)
        learner.train("helper", 3)
    assert full.evaluate("main-one") == alone.evaluate("main-one")
    assert torch.equal(full.model.heads["helper"].weight, alone.model.heads["helper"].weight)


def test_a_task_that_is_not_trained_keeps_its_head():
    learner = tiny_learner(weight_decay=0.5)
    before = learner.model.heads["helper"].weight.clone()
    learner.train("main-one", 5)
    assert torch.equal(learner.model.heads["helper"].weight, before)


def test_fresh_is_equal_for_equal_seeds_and_counts_on_one_meter():
    learner = tiny_learner()
    one, two, other = learner.fresh(3), learner.fresh(3), learner.fresh(4)
    assert one.train("main-one", 3) == two.train("main-one", 3) != other.train("main-one", 3)
    assert learner.meter.of("main-one").batches == 9


def test_weight_zero_changes_nothing_but_decay_and_weights_scale_the_gradient():
    plain = tiny_learner(optimizer="sgd", momentum=0.0, weight_decay=0.0, clip=None)
    start = parameters(plain)
    half = plain.fresh(0)
    plain.train("main-one", 1)
    half.train("main-one", 1, weight=0.5)
    for name, _ in plain.model.named_parameters():
        full_step, half_step = parameters(plain)[name] - start[name], parameters(half)[name] - start[name]
        assert torch.allclose(full_step, 2 * half_step, atol=1e-6)


def test_one_step_equals_a_hand_written_step():
    learner = tiny_learner(clip=0.1, weight_decay=0.1, warmup=0.0, decay="constant", learning_rate=0.01)
    twin = learner.fresh(0)
    order = twin.stream("main-one").next()
    learner.begin(10)
    learner.train("main-one", 1)
    model, task = twin.model.train(), twin.suite["main-one"]
    decayed = [p for p in model.parameters() if p.ndim > 1]
    plain = [p for p in model.parameters() if p.ndim <= 1]
    optimizer = torch.optim.AdamW(
        [{"params": decayed}, {"params": plain, "weight_decay": 0}], lr=0.01, weight_decay=0.1
    )
    batch = twin.family.inputs(task, task.train).collate(order)
    with torch.random.fork_rng():
        torch.set_rng_state(twin.randomness.states["random"])
        loss = task_loss(task, model("main-one", batch), batch["labels"])
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
    optimizer.step()
    for (_, mine), (_, theirs) in zip(learner.model.named_parameters(), model.named_parameters(), strict=True):
        assert torch.allclose(mine, theirs, atol=1e-7)


@pytest.mark.parametrize("decay", ["linear", "cosine", "constant"])
def test_schedule_warms_up_and_decays(decay):
    settings = TrainSettings(decay=decay, warmup=0.2)
    rates = [schedule(step, 50, settings) for step in range(50)]
    assert rates[:10] == pytest.approx(np.arange(1, 11) / 10)
    assert max(rates) == pytest.approx(1.0)
    if decay == "constant":
        assert rates[9:] == pytest.approx([1.0] * 41)
    else:
        assert all(a >= b for a, b in itertools.pairwise(rates[9:]))
        assert 0 < rates[-1] < 0.03


def test_regression_predictions_are_in_the_tasks_units():
    learner = tiny_learner()
    for _ in range(20):
        learner.train("value", 6)
    values = learner.predict("value", "select")
    assert 60 < values.mean() < 140
    assert learner.evaluate_all("value")["pearson"] > 0.9
    assert learner.evaluate_all("value")["neg_rmse"] > -40


def test_evaluation_does_not_move_training():
    one, two = tiny_learner(), tiny_learner()
    losses = []
    for learner, look in ((one, True), (two, False)):
        got = learner.train("main-one", 2)
        if look:
            learner.evaluate("main-one")
            learner.evaluate_all("value", "report")
        losses.append(got + learner.train("main-one", 2))
    assert losses[0] == losses[1]


def test_meter_counts_batches_examples_and_evaluations():
    learner = tiny_learner()
    learner.train("main-one", 5)  # 70 rows at 16: 16, 16, 16, 16 and 6 in some order
    learner.evaluate("main-one")
    count = learner.meter.of("main-one")
    assert (count.batches, count.examples, count.evaluations, count.evaluated_examples) == (5, 70, 1, 40)
    assert count.seconds > 0


def test_unknown_names_and_rows_are_refused():
    learner = tiny_learner()
    with pytest.raises(SettingsError, match="Did you mean 'helper'"):
        learner.train("helpr", 1)
    with pytest.raises(DataError, match="lacks"):
        learner.train("helper", 1, subset=Subset(ids=(1000,)))
    with pytest.raises(DataError, match="no 'extra' split"):
        learner.evaluate("helper", "extra")


def test_bad_optimizer_settings_never_reach_the_loop():
    suite = tiny_suite()
    family = TinyFamily(suite, CustomSettings())
    learner = TorchLearner(suite, family, TrainSettings(learning_rate=0.5))
    assert learner.optimizer.param_groups[0]["lr"] == 0.5


def test_layers_further_from_the_heads_move_less():
    """A step of plain SGD is the rate times the gradient: the ratio of two learners' steps is the factor."""
    settings = {"optimizer": "sgd", "momentum": 0.0, "weight_decay": 0.0, "clip": None, "learning_rate": 0.1}
    depths = {"trunk.0.weight": 2, "trunk.0.bias": 2}
    moved = []
    for layer_decay in (1.0, 0.5):
        learner = tiny_learner(layer_decay=layer_decay, **settings)
        learner.model.layers_below_the_top = lambda: depths
        learner.begin(10)
        before = parameters(learner)
        learner.train("main-one", 1)
        moved.append({name: p.detach() - before[name] for name, p in learner.model.named_parameters()})
    assert depths.keys() <= moved[0].keys()
    for name, step in moved[0].items():
        torch.testing.assert_close(moved[1][name], step * 0.5 ** depths.get(name, 0), rtol=1e-3, atol=1e-7)
