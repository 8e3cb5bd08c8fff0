"""Deltas: the gradient with respect to α against two references, exact put-back and write-back, buffers, own optimisers."""

import numpy as np
import pytest
import torch
from torch.func import functional_call

from sidequest.errors import SettingsError
from sidequest.learning.protocol import Deltas, Learner
from sidequest.learning.torch.deltas import trained
from sidequest.learning.torch.losses import task_loss
from tests.helpers.double_models import double_learner
from tests.helpers.tiny import tiny_learner, tiny_suite

MODELS = [(kind, norm) for kind in ("convnet", "transformer") for norm in (False, True)]


def state_of(learner) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in learner.model.state_dict().items()}


def same(one: dict[str, torch.Tensor], two: dict[str, torch.Tensor]) -> bool:
    return one.keys() == two.keys() and all(torch.equal(one[name], two[name]) for name in one)


def collect_all(learner, n_batches: int = 6, **options) -> list:
    learner[Deltas].begin_deltas(dict.fromkeys(learner.tasks, 10 * n_batches))
    share = 1 / len(learner.tasks)
    return [learner[Deltas].collect_delta(task, n_batches, weight=share, **options) for task in learner.tasks]


def test_the_torch_learner_has_the_power():
    assert isinstance(tiny_learner()[Deltas], Deltas)
    assert isinstance(tiny_learner(), Learner)


@pytest.mark.parametrize(("kind", "batch_norm"), MODELS)
def test_gradient_equals_finite_differences(kind, batch_norm):
    learner = double_learner(kind, batch_norm)
    deltas, alphas = collect_all(learner), np.array([1.2, 0.7, -0.3])
    _, gradient = learner[Deltas].merged_loss("primary", deltas, alphas)
    step, expected = 1e-5, []
    for direction in np.eye(3):
        above, _ = learner[Deltas].merged_loss("primary", deltas, alphas + step * direction)
        below, _ = learner[Deltas].merged_loss("primary", deltas, alphas - step * direction)
        expected.append((above - below) / (2 * step))
    assert np.abs(gradient).min() > 1e-4  # the comparison is about something
    np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(("kind", "batch_norm"), MODELS)
def test_loss_and_gradient_equal_autograd_through_the_merged_parameters(kind, batch_norm):
    learner = double_learner(kind, batch_norm)
    deltas, values = collect_all(learner), np.array([1.2, 0.7, -0.3])
    loss, gradient = learner[Deltas].merged_loss("primary", deltas, values)

    model, task = learner.model.eval(), learner.suite["primary"]
    start = {name: p.detach().clone() for name, p in trained(model).items()}
    alphas = torch.tensor(values, requires_grad=True)
    point = {
        name: theta + sum(a * (d.end[name] - theta) for a, d in zip(alphas, deltas, strict=True) if name in d.end)
        for name, theta in start.items()
    }
    buffers = {
        name: sum(d.buffers[name] for d in deltas) / 3 if buffer.is_floating_point() else buffer
        for name, buffer in model.named_buffers()
    }
    batch = learner.family.inputs(task, task.splits["select"]).collate(np.arange(37))
    reference = task_loss(task, functional_call(model, {**point, **buffers}, ("primary", batch)), batch["labels"])
    (expected,) = torch.autograd.grad(reference, alphas)
    assert loss == pytest.approx(reference.item(), rel=1e-12)
    np.testing.assert_allclose(gradient, expected.numpy(), rtol=1e-6, atol=1e-12)


def test_rows_choose_the_batch():
    learner = double_learner("convnet", False)
    deltas, rows = collect_all(learner), np.array([30, 3, 17])
    loss, gradient = learner[Deltas].merged_loss("primary", deltas, np.ones(3), rows)
    singles = [learner[Deltas].merged_loss("primary", deltas, np.ones(3), np.array([row])) for row in rows]
    assert loss == pytest.approx(np.mean([each for each, _ in singles]))
    np.testing.assert_allclose(gradient, np.mean([each for _, each in singles], axis=0))


@pytest.mark.parametrize(("kind", "batch_norm"), MODELS)
def test_collecting_and_looking_leave_parameters_and_buffers_alone(kind, batch_norm):
    learner = double_learner(kind, batch_norm)
    before = state_of(learner)
    deltas = collect_all(learner)
    learner[Deltas].merged_loss("primary", deltas, np.array([3.0, -2.0, 0.5]))
    assert same(state_of(learner), before)
    assert all(p.grad is None for p in learner.model.parameters())
    assert all(delta.end for delta in deltas)


def test_alpha_one_for_one_task_and_zero_for_all_are_exact():
    learner = tiny_learner(tiny_suite(), optimizer="adamw", learning_rate=0.5)  # large steps: many signs change
    learner[Deltas].begin_deltas({"helper": 100})
    start = state_of(learner)
    delta = learner[Deltas].collect_delta("helper", 20)
    learner[Deltas].apply_deltas([delta], np.zeros(1))
    assert all(torch.equal(p, start[name]) for name, p in learner.model.named_parameters())
    learner.restore(learner.fresh(0).snapshot())
    learner[Deltas].apply_deltas([delta], np.ones(1))
    twin = learner.fresh(0)
    twin.begin(100)
    twin.train("helper", 20)
    assert same(state_of(learner), state_of(twin))
    differences = [(delta.end[name] - start[name]) + start[name] != delta.end[name] for name in delta.end]
    assert any(torch.any(each) for each in differences)  # adding a stored difference would not have been exact


def test_the_order_of_parameters_in_memory_does_not_matter():
    results = []
    for order in (torch.contiguous_format, torch.channels_last):
        learner = double_learner("convnet", False)
        learner.model.to(memory_format=order)
        deltas, alphas = collect_all(learner), np.array([0.9, 1.4, -0.2])
        results.append(learner[Deltas].merged_loss("primary", deltas, alphas))
        learner[Deltas].apply_deltas(deltas, alphas)
        results.append(state_of(learner))
    assert results[0][0] == pytest.approx(results[2][0], rel=1e-12)
    np.testing.assert_allclose(results[0][1], results[2][1], rtol=1e-9)
    for name, tensor in results[1].items():
        torch.testing.assert_close(tensor, results[3][name])


def test_write_back_is_the_weighted_sum():
    learner = double_learner("convnet", False)
    deltas, alphas = collect_all(learner), np.array([0.9, 1.4, -0.2])
    start = {name: p.detach().clone() for name, p in learner.model.named_parameters()}
    learner[Deltas].apply_deltas(deltas, alphas)
    for name, now in learner.model.named_parameters():
        moves = [a * (d.end[name] - start[name]) for a, d in zip(alphas, deltas, strict=True) if name in d.end]
        torch.testing.assert_close(now.detach(), start[name] + sum(moves))


def test_batch_norm_statistics_are_the_mean_weighted_by_the_loss_weights_and_ignore_alpha():
    learner = double_learner("convnet", True)
    learner[Deltas].begin_deltas(dict.fromkeys(learner.tasks, 10))
    weights = [0.75, 0.25, 1e-6]
    deltas = [learner[Deltas].collect_delta(task, 3, weight=w) for task, w in zip(learner.tasks, weights, strict=True)]
    name = "trunk.layers.1.running_var"
    expected = sum(w * d.buffers[name] for w, d in zip(weights, deltas, strict=True)) / sum(weights)
    learner[Deltas].apply_deltas(deltas, np.array([-5.0, 4.0, 9.0]))
    buffers = dict(learner.model.named_buffers())
    torch.testing.assert_close(buffers[name], expected)
    assert (buffers[name] > 0).all()
    assert buffers["trunk.layers.1.num_batches_tracked"] == 3


def test_a_delta_holds_only_what_its_task_can_change():
    learner = double_learner("convnet", False)
    delta = collect_all(learner)[1]
    assert all(not name.startswith("heads.") or name.startswith("heads.other-0.") for name in delta.end)
    touched = [p for name, p in learner.model.named_parameters() if name in delta.end]
    assert delta.bytes == sum(p.nbytes for p in touched)


@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
def test_each_task_goes_on_with_its_own_optimiser_schedule_and_rows(optimizer):
    """Collecting twice, with full write-back between, is training in one go: for one task, whatever others do in between."""
    learner, twin = (tiny_learner(optimizer=optimizer, warmup=0.3, decay="cosine") for _ in range(2))
    learner[Deltas].begin_deltas({"main-one": 30, "helper": 50})
    for n_batches in (7, 8):
        delta = learner[Deltas].collect_delta("main-one", n_batches)
        random = learner.randomness.states
        learner[Deltas].collect_delta("helper", 4)
        learner.randomness.states = (
            random  # dropout's random state is shared by the tasks; here it must match the twin's
        )
        learner[Deltas].apply_deltas([delta], np.ones(1))
    twin.begin(30)
    twin.train("main-one", 15)
    assert same(state_of(learner), state_of(twin))


def test_a_fresh_optimiser_forgets_momentum():
    kept, fresh = (double_learner("convnet", False) for _ in range(2))
    for learner, keep in ((kept, True), (fresh, False)):
        learner[Deltas].begin_deltas({"primary": 20})
        first = learner[Deltas].collect_delta("primary", 4, keep_optimizer=keep)
        learner[Deltas].apply_deltas([first], np.ones(1))
        learner.second = learner[Deltas].collect_delta("primary", 1, keep_optimizer=keep)
    assert not same(kept.second.end, fresh.second.end)
    assert fresh.courses["primary"].optimizer is None
    assert fresh.courses["primary"].step == kept.courses["primary"].step == 5


def test_rate_scales_the_step_and_is_the_loss_weight_for_sgd():
    by_weight, by_rate = (double_learner("convnet", False, weight_decay=0.0) for _ in range(2))
    for learner in (by_weight, by_rate):
        learner[Deltas].begin_deltas({"primary": 20})
    one = by_weight[Deltas].collect_delta("primary", 5, weight=0.25)
    two = by_rate[Deltas].collect_delta("primary", 5, rate=0.25)
    for name in one.end:
        torch.testing.assert_close(one.end[name], two.end[name], rtol=0, atol=1e-12)


@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
def test_courses_survive_save_and_load(tmp_path, optimizer):
    learner = tiny_learner(optimizer=optimizer)
    collect_all(learner, 3)
    learner.save(tmp_path / "state")
    other = tiny_learner(optimizer=optimizer)
    other.load(tmp_path / "state")
    for task in learner.tasks:
        one, two = (each[Deltas].collect_delta(task, 2, weight=0.5) for each in (learner, other))
        assert same(one.end, two.end)
        assert same(one.buffers, two.buffers)


def test_a_snapshot_of_weights_brings_back_predictions_and_nothing_else(tmp_path):
    learner = tiny_learner()
    learner.begin(40)
    learner.train("main-one", 5)
    weights, then = learner.snapshot(weights_only=True), state_of(learner)
    assert sum(t.nbytes for t in weights.tensors.values()) == sum(t.nbytes for t in then.values())
    learner.train("main-one", 5)
    position, step = learner._streams["main-one", ""].taken, learner._step
    learner.restore(weights)
    assert same(state_of(learner), then)
    assert (learner._streams["main-one", ""].taken, learner._step) == (position, step)
    learner.save(tmp_path / "best", weights)
    other = learner.fresh(9)
    other.load(tmp_path / "best")
    assert same(state_of(other), then)


def test_wrong_use_is_refused():
    learner = double_learner("convnet", False)
    deltas = collect_all(learner)
    with pytest.raises(ValueError, match="3 deltas need as many alphas, found 2"):
        learner[Deltas].apply_deltas(deltas, np.ones(2))
    with pytest.raises(SettingsError, match="unknown task"):
        learner[Deltas].merged_loss("primry", deltas, np.ones(3))
