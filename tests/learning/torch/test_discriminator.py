"""The task-discriminative model: its losses, its training and its ranking, each against a slow version that hides nothing."""

import math

import numpy as np
import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from sidequest.errors import SettingsError
from sidequest.learning.protocol import Discrimination, TaskDiscriminator
from sidequest.learning.torch import ranking
from sidequest.learning.torch.discriminator import balance, discriminator_loss, positive_weights, sampled, scores_of
from sidequest.learning.torch.powers import PowerStores
from sidequest.learning.torch.ranking import RankedChunks, agreement
from sidequest.models.base import MultiTaskModel
from sidequest.models.pooled_output import PooledOutput
from sidequest.models.ragged import token_batches
from sidequest.search.discriminator_places import DiscriminatorPlaces
from tests.helpers.tiny import tiny_learner
from tests.helpers.word_suites import every_form, word_setup, word_task

OF = Discrimination(rows=24, epochs=1, chunk=16, seed=4)
SMALL = {"hidden": 12}


@pytest.fixture
def setup(word_bert):
    return word_setup(word_bert, every_form())


def sigmoid(z):
    return 1 / (1 + math.exp(-z))


def test_bce_by_hand():
    scores = torch.tensor([[0.3, -1.2, 2.0], [1.5, 0.1, -0.4]], dtype=torch.float64)
    counts = np.array([500.0, 500.0, 50.0])
    weights = positive_weights(counts)
    assert weights.tolist() == [550 / 500, 550 / 500, 1000 / 50]
    total = 0.0
    for row in scores.tolist():
        for task, z in enumerate(row):
            total -= weights[task] * math.log(sigmoid(z)) if task == 1 else math.log(1 - sigmoid(z))
    found = discriminator_loss(scores, 1, "bce", torch.tensor(weights))
    assert float(found) == pytest.approx(total / 6, rel=1e-12)


def test_positive_weights_make_both_sides_of_a_question_weigh_the_same():
    counts = np.array([500.0, 120.0, 7.0])
    assert (positive_weights(counts) * counts).tolist() == pytest.approx((counts.sum() - counts).tolist())


def test_ce_by_hand():
    scores = torch.tensor([[0.3, -1.2, 2.0], [1.5, 0.1, -0.4]], dtype=torch.float64)
    slow = np.mean([-math.log(math.exp(row[2]) / sum(map(math.exp, row))) for row in scores.tolist()])
    assert float(discriminator_loss(scores, 2, "ce", torch.ones(3))) == pytest.approx(slow, rel=1e-12)


@pytest.mark.parametrize("loss", ["bce", "ce"])
def test_gradients_equal_finite_differences(loss):
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(5, 4, dtype=torch.float64, generator=generator, requires_grad=True)
    weights = torch.tensor([3.0, 3.0, 8.0, 1.5], dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda z: discriminator_loss(z, 2, loss, weights), (scores,))


def test_every_task_counts_for_as_much_in_an_epoch():
    counts = np.array([500.0, 50.0])
    assert (balance(counts) * counts).tolist() == [500.0, 500.0]
    assert balance(np.array([500.0, 500.0])).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("of", [OF, Discrimination("ce", 24, 1, seed=4), Discrimination("bce", 24, 1, False, seed=4)])
def test_training_equals_a_loop_that_hides_nothing(word_bert, of):
    """Same order of batches; every loss row by row from the encoder's own output."""
    tasks = [word_task("primary", rows=10), word_task("other", rows=50)]
    setup = word_setup(word_bert, tasks, {"dropout": 0.0}, clip=None, warmup=0.0, decay="constant", optimizer="sgd")
    learner = setup.learner(0)
    learner[TaskDiscriminator].train_discriminator(of)
    trained = learner[TaskDiscriminator]._trained.ranker

    slow = setup.learner(of.seed)
    names = ["other", "primary"]
    used = {name: sampled(name, len(setup.suite[name].train), of) for name in names}
    counts = np.array([24.0, 10.0])
    weight = torch.nn.Parameter(_first_values(setup, of))
    bias = torch.nn.Parameter(torch.zeros(2))
    parameters = [*slow.model.parameters(), weight, bias]
    momentum = [torch.zeros_like(p) for p in parameters]
    order = np.random.default_rng([of.seed, 0]).permutation(np.repeat([0, 1], [3, 2]))
    streams = {name: _stream(setup, slow, name, used[name], of) for name in names}
    for index in order:
        name = names[index]
        positions = used[name][streams[name].next()]
        spec = setup.suite[name]
        batch = setup.family.inputs(spec, spec.train).collate(positions)
        inputs = {key: batch[key] for key in ("input_ids", "attention_mask", "token_type_ids") if key in batch}
        features = slow.model.base(**inputs).pooler_output
        z = features @ weight.T + bias
        loss, balanced = 0.0, 24 / counts[index]
        for row in range(len(z)):
            if of.loss == "ce":
                loss = loss - balanced * torch.log_softmax(z[row], 0)[index] / len(z)
            else:
                for task in range(2):
                    p = torch.sigmoid(z[row, task])
                    positive = (34 - counts[task]) / counts[task]
                    loss = loss - (positive * p.log() if task == index else (1 - p).log()) / (2 * len(z))
        if of.task_losses:
            logits = slow.model(name, batch)
            for row in range(len(z)):
                loss = loss - balanced * torch.log_softmax(logits[row], 0)[batch["labels"][row]] / len(z)
        gradients = torch.autograd.grad(loss, parameters, allow_unused=True)
        with torch.no_grad():
            for parameter, gradient, velocity in zip(parameters, gradients, momentum, strict=True):
                if gradient is not None:
                    decay = 0.01 * parameter if parameter.ndim > 1 else 0.0
                    velocity.mul_(0.9).add_(gradient + decay)
                    parameter.sub_(1e-3 * velocity)
    torch.testing.assert_close(trained.discriminator.weight.detach(), weight.detach(), rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(trained.discriminator.bias.detach(), bias.detach(), rtol=1e-4, atol=1e-6)
    for mine, theirs in zip(trained.pooled.model.base.parameters(), slow.model.base.parameters(), strict=True):
        torch.testing.assert_close(mine.detach(), theirs.detach(), rtol=1e-4, atol=1e-6)


def _first_values(setup, of):
    from sidequest.models.base import seeded

    with seeded(of.seed, "discriminator"):
        linear = torch.nn.Linear(24, 2)
        torch.nn.init.normal_(linear.weight, std=0.02)
    return linear.weight.detach()


def _stream(setup, learner, name, used, of):
    """The order in which a learner of these rows alone sees them."""
    from sidequest.learning.torch.batching import Stream
    from sidequest.models.base import seed_of

    spec = setup.suite[name]
    lengths = setup.family.inputs(spec, spec.train).lengths[used]
    return Stream(lengths, None, 8, seed_of(of.seed, "order", name, ""))


KINDS = {
    "hf": {},
    "hf-mean": {"pooling": "mean"},
    "bilstm": {"kind": "bilstm", **SMALL},
    "pooled": {"kind": "pooled", **SMALL},
}


@pytest.mark.parametrize("kind", KINDS)
@sdpa_kernel(SDPBackend.MATH)  # the fused kernel approximates exp on some processors, by more than this test allows
def test_ranking_equals_a_loop_over_single_rows(word_bert, kind):
    tasks = [task for task in every_form() if kind != "pooled" or task.name != "tags"]
    setup = word_setup(word_bert, tasks, KINDS[kind])
    learner = setup.learner(0)
    learner[TaskDiscriminator].train_discriminator(OF)
    ranker = learner[TaskDiscriminator]._trained.ranker
    ranker.pooled.model.eval()
    column = ranker.names.index("primary")
    for name, task in setup.suite.tasks.items():
        unused = np.delete(np.arange(len(task.train)), sampled(name, len(task.train), OF))
        assert learner[TaskDiscriminator].rows_to_rank(name, OF).tolist() == task.train.ids[unused].tolist()
        inputs = setup.family.inputs(task, task.train)
        alone = []
        with torch.inference_mode():
            for position in unused:
                _, features = ranker.pooled(name, inputs.collate(np.array([position])))
                assert features.shape == (1, ranker.pooled.width)
                alone.append(float(ranker.discriminator(features)[0, column]))
        found = learner[TaskDiscriminator].similarities(name, OF)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, alone, rtol=1e-4, atol=1e-5)


def test_features_are_what_the_encoder_pools(setup):
    learner = setup.learner(0)
    learner.model.eval()
    pooled = PooledOutput(learner.model)
    for name, task in setup.suite.tasks.items():
        batch = setup.family.inputs(task, task.train).collate(np.arange(6))
        inputs = {key: batch[key] for key in ("input_ids", "attention_mask", "token_type_ids") if key in batch}
        with torch.inference_mode():
            texts = learner.model.base(**inputs).pooler_output
            logits, features = pooled(name, batch)
            torch.testing.assert_close(logits, learner.model(name, batch))
        if name == "choice":
            ends = torch.cumsum(batch["choices"], 0).tolist()
            texts = torch.stack([texts[a:b].mean(0) for a, b in zip([0, *ends[:-1]], ends, strict=True)])
        torch.testing.assert_close(features, texts)


def test_pairs_and_single_texts_have_one_width(word_bert):
    setup = word_setup(word_bert, [word_task("primary"), every_form()[1]], {"kind": "pooled", **SMALL})
    pooled = PooledOutput(setup.learner(0).model.eval())
    assert pooled.width == 48
    single = setup.suite["primary"]
    _, features = pooled("primary", setup.family.inputs(single, single.train).collate(np.arange(3)))
    assert (features[:, 12:] == 0).all()
    assert (features[:, :12] != 0).any()


def test_a_model_without_heads_is_refused_in_words():
    with pytest.raises(SettingsError, match="has no `heads`"):
        PooledOutput(MultiTaskModel())


def test_images_and_names_of_heads(tmp_path):
    learner = tiny_learner()  # its heads are called by the tasks' own names
    assert isinstance(learner[TaskDiscriminator], TaskDiscriminator)
    before = learner.snapshot()
    told = learner[TaskDiscriminator].train_discriminator(Discrimination(rows=30, epochs=2, chunk=50))
    assert told["rows"] == {"helper": 30, "main-one": 30, "value": 30}
    assert learner[TaskDiscriminator].similarities("helper", Discrimination(rows=30, epochs=2, chunk=50)).shape == (
        120,
    )
    after = learner.snapshot()
    for name, tensor in before.tensors.items():
        assert torch.equal(tensor, after.tensors[name])
    assert before.plain == after.plain


def test_log_probabilities_order_rows_that_probabilities_tie():
    logits = np.array([[40.0, 0.0], [50.0, 0.0], [-60.0, 0.0], [-61.0, 0.0]], dtype=np.float32)
    probability = 1 / (1 + np.exp(-(logits[:, 0] - logits[:, 1])))
    assert probability[0] == probability[1]
    scores = scores_of(logits, 0, Discrimination("ce"))
    assert scores[2] > scores[3]
    np.testing.assert_allclose(scores[2:], [-60, -61], rtol=1e-6)
    assert scores_of(logits, 0, Discrimination("bce")).tolist() == [40.0, 50.0, -60.0, -61.0]


def test_chunks_of_any_size_give_the_same_scores_and_no_more_is_encoded_than_a_chunk(setup, monkeypatch):
    sizes = []
    inputs = setup.family.inputs
    monkeypatch.setattr(setup.family, "inputs", lambda task, rows: sizes.append(len(rows)) or inputs(task, rows))
    learner = setup.learner(0)
    few = learner[TaskDiscriminator].similarities("pairs", OF)
    assert max(sizes) == 24  # the discriminator's own rows; then chunks of 16
    assert not learner._data.encoded  # nothing stays
    many = setup.learner(0)[TaskDiscriminator].similarities(
        "pairs", Discrimination(rows=24, epochs=1, chunk=1000, seed=4)
    )
    np.testing.assert_allclose(few, many, rtol=1e-4, atol=1e-5)


def test_work_is_charged_once_and_seconds_are_kept(setup):
    learner = setup.learner(0)
    learner[TaskDiscriminator].train_discriminator(OF)
    assert {name: count.examples for name, count in learner.meter.tasks.items()} == dict.fromkeys(setup.suite.tasks, 24)
    assert [learner[TaskDiscriminator].rank_chunk("pairs", chunk, OF) for chunk in range(2)] == [16, 10]
    learner[TaskDiscriminator].similarities("pairs", OF)
    learner[TaskDiscriminator].similarities("pairs", OF)
    assert learner.meter.of("pairs").evaluated_examples == 26
    assert learner.meter.of("pairs").seconds > 0


def test_what_is_kept_on_disk_is_found_again_by_another_learner(setup, tmp_path):
    def new():
        return setup.learner(0, PowerStores(discriminator=DiscriminatorPlaces(setup.facts_together, tmp_path)))

    first = new()
    told = first[TaskDiscriminator].train_discriminator(OF)
    scores = first[TaskDiscriminator].similarities("tags", OF)
    second = new()
    assert second[TaskDiscriminator].train_discriminator(OF) == told
    assert second.meter.to_json() == first.meter.to_json()
    second[TaskDiscriminator]._trained.ranker.logits = None  # nothing may be computed
    np.testing.assert_array_equal(second[TaskDiscriminator].similarities("tags", OF), scores)
    third = new()
    for path in tmp_path.rglob("*.npz"):
        path.unlink()
    np.testing.assert_array_equal(
        third[TaskDiscriminator].similarities("tags", OF), scores
    )  # from the stored weights, to the last bit


def test_one_discriminator_serves_every_primary(setup, tmp_path):
    from dataclasses import replace

    other = replace(setup, suite=setup.suite.with_primary("value"))
    places = [DiscriminatorPlaces(each.facts_together, tmp_path)(OF) for each in (setup, other)]
    assert places[0] == places[1]
    learners = [each.learner(0) for each in (setup, other)]
    for learner in learners:
        learner[TaskDiscriminator].train_discriminator(OF)
    mine, theirs = (dict(each[TaskDiscriminator]._trained.ranker.pooled.model.named_parameters()) for each in learners)
    assert list(mine) == list(theirs)
    for name, parameter in mine.items():
        assert torch.equal(parameter, theirs[name])


def test_other_settings_have_another_place(setup, tmp_path):
    places = DiscriminatorPlaces(setup.facts_together, tmp_path)
    assert places(OF) == places(Discrimination(rows=24, epochs=1, chunk=3, seed=4))  # the model is the same
    others = [
        Discrimination("ce", 24, 1, seed=4),
        Discrimination("bce", 25, 1, seed=4),
        Discrimination("bce", 24, 2, seed=4),
        Discrimination("bce", 24, 1, False, seed=4),
        Discrimination("bce", 24, 1, seed=5),
    ]
    assert len({places(each) for each in [OF, *others]}) == 6


def test_bf16_only_where_it_ranks_alike(setup, monkeypatch):
    monkeypatch.setattr(ranking, "computes_bf16", lambda device: True)
    monkeypatch.setattr(ranking, "agreement", lambda first, second: 0.9995)
    learner = setup.learner(0)
    assert learner[TaskDiscriminator].train_discriminator(OF)["precision"] == "bf16"
    assert learner[TaskDiscriminator]._trained.ranker.pooled.model.bf16_evaluation
    assert learner[TaskDiscriminator].similarities("pairs", OF).dtype == np.float32
    monkeypatch.setattr(ranking, "agreement", lambda first, second: 0.9985)
    learner = setup.learner(0)
    assert learner[TaskDiscriminator].train_discriminator(OF)["precision"] == "fp32"
    assert not learner[TaskDiscriminator]._trained.ranker.pooled.model.bf16_evaluation


def test_agreement_is_the_least_of_all_columns():
    rng = np.random.default_rng(0)
    first = rng.normal(size=(50, 2))
    second = np.stack([first[:, 0] ** 3, first[:, 1] + rng.normal(size=50)], axis=1)
    assert 0.3 < agreement(first, second) < 0.95
    assert agreement(first, first) == pytest.approx(1.0)
    assert agreement(first, np.zeros((50, 2))) == 0.0


def test_token_batches_hold_every_row_once_within_their_budget():
    rng = np.random.default_rng(0)
    for lengths in (rng.integers(1, 60, 500), np.ones(700, dtype=np.int64), np.array([900, 1, 1]), np.zeros(0, int)):
        batches = token_batches(lengths, 256)
        assert sorted(np.concatenate([[], *batches]).tolist()) == list(range(len(lengths)))
        for batch in batches:
            assert len(batch) == 1 or len(batch) * lengths[batch].max() <= 256
    spread = token_batches(rng.integers(1, 60, 5000), 2048)
    assert len(spread) < 1.1 * 5000 * 30 / 2048


def test_chunks_of_different_sizes_do_not_mix_on_disk(tmp_path):
    RankedChunks(tmp_path, 4).put("a/b", 0, np.ones((4, 2), np.float32), 0.5)
    assert RankedChunks(tmp_path, 8).get("a/b", 0) is None
    logits, seconds = RankedChunks(tmp_path, 4).get("a/b", 0)
    assert (logits.tolist(), seconds) == ([[1, 1]] * 4, 0.5)


def test_features_by_id(setup):
    learner = setup.learner(0)
    ids = np.array([130, 101])
    found = learner[TaskDiscriminator].pooled_features("pairs", ids, Discrimination("none", 24, 1))
    assert found.shape == (2, 24)
    swapped = learner[TaskDiscriminator].pooled_features("pairs", ids[::-1], Discrimination("none", 24, 1))
    np.testing.assert_allclose(found, swapped[::-1], rtol=1e-4, atol=1e-6)


def test_empty_texts_are_ranked_and_counted(word_bert):
    setup = word_setup(word_bert, [word_task("primary"), word_task("other", rows=60, empty=5)])
    learner = setup.learner(0)
    assert learner[TaskDiscriminator].train_discriminator(OF)["empty"] == {"other": 5}
    assert np.isfinite(learner[TaskDiscriminator].similarities("other", OF)).all()
