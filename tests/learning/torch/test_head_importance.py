"""The capability: importances of rows and tasks, for every objective, at bounded memory, with nothing else touched."""

import numpy as np
import pytest
import torch

from sidequest.errors import SettingsError
from sidequest.learning.protocol import HeadImportance, Warmup
from sidequest.learning.torch.head_importance import add_up, row_losses, score_rows
from sidequest.learning.torch.losses import task_loss
from sidequest.models.head_gates import open_gates
from sidequest.tasks.task import Form, Objective
from tests.helpers.tiny import tiny_learner
from tests.helpers.tiny_suites import every_objective, task, tiny_setup

WARMUP = Warmup(epochs=1, seed=4)


@pytest.fixture
def setup(encoder):
    return tiny_setup(encoder, [task("primary"), *every_objective()])


def collect(rows):
    """(ids, values) sorted by id."""
    ids, values = (np.concatenate(parts) for parts in zip(*rows, strict=True))
    order = np.argsort(ids)
    return ids[order], values[order]


@pytest.mark.parametrize("name", ["primary", "pairs", "value", "several", "tags", "choice"])
def test_every_row_once_and_equal_to_a_batch_of_its_own(setup, name):
    learner = setup.learner(0)
    ids, values = collect(score_rows(learner, name))
    spec = setup.suite.tasks[name]
    assert ids.tolist() == spec.train.ids.tolist()
    assert values.shape == (len(ids), 3, 4)
    assert values.dtype == np.float32
    assert (values > 0).all()
    inputs = setup.family.inputs(spec, spec.train)
    for row in (0, 1, 2, 17):
        batch = inputs.collate(np.array([row]))
        with open_gates(learner.model) as gates:
            owners = torch.zeros(int(batch["choices"][0]), dtype=torch.int64) if "choices" in batch else None
            gates.begin(1, owners)
            loss = row_losses(spec, learner.model(name, batch), batch["labels"]).sum()
            alone = gates.gradients(loss).abs().numpy()[0]
        np.testing.assert_allclose(values[row], alone, rtol=2e-4, atol=2e-6 * alone.max())


@pytest.mark.parametrize("name", ["primary", "value", "tags", "choice"])
def test_row_losses_add_up_to_the_loss_of_training(setup, name):
    learner = setup.learner(0)
    learner.model.eval()
    spec = setup.suite.tasks[name]
    batch = setup.family.inputs(spec, spec.train).collate(np.arange(10))
    logits = learner.model(name, batch)
    losses = row_losses(spec, logits, batch["labels"])
    counted = int((batch["labels"] >= 0).sum()) if spec.objective == Objective.TAGGING else 10
    assert losses.shape == (10,)
    torch.testing.assert_close(losses.sum() / counted, task_loss(spec, logits, batch["labels"]))


def test_a_task_is_the_sum_of_its_rows_after_the_same_warm_up(setup):
    learner = setup.learner(0)
    total = learner[HeadImportance].head_importance("primary", WARMUP)
    _, values = collect(learner[HeadImportance].instance_importance("primary", WARMUP))
    assert total.dtype == np.float64
    np.testing.assert_allclose(total, values.sum(0, dtype=np.float64), rtol=1e-6)


def test_the_warm_up_is_single_task_training_of_a_fresh_model(setup):
    learner = setup.learner(0)
    found = learner[HeadImportance].head_importance("pairs", Warmup(epochs=2, seed=9))
    probe = setup.learner(9)
    probe.begin(10)  # 40 rows in batches of 8, twice
    probe.train("pairs", 10)
    np.testing.assert_array_equal(found, add_up(score_rows(probe, "pairs")))
    bounded = learner[HeadImportance].head_importance("pairs", Warmup(epochs=2, most_batches=3, seed=9))
    assert not np.allclose(bounded, found)


def test_the_learner_stays_as_it_was_and_is_charged(setup):
    learner = setup.learner(0)
    learner.train("primary", 2)
    before = learner.snapshot()
    learner[HeadImportance].head_importance("pairs", WARMUP)
    after = learner.snapshot()
    assert all(torch.equal(after.tensors[name], tensor) for name, tensor in before.tensors.items())
    assert before.plain == after.plain
    assert learner.meter.tasks["pairs"].examples == 40 + 40  # one epoch of warm-up, one pass
    assert all(parameter.requires_grad for parameter in learner.model.parameters())


def test_equal_seeds_give_equal_importances_and_others_do_not(setup):
    one = setup.learner(0)[HeadImportance].head_importance("tags", WARMUP)
    np.testing.assert_array_equal(one, setup.learner(7)[HeadImportance].head_importance("tags", WARMUP))
    assert not np.array_equal(one, setup.learner(0)[HeadImportance].head_importance("tags", Warmup(epochs=1, seed=5)))


def test_other_candidates_change_nothing(setup, encoder):
    alone = tiny_setup(encoder, [task("primary")]).learner(0)[HeadImportance].head_importance("primary", WARMUP)
    np.testing.assert_array_equal(setup.learner(0)[HeadImportance].head_importance("primary", WARMUP), alone)


def test_a_learner_with_heads_offers_the_power(setup):
    assert isinstance(setup.learner(0)[HeadImportance], HeadImportance)


def test_a_model_without_heads_is_refused_before_any_training():
    learner = tiny_learner()
    with pytest.raises(
        SettingsError, match=r"model\.kind=tiny has no attention heads: set model\.kind to hf or custom"
    ):
        learner[HeadImportance]
    assert learner.meter.work == 0


def test_a_task_without_name_is_refused(setup):
    with pytest.raises(SettingsError, match="Did you mean 'pairs'"):
        setup.learner(0)[HeadImportance].head_importance("pair", WARMUP)


def test_images_through_a_vision_transformer(tmp_path):
    import transformers

    from sidequest.model_settings import HfSettings
    from sidequest.runs.setup import Setup
    from sidequest.settings import TrainSettings
    from sidequest.tasks.examples import Examples
    from sidequest.tasks.suite import Suite
    from sidequest.tasks.task import Task
    from tests.helpers.tiny_encoders import CONFIGURATIONS

    transformers.ViTModel(transformers.ViTConfig(**CONFIGURATIONS["vit"])).save_pretrained(tmp_path)
    rng = np.random.default_rng(0)
    rows = Examples({"image": rng.random((12, 1, 8, 8), dtype=np.float32)}, rng.integers(0, 2, 12), np.arange(12))
    shapes = Task("shapes", Objective.CLASSIFICATION, Form.IMAGE, {"train": rows, "select": rows}, ("a", "b"))
    setup = Setup(Suite.of(shapes), HfSettings(encoder=str(tmp_path)), TrainSettings(batch_size=4))
    assert setup.learner(0)[HeadImportance].head_importance("shapes", WARMUP).shape == (3, 4)
