"""The families over frozen states: AutoSeM's classifier against a plain reference, and results that depend on nothing else."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
import torch
from torch import nn

from sidequest.errors import SettingsError
from sidequest.model_settings import BiLstmSettings, model_settings
from sidequest.models import family as make_family
from sidequest.models import load
from sidequest.models.autosem import LayerMix, packing
from sidequest.models.base import IGNORE
from sidequest.tasks.examples import Examples
from sidequest.tasks.suite import Suite
from sidequest.tasks.task import Form, Objective, Task
from tests.helpers.sample_models import batch_of, make_task, stir

TASKS = {
    "one": make_task("one"),
    "pair": make_task("pair", Form.PAIR),
    "number": make_task("number", Form.PAIR, Objective.REGRESSION),
    "tags": make_task("tags", Form.TOKENS),
    "choice": make_task("choice", Form.CHOICES),
}
FORMS = {"bilstm": tuple(TASKS), "autosem": tuple(TASKS), "pooled": ("one", "pair", "number", "choice")}


def family_of(encoder, kind="bilstm", names=None, **settings):
    tasks = [TASKS[name] for name in names or FORMS[kind]]
    return make_family(
        Suite.of(tasks[0], tasks[1:]), model_settings({"kind": kind, "encoder": str(encoder), **settings})
    )


def test_layer_mix_is_elmos():
    mix = LayerMix(3)
    with torch.no_grad():
        mix.weights.copy_(torch.tensor([0.3, -1.0, 2.0]))
        mix.scale.fill_(1.7)
    states = torch.randn(5, 3, 4)
    s = torch.tensor([0.3, -1.0, 2.0]).exp()
    expected = 1.7 * sum(s[j] / s.sum() * states[:, j] for j in range(3))
    assert torch.allclose(mix(states), expected, atol=1e-6)


def test_packing_is_torchs_own():
    lengths = torch.tensor([2, 5, 1, 5, 3])
    flat = torch.randn(int(lengths.sum()), 4)
    padded = nn.utils.rnn.pad_sequence(flat.split(lengths.tolist()), batch_first=True)
    expected = nn.utils.rnn.pack_padded_sequence(padded, lengths, batch_first=True, enforce_sorted=False)
    order, batch_sizes, ranks = packing(lengths)
    assert torch.equal(flat[order], expected.data)
    assert torch.equal(batch_sizes, expected.batch_sizes)
    assert torch.equal(ranks, expected.unsorted_indices)


@pytest.mark.parametrize("depth", [1, 2])
def test_autosem_is_the_papers_classifier(depth, encoders):
    """Text by text, unpadded and unpacked, with the paper's formula written out."""
    family = family_of(encoders(), "autosem", hidden=8, depth=depth)
    model = stir(family.build(0))
    assert model.lstm.num_layers == depth
    states = family.states.of("tokens")

    def sentence(text):
        rows = states.rows([text])
        mixed = model.mix(torch.from_numpy(rows.gather(np.array([0]))).float())
        return model.lstm(mixed[:, None])[0][:, 0]  # [tokens, 16]

    with torch.no_grad():
        task = TASKS["pair"]
        found = model("pair", batch_of(family, task))
        rows = zip(task.train.columns["text"].to_pylist(), task.train.columns["text_b"].to_pylist(), strict=True)
        for (a, b), logits in zip(rows, found, strict=True):
            u, v = sentence(a).amax(0), sentence(b).amax(0)
            h = torch.cat([u, v, u * v, (u - v).abs()])
            assert torch.allclose(model.heads["task:pair"](h), logits, atol=1e-5)
        task = TASKS["one"]
        for text, logits in zip(
            task.train.columns["text"].to_pylist(), model("one", batch_of(family, task)), strict=True
        ):
            assert torch.allclose(model.heads["task:one"](sentence(text).amax(0)), logits, atol=1e-5)
        task = TASKS["choice"]
        rows = zip(task.train.columns["text"].to_pylist(), task.train.columns["choices"].to_pylist(), strict=True)
        for (a, choices), logits in zip(rows, model("choice", batch_of(family, task)), strict=True):
            u = sentence(a).amax(0)
            for choice, logit in zip(choices, logits, strict=False):
                v = sentence(choice).amax(0)
                score = model.heads["task:choice"](torch.cat([u, v, u * v, (u - v).abs()]))
                assert torch.allclose(score[0], logit, atol=1e-5)


@pytest.mark.parametrize("primary", ["tags", "pair"])
def test_bilstm_standardises_every_feature_by_the_primarys_train_rows(primary, encoders):
    others = [name for name in TASKS if name != primary]
    family = family_of(encoders(), "bilstm", [primary, *others], hidden=8)
    model = family.build(0)
    task = TASKS[primary]
    batch = family.inputs(task, task.train).collate(np.arange(len(task.train)))
    flat = batch["states"].flatten(1).double()
    if primary == "tags":  # a sentence without words has a state of zeros, which is no word's
        flat = flat[
            torch.cat([torch.arange(n) < w for n, w in zip(batch["lengths"], batch["words"].sum(1), strict=True)])
        ]
        standardised = (flat - flat.mean(0)) / flat.std(0, correction=0).clamp(min=1e-6)
        assert torch.allclose(model.standardised(flat.reshape(len(flat), 1, -1)).double(), standardised, atol=1e-3)
    again = family_of(encoders(), "bilstm", [primary], hidden=8).build(0)
    assert torch.equal(again.standardised.mean, model.standardised.mean)  # whatever other tasks there are
    assert not torch.equal(again.standardised.mean, torch.zeros_like(again.standardised.mean))


@pytest.mark.parametrize("kind", ["bilstm", "autosem", "pooled"])
def test_results_do_not_depend_on_padding_or_neighbours(kind, encoders):
    family = family_of(encoders(), kind)
    model = stir(family.build(0))
    for name in FORMS[kind]:
        task = TASKS[name]
        with torch.no_grad():
            together = model(name, batch_of(family, task))
            for row in range(len(task.train)):
                alone = model(name, batch_of(family, task, [row]))[0]
                among = together[row]
                if name in ("tags", "choice"):
                    among = among[: len(alone)]
                assert torch.allclose(alone, among, atol=1e-5)


@pytest.mark.parametrize("kind", ["bilstm", "autosem", "pooled"])
def test_a_model_does_not_depend_on_the_other_tasks(kind, encoders):
    alone = family_of(encoders(), kind, ("pair",)).build(4).state_dict()
    among = family_of(encoders(), kind, ("pair", "one", "choice")).build(4).state_dict()
    other = family_of(encoders(), kind, ("pair",)).build(5).state_dict()
    assert all(torch.equal(value, among[name]) for name, value in alone.items())
    assert any(not torch.equal(value, other[name]) for name, value in alone.items())


@pytest.mark.parametrize("kind", ["bilstm", "autosem", "pooled"])
def test_an_export_predicts_as_the_live_model(kind, encoders, tmp_path):
    family = family_of(encoders(), kind)
    model = stir(family.build(0))
    for name in FORMS[kind]:
        task = TASKS[name]
        batch = batch_of(family, task)
        with torch.no_grad():
            live = model.refined(name, model(name, batch), batch)
        family.export(model, task, tmp_path / name)
        found = load(tmp_path / name).predict(task.train)
        if name == "number":
            assert np.allclose(found.values, family.scales[name].restore(live.numpy()), atol=1e-4)
        elif name == "tags":
            expected = live.softmax(-1)[batch["words"]]
            assert np.allclose(np.concatenate(found.tag_probabilities), expected, atol=1e-5)
            assert [len(tags) for tags in found.tags] == [len(row) for row in task.train.columns["tokens"].to_pylist()]
        else:
            assert np.allclose(found.probabilities, live.softmax(-1), atol=1e-5)


@pytest.mark.parametrize("kind", ["bilstm", "autosem", "pooled"])
def test_every_parameter_learns(kind, encoders):
    family = family_of(encoders(), kind)
    model = family.build(0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(2):  # heads that start at zero pass a gradient on from the second step
        optimizer.zero_grad()
        for name in FORMS[kind]:
            model(name, batch_of(family, TASKS[name])).square().sum().backward()
        optimizer.step()
    assert all(parameter.grad is not None and parameter.grad.abs().sum() > 0 for parameter in model.parameters())


def test_tag_labels_lie_on_words(encoders):
    columns = {"tokens": pa.array([["the", "zebra", "sat"], [], ["cat"]])}
    target = pa.array([[2, 0, 1], [], [1]], type=pa.list_(pa.int64()))
    task = Task(
        "t", Objective.TAGGING, Form.TOKENS, {"train": Examples(columns, target, np.arange(3))}, ("a", "b", "c")
    )
    family = make_family(Suite.of(task), BiLstmSettings(encoder=str(encoders())))
    batch = batch_of(family, task)
    assert batch["labels"].tolist() == [[2, 0, 1], [IGNORE] * 3, [1, IGNORE, IGNORE]]
    assert torch.equal(batch["words"], batch["labels"] != IGNORE)
    assert family.build(0)("t", batch).shape == (3, 3, 3)


def test_lengths_count_tokens(encoders):
    family = family_of(encoders(), "bilstm")
    task = TASKS["pair"]
    words = [len(text.split()) for text in task.train.columns["text"].to_pylist()]
    words_b = [len(text.split()) for text in task.train.columns["text_b"].to_pylist()]
    expected = np.array(words) + np.array(words_b) + 4  # every text has two special tokens
    assert np.array_equal(family.inputs(task, task.train).lengths, expected)


def test_pooled_refuses_tagging_and_says_where_to_go(encoders):
    with pytest.raises(SettingsError, match=r"'tags'.*'tokens'.*hf or bilstm"):
        family_of(encoders(), "pooled", ("one", "tags"))


@pytest.mark.parametrize("kind", ["bilstm", "autosem", "pooled"])
def test_images_are_refused(kind, encoders):
    with pytest.raises(SettingsError, match="convnet"):
        make_family(Suite.of(make_task("i", Form.IMAGE)), model_settings({"kind": kind, "encoder": str(encoders())}))
