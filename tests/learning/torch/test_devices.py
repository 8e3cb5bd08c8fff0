"""Every family and every power of a learner on a device apart from the CPU: no tensor is left behind, and results agree."""

from __future__ import annotations

import functools
import sys

import numpy as np
import pytest
import torch

from sidequest.errors import SettingsError
from sidequest.learning.protocol import (
    Deltas,
    Discrimination,
    HeadImportance,
    PredictionGain,
    TaskDiscriminator,
    Warmup,
)
from sidequest.learning.torch import randomness
from sidequest.learning.torch.learner import TorchLearner
from sidequest.learning.torch.losses import items
from sidequest.model_settings import KIND_SETTINGS
from sidequest.models import devices
from sidequest.models.base import seeded
from sidequest.models.devices import chosen_device
from sidequest.settings import TrainSettings
from sidequest.tasks.task import Objective
from tests.helpers.marks import slow_but
from tests.helpers.pretended_device import DEVICE, pretended_device
from tests.helpers.small_learners import OddFamily, images
from tests.helpers.word_suites import every_form, word_encoder, word_setup

TEXT_MODELS = {
    "hf": {"kind": "hf"},
    "hf-mean": {"kind": "hf", "pooling": "mean"},
    "bilstm": {"kind": "bilstm", "hidden": 8},
    "pooled": {"kind": "pooled", "hidden": 8},
}


@pytest.fixture(scope="module")
def word_bert(tmp_path_factory):
    return word_encoder(tmp_path_factory.mktemp("encoder"))


@pytest.fixture
def device(monkeypatch):
    # The fused optimiser has a list of devices; the operation itself runs anywhere.
    monkeypatch.setattr(sys.modules["torch.optim.adam"], "_device_dtype_check_for_fused", lambda *_, **__: None)
    # Views of a wrapped tensor cannot be made in inference mode.
    monkeypatch.setattr(torch, "inference_mode", torch.no_grad)
    monkeypatch.setattr("sidequest.learning.torch.ranking.computes_bf16", lambda device: False)
    with pretended_device() as pretended:
        yield pretended


@functools.cache
def setup_of(encoder, kind: str):
    tasks = [task for task in every_form() if kind != "pooled" or task.name != "tags"]
    return word_setup(encoder, tasks, TEXT_MODELS[kind])


def twins(setup, device) -> tuple[TorchLearner, TorchLearner]:
    """A learner on the CPU and one on the device, of one seed and one family."""
    parts = setup.suite, setup.family, setup.train
    return TorchLearner(*parts, device="cpu"), TorchLearner(*parts, device=device)


@pytest.mark.parametrize("kind", slow_but(("hf", "bilstm", "pooled"), "hf", "pooled"))
def test_training_and_evaluation_stay_on_the_device_and_give_the_cpu_s_results(word_bert, kind, device):
    here, there = twins(setup_of(word_bert, kind), device)
    for learner in (here, there):
        learner.begin(20)
    assert all(parameter.device == device for parameter in there.model.parameters())
    for task in here.tasks:
        assert there.train(task, 1) == pytest.approx(here.train(task, 1))
        assert there.evaluate_all(task) == pytest.approx(here.evaluate_all(task), abs=1e-4)
        assert there[PredictionGain].train_with_gain(task) == pytest.approx(here[PredictionGain].train_with_gain(task))
    found = [learner[PredictionGain].train_with_gain("primary", target="pairs") for learner in (here, there)]
    assert found[0] == pytest.approx(found[1])
    snapshot = there.snapshot()
    expected = there.train("choice", 1)
    there.restore(snapshot)
    assert there.train("choice", 1) == expected
    assert expected == pytest.approx(here.train("choice", 1))


@pytest.mark.parametrize("kind", slow_but(("hf", "hf-mean", "pooled"), "hf", "pooled"))
def test_powers_stay_on_the_device(word_bert, kind, device):
    here, there = twins(setup_of(word_bert, kind), device)
    found = []
    for learner in (here, there):
        learner[Deltas].begin_deltas(dict.fromkeys(learner.tasks, 4))
        deltas = [learner[Deltas].collect_delta(task, 1) for task in ("primary", "pairs")]
        loss, gradient = learner[Deltas].merged_loss("primary", deltas, np.array([0.5, 1.0]))
        learner[Deltas].apply_deltas(deltas, np.array([0.5, 1.0]))
        found.append([loss, *gradient, learner.evaluate("primary")])
    assert found[0] == pytest.approx(found[1], rel=1e-4)
    if kind.startswith("hf"):
        importances = [
            learner[HeadImportance].head_importance("choice", Warmup(epochs=0.1)) for learner in (here, there)
        ]
        np.testing.assert_allclose(*importances, rtol=1e-5)
    of = Discrimination(rows=10, epochs=0.3)
    for learner in (here, there):
        learner[TaskDiscriminator].train_discriminator(of)
    np.testing.assert_allclose(
        here[TaskDiscriminator].similarities("pairs", of),
        there[TaskDiscriminator].similarities("pairs", of),
        rtol=1e-4,
        atol=1e-6,
    )
    rows = here.suite["pairs"].train.ids[:4]
    np.testing.assert_allclose(
        here[TaskDiscriminator].pooled_features("pairs", rows, of),
        there[TaskDiscriminator].pooled_features("pairs", rows, of),
        rtol=1e-4,
        atol=1e-6,
    )


def test_images_and_models_of_users_train_on_the_device(device):
    suite = images()
    for memory_format in (torch.contiguous_format, torch.channels_last):
        family = OddFamily(suite, torch.float32, memory_format)
        learners = [TorchLearner(suite, family, TrainSettings(batch_size=8), device=each) for each in ("cpu", device)]
        losses = [[loss for task in learner.tasks for loss in learner.train(task, 2)] for learner in learners]
        assert losses[0] == pytest.approx(losses[1])


def test_a_tensor_left_on_the_cpu_is_found(word_bert, device, monkeypatch):
    _, there = twins(setup_of(word_bert, "hf-mean"), device)
    monkeypatch.setattr(there, "to_device", lambda batch: batch)
    with pytest.raises(RuntimeError, match="same device"):
        there.train("primary", 1)


class Accelerator:
    """Stands in for torch.cuda: one generator's state, which drawing changes."""

    def __init__(self) -> None:
        self.state = torch.arange(8, dtype=torch.uint8)

    def get_rng_state(self, device) -> torch.Tensor:
        return self.state.clone()

    def set_rng_state(self, state, device) -> None:
        self.state = state.clone()


def test_dropout_on_a_gpu_draws_from_the_learner_s_state_and_leaves_the_process_s(monkeypatch):
    gpu = Accelerator()
    monkeypatch.setattr(randomness, "_generators", lambda device: None if device.type == "cpu" else gpu)
    own = randomness.Randomness.__new__(randomness.Randomness)
    own.device = DEVICE
    own.states = {
        "random": torch.Generator().manual_seed(1).get_state(),
        "random-device": torch.full((8,), 7, dtype=torch.uint8),
    }
    before, cpu_before = gpu.state.clone(), torch.get_rng_state()
    with own.lent():
        assert gpu.state.tolist() == [7] * 8
        gpu.state += 1  # dropout draws
        torch.rand(3)
    assert torch.equal(gpu.state, before)
    assert torch.equal(torch.get_rng_state(), cpu_before)
    assert own.states["random-device"].tolist() == [8] * 8
    saved = {name: state.clone() for name, state in own.states.items()}
    with own.lent():
        first = torch.rand(3)
    own.restore(saved)
    with own.lent():
        assert torch.equal(torch.rand(3), first)
        assert gpu.state.tolist() == [8] * 8
    own.restore({"random": saved["random"]})  # saved on a CPU
    assert own.states["random-device"].tolist() == [8] * 8


def test_seeding_a_module_leaves_the_gpus_generators_alone(monkeypatch):
    seeded_all: list[int] = []
    monkeypatch.setattr(torch.cuda, "manual_seed_all", seeded_all.append)
    with seeded(3, "head"):
        first = torch.rand(2)
    assert not seeded_all
    with seeded(3, "head"):
        assert torch.equal(torch.rand(2), first)
    with seeded(3, "another"):
        assert not torch.equal(torch.rand(2), first)


def test_a_device_comes_from_the_call_the_environment_or_what_there_is(monkeypatch):
    monkeypatch.delenv(devices.VARIABLE, raising=False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert chosen_device() == torch.device("cuda")
    monkeypatch.setenv(devices.VARIABLE, "cuda:1")
    assert chosen_device() == torch.device("cuda:1")
    assert chosen_device("cpu") == torch.device("cpu")
    with pytest.raises(SettingsError, match="there are 2 cuda devices"):
        chosen_device("cuda:2")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(SettingsError, match="--device cuda:1: this machine's torch finds no cuda device"):
        chosen_device()
    for name in ("gpu", "meta"):
        with pytest.raises(SettingsError, match=f"--device {name}"):
            chosen_device(name)


def test_the_device_is_no_part_of_a_trial_s_key(word_bert, monkeypatch):
    setup = setup_of(word_bert, "hf")
    monkeypatch.delenv(devices.VARIABLE, raising=False)
    facts = setup.facts([])
    monkeypatch.setenv(devices.VARIABLE, "cpu")
    assert setup.facts([]) == facts
    assert all({"device"}.isdisjoint(cls.model_fields) for cls in KIND_SETTINGS.values())


def test_what_a_model_says_of_rows_needs_no_float64_where_it_is(monkeypatch):
    """Apple's devices have none, and `auto` judges every run by this."""
    task = next(task for task in every_form() if task.objective == Objective.CLASSIFICATION)
    logits, labels = torch.randn(4, len(task.labels)), torch.tensor([0, 1, 0, 1])
    here = items(task, logits, labels)
    double = torch.Tensor.double

    def refused(tensor):
        if tensor.device.type != "cpu":
            raise TypeError("this device has no float64")
        return double(tensor)

    monkeypatch.setattr(torch.Tensor, "double", refused)
    with pretended_device() as device:
        there = logits.to(device)
        with pytest.raises(TypeError, match="no float64"):
            there.double()
        np.testing.assert_array_equal(items(task, there, labels.to(device)).logits, here.logits)
