"""Linear heads on texts and on pairs encoded apart: where they start, and exports that predict the same."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
import transformers

from sidequest.model_settings import HfSettings
from sidequest.models import head_start, load
from sidequest.models.encoders import Encoder
from sidequest.models.hf import HfFamily
from sidequest.models.readout import read_out
from sidequest.models.saved import CARD
from sidequest.tasks.suite import Suite
from sidequest.tasks.task import Form, Objective, Task
from tests.helpers.marks import slow_but
from tests.helpers.sample_models import TEXT_ARCHITECTURES, batch_of, make_encoder, make_task, stir

TASKS = {
    "one": make_task("one", rows=24),
    "pair": make_task("pair", Form.PAIR),
    "number": make_task("number", Form.PAIR, Objective.REGRESSION),
    "size": make_task("size", Form.TEXT, Objective.REGRESSION),
    "keys": make_task("keys", Form.CHOICES),
    "tags": make_task("tags", Form.TOKENS),
}


def family_of(encoder, *names: str, **settings) -> HfFamily:
    tasks = [TASKS[name] for name in names]
    return HfFamily(Suite.of(tasks[0], tasks[1:]), HfSettings(encoder=str(encoder), **{"start": "readout"} | settings))


def logits_of(model, family: HfFamily, name: str) -> torch.Tensor:
    with torch.no_grad():
        return model.eval()(name, batch_of(family, TASKS[name]))


def predicted(family: HfFamily, model, name: str, directory) -> tuple[np.ndarray, np.ndarray]:
    """What an export answers through `sidequest.models.load`, and what the live model says."""
    live = logits_of(model, family, name)
    family.export(model, TASKS[name], directory)
    found = load(directory).predict(TASKS[name].train)
    if TASKS[name].objective == Objective.REGRESSION:
        return found.values, family.scales[name].restore(live.numpy())
    return found.probabilities, live.softmax(-1).numpy()


class TestMean:
    @pytest.mark.parametrize("architecture", slow_but(TEXT_ARCHITECTURES, "bert"))
    def test_plain_transformers_gives_the_same_logits_by_averaging_a_token_classifier(
        self, architecture, encoders, tmp_path
    ):
        for name in ("one", "number"):
            family = family_of(encoders(architecture), name, pooling="mean", pairing="cross")
            model = stir(family.build(0))
            live = logits_of(model, family, name)
            family.export(model, TASKS[name], tmp_path / name)
            card = json.loads((tmp_path / name / CARD).read_text(encoding="utf-8"))
            if architecture == "modernbert":  # its token classifier is more than a linear layer
                assert card["loads_with"] == "sidequest.models.load"
                continue
            assert card["loads_with"] == "transformers.AutoModelForTokenClassification"
            plain, report = transformers.AutoModelForTokenClassification.from_pretrained(
                tmp_path / name, output_loading_info=True
            )
            assert not any(report.values()), report
            tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / name)
            columns = [column.to_pylist() for column in TASKS[name].train.columns.values()]
            inputs = tokenizer(*columns, padding=True, truncation=True, max_length=128, return_tensors="pt")
            attended = inputs["attention_mask"][..., None]
            with torch.no_grad():
                averaged = (plain(**inputs).logits * attended).sum(1) / attended.sum(1)
            if name == "number":
                averaged = torch.from_numpy(averaged[:, 0].double().numpy() - family.scales[name].mean)
                live = live * family.scales[name].deviation
            assert live.std() > 0.01
            assert (averaged - live).abs().max() < 1e-4 * max(1.0, float(live.abs().max()))

    @pytest.mark.parametrize("architecture", slow_but(("bert", "modernbert"), "modernbert"))
    @pytest.mark.parametrize("name", slow_but(("one", "pair", "size", "keys"), "pair", "keys"))
    def test_an_export_loads_and_predicts_the_same(self, architecture, name, encoders, tmp_path):
        family = family_of(encoders(architecture), name, pooling="mean", pairing="cross", layers=2)
        found, live = predicted(family, stir(family.build(0)), name, tmp_path / "model")
        np.testing.assert_allclose(found, live, atol=1e-4)
        assert "sidequest predict" in (tmp_path / "model" / "README.md").read_text(encoding="utf-8")

    def test_a_text_is_the_mean_of_its_states_and_tags_stay_native(self, encoders):
        family = family_of(encoders(), "one", "tags", pooling="mean")
        model = stir(family.build(0))
        batch = batch_of(family, TASKS["one"])
        with torch.no_grad():
            states = model.base(batch["input_ids"], batch["attention_mask"]).last_hidden_state
            means = torch.stack([s[m.bool()].mean(0) for s, m in zip(states, batch["attention_mask"], strict=True)])
            head = model.heads["task:one"]
            expected = head.classifier((means - head.mean) / head.scale)
            weight, bias = head.folded()
        assert torch.allclose(logits_of(model, family, "one"), expected, atol=1e-5)
        assert torch.allclose(means @ weight.T + bias, expected, atol=1e-4)
        assert list(model.natives) == ["tags"]

    def test_auto_follows_the_encoder_s_own_pooling(self, tmp_path):
        encoder = make_encoder(tmp_path / "bert")
        assert family_of(encoder, "one").pooling == "native"
        plain = family_of(encoder, "one").fingerprint()
        (encoder / "1_Pooling").mkdir()
        (encoder / "modules.json").write_text(
            json.dumps([{"path": "", "type": "x.Transformer"}, {"path": "1_Pooling", "type": "x.Pooling"}])
        )
        for facts, pooling in (
            ({"pooling_mode_mean_tokens": True}, "mean"),
            ({"pooling_mode_cls_token": True}, "native"),
        ):
            (encoder / "1_Pooling" / "config.json").write_text(json.dumps(facts))
            assert family_of(encoder, "one").pooling == pooling
            assert (family_of(encoder, "one").fingerprint() == plain) == (pooling == "native")
        (encoder / "modules.json").write_text("nonsense")
        assert not Encoder("x", encoder).pools_by_mean()
        assert family_of(encoder, "one", pooling="mean").pooling == "mean"


class TestApart:
    @pytest.mark.parametrize("name", slow_but(("pair", "number", "keys"), "keys"))
    def test_each_text_is_encoded_by_itself(self, name, encoders):
        """Against a loop over single pairs and choices."""
        family = family_of(encoders(), name, pairing="bi")
        model = stir(family.build(0))
        task, found = TASKS[name], logits_of(model, family, name)
        head, columns = model.heads[f"task:{name}"], {n: c.to_pylist() for n, c in task.train.columns.items()}

        def vector(text: str) -> torch.Tensor:
            tokens = family.tokeniser(text, return_tensors="pt")
            return model.base(tokens["input_ids"], tokens["attention_mask"]).last_hidden_state[0].mean(0)

        with torch.no_grad():
            for row in range(len(task.train)):
                second = columns["choices"][row] if name == "keys" else [columns["text_b"][row]]
                u = vector(columns["text"][row])
                logits = []
                for v in map(vector, second):
                    cosine = torch.nn.functional.cosine_similarity(u, v, dim=0)
                    features = torch.cat([u, v, u * v, (u - v).abs(), cosine[None]])
                    logits.append(head.classifier((features - head.mean) / head.scale))
                expected = torch.cat(logits) if name == "keys" else logits[0]
                shown = found[row][: len(second)] if name == "keys" else found[row].reshape(-1)
                assert torch.allclose(shown, expected, atol=1e-4)

    @pytest.mark.parametrize("name", slow_but(("pair", "number", "keys"), "keys"))
    def test_an_export_predicts_the_same_and_says_that_it_needs_sidequest(self, name, encoders, tmp_path):
        family = family_of(encoders(), name, pairing="bi", pooling="native")
        found, live = predicted(family, stir(family.build(0)), name, tmp_path / "model")
        np.testing.assert_allclose(found, live, atol=1e-4)
        card = json.loads((tmp_path / "model" / CARD).read_text(encoding="utf-8"))
        assert card["loads_with"] == "sidequest.models.load"
        assert card["model"]["pairing"] == "bi"
        assert "no class for this model" in (tmp_path / "model" / "README.md").read_text(encoding="utf-8")
        transformers.AutoModel.from_pretrained(tmp_path / "model" / "encoder")

    def test_a_batch_says_which_row_a_text_belongs_to(self, encoders):
        batch = batch_of(family_of(encoders(), "keys", pairing="bi"), TASKS["keys"], [3, 1])
        counts = batch["choices"].tolist()
        assert batch["text_rows"].tolist() == [0, 1, *[0] * counts[0], *[1] * counts[1]]
        assert batch["first"].tolist() == [*[0] * counts[0], *[1] * counts[1]]
        assert batch["second"].tolist() == list(range(2, 2 + sum(counts)))
        assert len(batch["input_ids"]) == 2 + sum(counts)


def units(family: HfFamily, model, name: str) -> np.ndarray:
    """Logits of every row, word or choice, [units, outputs]."""
    logits, batch = logits_of(model, family, name), batch_of(family, TASKS[name])
    if name == "tags":
        return logits[batch["words"]].numpy()
    if name == "keys":
        rows = zip(logits, batch["choices"].tolist(), strict=True)
        return torch.cat([row[:count] for row, count in rows])[:, None].numpy()
    return logits.reshape(len(logits), -1).numpy()


HEADS = {
    "native": {"pooling": "native", "pairing": "cross"},
    "mean": {"pooling": "mean", "pairing": "cross"},
    "apart": {"pooling": "mean", "pairing": "bi"},
}


class TestStart:
    @pytest.mark.parametrize("head", HEADS)
    @pytest.mark.parametrize("name", slow_but(("one", "pair", "number", "keys", "tags"), "pair", "tags"))
    def test_a_head_starts_at_the_read_out_of_what_reaches_its_last_layer(self, head, name, encoders):
        """The logits are those of a read-out that is fitted here on what reaches a head that starts at random."""
        family = family_of(encoders(), name, **HEADS[head])
        model, task = family.build(0), TASKS[name]
        random = family_of(encoders(), name, start="random", **HEADS[head]).build(0)
        features_of = head_start.layer_inputs(random, family.inputs)
        if family.apart(task):  # the cosine of two vectors counts as much as all of their products
            inputs, widths = features_of, family.features(task, task.train).widths
            features_of = lambda *rows: replace(inputs(*rows), widths=widths)  # noqa: E731
        standardise, factor = family.scales[name].standardise, head_start.RIDGE_FACTOR
        solution = read_out(task, features_of, standardise, None, persist=False, ridge_factor=factor)
        logits, _ = solution.logits(task.train)
        np.testing.assert_allclose(units(family, model, name), logits, atol=1e-3)
        assert np.abs(units(family, random, name) - logits).max() > 1e-2

    @pytest.mark.parametrize("name", ["one", "keys", "tags"])
    def test_layer_inputs_do_not_depend_on_batching(self, name, encoders, monkeypatch):
        family = family_of(encoders(), name, pooling="native", start="random")
        features_of = head_start.layer_inputs(family.build(0), family.inputs)
        together = features_of(TASKS[name], TASKS[name].train)
        monkeypatch.setattr(head_start, "batch_tokens", lambda device: 1)
        alone = features_of(TASKS[name], TASKS[name].train)
        np.testing.assert_allclose(together.values, alone.values, atol=1e-5)
        if together.counts is not None:
            assert together.counts.tolist() == alone.counts.tolist()

    def test_a_start_is_computed_once_and_large_tasks_give_a_sample(self, encoders, monkeypatch):
        asked: list[int] = []
        wrapped = head_start.layer_inputs

        def counted(model, inputs_of):
            features_of = wrapped(model, inputs_of)
            return lambda task, examples: asked.append(len(examples)) or features_of(task, examples)

        monkeypatch.setattr("sidequest.models.hf.layer_inputs", counted)
        monkeypatch.setattr(head_start, "START_ROWS", 10)
        family = family_of(encoders(), "one", max_length=77)
        first = family.build(0)
        assert set(asked) == {10}
        asked.clear()
        again = family_of(encoders(), "one", max_length=77).build(1)
        assert not asked
        assert all(torch.equal(a, b) for a, b in zip(first.parameters(), again.parameters(), strict=True))

    def test_a_step_that_suits_an_encoder_leaves_a_head_near_its_solution(self, encoders):
        """Of one step of Adam on the head alone, against the same solution in weights that are not scaled."""
        changes = {}
        for scaled in (True, False):
            family = family_of(encoders(), "pair", pairing="bi", dropout=0.0)
            model = family.build(0)
            head = model.heads["task:pair"]
            width = head.classifier.in_features
            if not scaled:
                with torch.no_grad():
                    head.scale /= width**0.5
                    head.classifier.weight /= width**0.5
            batch = batch_of(family, TASKS["pair"])
            before = model("pair", batch)
            optimizer = torch.optim.Adam(head.parameters(), lr=1e-3)
            torch.nn.functional.cross_entropy(before, batch["labels"]).backward()
            optimizer.step()
            changes[scaled] = float((model("pair", batch) - before).detach().abs().max())
        assert changes[True] < 1e-3 * (1 + width**0.5) * 3 < changes[False]

    def test_a_regression_starts_where_train_rows_are_not_known_by_heart(self, encoders):
        family, task = family_of(encoders(), "number", pairing="bi"), TASKS["number"]
        standardise, target = family.scales["number"].standardise, np.asarray(TASKS["number"].train.target)
        plain = read_out(task, family.features, standardise, None, persist=False)
        started = units(family, family.build(0), "number")
        errors = [
            float(np.mean((found - standardise(target)) ** 2))
            for found in (plain.logits(task.train)[0][:, 0], started.reshape(-1))
        ]
        assert 1.01 * errors[0] < errors[1]

    def test_a_start_needs_rows(self, encoders):
        empty = Task(
            "one", Objective.CLASSIFICATION, Form.TEXT, {"train": TASKS["one"].train.take(np.arange(0))}, ("a", "b")
        )
        HfFamily(Suite.of(empty), HfSettings(encoder=str(encoders()))).build(0)


@pytest.mark.parametrize("name", slow_but(("one", "number", "tags"), "tags"))
def test_features_that_have_vanished_send_no_gradients(name, encoders, tmp_path, monkeypatch):
    """Some of MiniLM's normalisation weights are 1e-33: dividing by such a spread leaves, after clipping, nothing to learn."""
    encoder = transformers.AutoModel.from_pretrained(encoders())
    with torch.no_grad():
        normalisation = encoder.encoder.layer[-1].output.LayerNorm
        normalisation.weight[0], normalisation.bias[0] = 1e-33, 0.0
    encoder.save_pretrained(tmp_path)
    transformers.AutoTokenizer.from_pretrained(encoders()).save_pretrained(tmp_path)

    def largest_gradient() -> float:
        family = family_of(tmp_path, name, pooling="mean")
        model = family.build(0)
        model(name, batch_of(family, TASKS[name])).sum().backward()
        return max(float(p.grad.abs().max()) for p in model.parameters() if p.grad is not None)

    assert largest_gradient() < 1e6
    monkeypatch.setattr(head_start, "VANISHING", 0.0)
    assert largest_gradient() > 1e20
