"""The linear read-out: scikit-learn on the same features, from *train* alone, the same for every seed and suite."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

from sidequest.files import cache_directory
from sidequest.learning.torch.learner import TorchLearner
from sidequest.learning.torch.readout import probe_predictions, probe_scores
from sidequest.model_settings import model_settings
from sidequest.models import family as make_family
from sidequest.models import readout
from sidequest.numerics.linear_models import logistic
from sidequest.settings import TrainSettings
from sidequest.tasks.metrics import compute
from sidequest.tasks.suite import Suite
from sidequest.tasks.task import Form, Objective, Task
from tests.helpers.sample_models import make_task

KINDS = {
    "one": (Form.TEXT, Objective.CLASSIFICATION),
    "marks": (Form.TEXT, Objective.MULTILABEL),
    "pair": (Form.PAIR, Objective.CLASSIFICATION),
    "number": (Form.PAIR, Objective.REGRESSION),
    "choice": (Form.CHOICES, Objective.CHOICE),
    "tags": (Form.TOKENS, Objective.TAGGING),
    "image": (Form.IMAGE, Objective.CLASSIFICATION),
}
METRICS = {
    Objective.REGRESSION: ("pearson", "r2"),
    Objective.MULTILABEL: ("micro_f1",),
    Objective.TAGGING: ("token_accuracy",),
}


def task_of(name, rows=40, **changes) -> Task:
    form, objective = KINDS[name]
    train, select = (make_task(name, form, objective, rows, seed).train for seed in (0, 1))
    like = make_task(name, form, objective)
    metrics = METRICS.get(objective, ("accuracy",))
    return dataclasses.replace(like, splits={"train": train, "select": select}, metrics=metrics, **changes)


def family_of(encoder, *tasks, kind=None, **settings):
    suite = Suite.of(tasks[0], tasks[1:])
    if kind is None:
        kind = {Form.TOKENS: "bilstm", Form.IMAGE: "convnet"}.get(tasks[0].form, "pooled")
    if kind != "convnet":
        settings["encoder"] = str(encoder)
    return make_family(suite, model_settings({"kind": kind, **settings}))


def learner_of(family, seed=0):
    return TorchLearner(family.suite, family, TrainSettings(), seed=seed)


def standardised(features):
    """As a read-out sees them: each kind of feature varies as much in all."""
    x = features.values.astype(np.float64)
    spread = x.std(axis=0)
    factors = 1.0 if features.importance is None else features.importance
    return factors * (x - x.mean(axis=0)) / np.where(spread > 1e-6 * np.abs(x.mean(axis=0)), spread, np.inf)


@pytest.mark.parametrize("name", KINDS)
def test_every_objective_has_a_read_out_with_scores_and_predictions(name, encoders):
    task = task_of(name)
    learner = learner_of(family_of(encoders(), task))
    predictions, scores = (
        probe_predictions(learner.family, learner.task(name), "select"),
        probe_scores(learner.family, learner.task(name), "select"),
    )
    assert scores == {m: compute(m, predictions, task.splits["select"].target, task.labels) for m in task.metrics}
    expected = learner.predict(name, "select")
    assert [np.shape(row) for row in predictions] == [np.shape(row) for row in expected]


@pytest.mark.parametrize("name", ["one", "pair", "tags", "image"])
def test_a_classification_is_scikit_learns_logistic_regression(name, encoders):
    task = task_of(name)
    family = family_of(encoders(), task)
    model = family.read_out(task).model
    x = standardised(family.features(task, task.train))
    target = task.train.target
    labels = target.flatten().to_numpy(zero_copy_only=False) if name == "tags" else target
    reference = LogisticRegression(C=1 / model.strength, tol=1e-8, max_iter=10_000).fit(x, labels)
    logits, _ = family.read_out(task).logits(task.train)
    assert np.allclose(logits - logits.mean(axis=1, keepdims=True), reference.decision_function(x), atol=0.02)


def test_a_regression_is_scikit_learns_ridge_in_the_tasks_own_units(encoders):
    task = task_of("number")
    family = family_of(encoders(), task)
    x = standardised(family.features(task, task.train))
    reference = Ridge(alpha=family.read_out(task).model.strength).fit(x, task.train.target)
    found = family.read_out(task).predict(task.train, family.scales["number"].restore)
    assert np.allclose(found, reference.predict(x), atol=1e-4)
    assert found.mean() == pytest.approx(task.train.target.mean(), abs=1e-3)


def test_pairs_have_their_product_difference_and_cosine(encoders):
    task = task_of("pair")
    family = family_of(encoders(), task)
    features = family.features(task, task.train)
    layers = family.frozen.depth
    u, v, product, difference, cosine = np.split(features.values, np.cumsum([32 * layers] * 4), axis=1)
    assert np.allclose(product, u * v)
    assert np.allclose(difference, abs(u - v))
    for layer in range(layers):
        pairs = zip(u[:, 32 * layer : 32 * (layer + 1)], v[:, 32 * layer : 32 * (layer + 1)], strict=True)
        expected = [a @ b / (np.linalg.norm(a) * np.linalg.norm(b)) for a, b in pairs]
        assert np.allclose(cosine[:, layer], expected, atol=1e-5)
    assert features.importance[0] == 1.0
    assert features.importance[-1] == pytest.approx(np.sqrt(32 * layers))


def test_a_read_out_depends_on_the_train_rows_alone(encoders, monkeypatch):
    monkeypatch.setattr("sidequest.store.ContentStore.get", lambda store, key: None)  # nothing is found
    task = task_of("one")
    alone = family_of(encoders(), task)
    among = family_of(encoders(), task_of("pair"), task)
    other_select = dataclasses.replace(task, splits={"train": task.train, "select": task_of("one", 20).train})
    weights = [family.read_out(t).model.weight for family, t in ((alone, task), (among, task), (alone, other_select))]
    assert weights[0].tobytes() == weights[1].tobytes() == weights[2].tobytes()
    fewer = dataclasses.replace(task, splits={**task.splits, "train": task.train.take(np.arange(39))})
    assert family_of(encoders(), fewer).read_out(fewer).model.weight.tobytes() != weights[0].tobytes()
    learners = [learner_of(alone, seed) for seed in (0, 1)]
    assert probe_scores(learners[0].family, learners[0].task("one")) == probe_scores(
        learners[1].family, learners[1].task("one")
    )
    assert learners[0].meter.tasks == {}


def test_a_read_out_is_kept_and_a_damaged_one_is_made_again(encoders, tmp_path, monkeypatch):
    monkeypatch.setenv("SIDEQUEST_CACHE", str(tmp_path))
    task = task_of("one")
    first = family_of(encoders(), task).read_out(task).model
    (place,) = (cache_directory() / "readouts").rglob("arrays.npz")
    monkeypatch.setattr(readout, "fit", None)  # must not be called
    again = family_of(encoders(), task).read_out(task).model
    assert again.weight.tobytes() == first.weight.tobytes()
    assert (again.strength, again.losses) == (first.strength, first.losses)
    monkeypatch.undo()
    monkeypatch.setenv("SIDEQUEST_CACHE", str(tmp_path))
    whole = place.read_bytes()
    at = whole.index(first.weight.tobytes()) + 100
    flipped = whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]
    for damaged in (b"", whole[: len(whole) // 2], flipped):
        place.write_bytes(damaged)
        assert family_of(encoders(), task).read_out(task).model.weight.tobytes() == first.weight.tobytes()
        assert place.read_bytes() == whole


def test_hf_reads_out_of_the_last_layer_and_pooled_of_all(encoders):
    task = task_of("pair")
    hf, last, every = (
        family_of(encoders(), task, **settings).read_out(task).model
        for settings in ({"kind": "hf"}, {"kind": "pooled", "layers": 1}, {"kind": "pooled"})
    )
    assert np.allclose(hf.weight, last.weight, rtol=0.05, atol=0.01)  # states of all layers are kept in half precision
    assert len(hf.weight) == 4 * 32 + 1
    assert len(every.weight) > 2 * len(hf.weight)
    cut = family_of(encoders(), task, kind="hf", layers=1).read_out(task).model
    assert not np.allclose(cut.weight, hf.weight, rtol=0.05, atol=0.01)


def test_classes_count_equally_where_the_metric_is_their_mean(encoders):
    task = task_of("one")
    by_class = dataclasses.replace(task, metrics=("macro_f1",))
    family = family_of(encoders(), task)
    counts = np.bincount(task.train.target, minlength=3)
    weights = np.array(by_class.loss_weights)
    assert weights * counts == pytest.approx(np.full(3, len(task.train) / 3))
    assert task.loss_weights is None
    family_by_class = family_of(encoders(), by_class)
    assert not np.array_equal(family.read_out(task).model.bias, family_by_class.read_out(by_class).model.bias)


@pytest.mark.parametrize("name", ["one", "marks"])
def test_class_weights_of_a_task_count_in_its_read_out(name, encoders):
    task = task_of(name)
    given = (1.0, 1.0, 5.0) if name == "one" else ((1.0, 1.0), (1.0, 1.0), (1.0, 5.0))
    weighted = dataclasses.replace(task, class_weights=given)
    predictions = [probe_predictions(family_of(encoders(), each), each, "select") for each in (task, weighted)]
    plain, more = ((rows == 2) if name == "one" else rows[:, 2] for rows in predictions)
    assert more.sum() > plain.sum()


def test_many_rows_are_fitted_on_a_sample(encoders, monkeypatch, tmp_path):
    monkeypatch.setenv("SIDEQUEST_CACHE", str(tmp_path))
    task = task_of("one", 60)
    monkeypatch.setattr(readout, "FIT_VALUES", 32 * 25)
    shapes = []

    def remember(x, loss, **options):
        shapes.append(x.shape)
        return logistic(x, loss, **options)

    monkeypatch.setattr(readout, "logistic", remember)
    family_of(encoders(), task, layers=1).read_out(task)
    assert shapes == [(25, 32)]


def test_large_images_are_averaged_down(encoders):
    task = task_of("image")
    large = np.repeat(np.repeat(task.train.columns["image"], 7, axis=2), 7, axis=3)
    rows = dataclasses.replace(task.train, columns={"image": large})
    big = dataclasses.replace(task, splits={"train": rows})
    family = family_of(None, big)
    assert family.features(big, rows).values.shape == (40, 28 * 28)
    small = family_of(None, task).features(task, task.train).values
    assert small.shape == (40, 144)
    assert small.max() <= 1
