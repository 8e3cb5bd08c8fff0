"""Predictions from exports: in the order of the rows, by name, alone and averaged."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from sidequest.errors import Damaged, SettingsError, SidequestError
from sidequest.model_settings import PooledSettings, model_settings
from sidequest.models import family as make_family
from sidequest.models import load
from sidequest.models.predictor import Predictor
from sidequest.tasks.examples import Examples
from sidequest.tasks.metrics import compute_all
from sidequest.tasks.suite import Suite
from sidequest.tasks.task import Form, Objective
from tests.helpers.sample_models import batch_of, make_task, stir


def edit_card(directory, **changes):
    path = directory / "sidequest.json"
    card = json.loads(path.read_text()) | changes
    card.pop("sha256")  # its seal: what is changed on purpose has none
    path.write_text(json.dumps(card))


def exported(tmp_path, task, encoder, seeds=(0,), kind="hf"):
    """Directories of differently stirred models of one task, and what each says live."""
    family = make_family(Suite.of(task), model_settings({"kind": kind, "encoder": str(encoder)}))
    out = []
    for seed in seeds:
        model = stir(family.build(seed), seed)
        family.export(model, task, tmp_path / f"m{seed}")
        with torch.no_grad():
            out.append((tmp_path / f"m{seed}", model(task.name, batch_of(family, task))))
    return out


@pytest.mark.parametrize("form", [Form.PAIR, Form.CHOICES])
@pytest.mark.parametrize("batch_size", [1, 5, 100])
def test_rows_come_back_in_their_order(form, batch_size, encoders, tmp_path):
    task = make_task("t", form)
    ((directory, live),) = exported(tmp_path, task, encoders())
    found = load(directory).predict(task.train, batch_size=batch_size)
    assert np.allclose(found.probabilities, live.softmax(-1), atol=1e-5)
    assert np.array_equal(found.indices, live.argmax(-1))


def test_rows_are_plain_and_by_name(encoders, tmp_path):
    task = make_task("t")
    ((directory, live),) = exported(tmp_path, task, encoders())
    rows = load(directory).predict(task.train).to_rows()
    assert rows[0]["label"] == task.labels[int(live[0].argmax())]
    assert set(rows[0]["probabilities"]) == set(task.labels)
    assert sum(rows[0]["probabilities"].values()) == pytest.approx(1)
    json.dumps(rows)


@pytest.mark.parametrize(
    ("form", "objective", "keys"),
    [
        (Form.PAIR, Objective.REGRESSION, {"value"}),
        (Form.TOKENS, Objective.TAGGING, {"tags", "probabilities"}),
        (Form.CHOICES, Objective.CHOICE, {"choice", "probabilities"}),
        (Form.TEXT, Objective.MULTILABEL, {"labels", "probabilities"}),
    ],
)
def test_every_objective_has_its_row(form, objective, keys, encoders, tmp_path):
    task = make_task("t", form, objective)
    ((directory, _),) = exported(tmp_path, task, encoders())
    rows = load(directory).predict(task.train).to_rows()
    assert all(set(row) == keys for row in rows)
    json.dumps(rows)
    if objective == Objective.TAGGING:
        words = task.train.columns["tokens"].to_pylist()
        assert [len(row["tags"]) for row in rows] == [len(sentence) for sentence in words]
        assert {tag for row in rows for tag in row["tags"]} <= set(task.labels)


@pytest.mark.parametrize("kind", ["hf", "bilstm", "pooled"])
def test_each_label_has_a_probability_of_its_own(kind, encoders, tmp_path):
    task = make_task("t", Form.TEXT, Objective.MULTILABEL, rows=40)
    ((directory, live),) = exported(tmp_path, task, encoders(), kind=kind)
    told = load(directory).predict(task.train)
    assert np.allclose(told.probabilities, live.sigmoid(), atol=1e-5)
    assert not np.allclose(told.probabilities.sum(axis=1), 1, atol=0.1)
    assert np.array_equal(told.marks, live > 0)
    names = [[task.labels[i] for i in np.flatnonzero(row)] for row in (live > 0).numpy()]
    assert [row["labels"] for row in told.to_rows()] == names


def test_plain_transformers_reads_a_multi_label_export_as_such(encoders, tmp_path):
    import transformers

    task = make_task("t", Form.TEXT, Objective.MULTILABEL)
    ((directory, live),) = exported(tmp_path, task, encoders())
    config = transformers.AutoConfig.from_pretrained(directory)
    assert config.problem_type == "multi_label_classification"
    pipe = transformers.pipeline("text-classification", str(directory), top_k=None, device="cpu")
    said = pipe(task.train.columns["text"].to_pylist())
    scores = [{entry["label"]: entry["score"] for entry in row} for row in said]
    for row, expected in zip(scores, live.sigmoid().tolist(), strict=True):
        assert row == pytest.approx(dict(zip(task.labels, expected, strict=True)), abs=1e-4)


def test_the_target_is_not_looked_at(encoders, tmp_path):
    task = make_task("t")
    ((directory, _),) = exported(tmp_path, task, encoders())
    predictor = load(directory)
    blind = Examples(task.train.columns, None, task.train.ids)
    assert np.array_equal(predictor.predict(blind).probabilities, predictor.predict(task.train).probabilities)
    assert predictor.predict(blind.take(np.array([], dtype=np.int64))).to_rows() == []


def test_tags_have_probabilities_and_scores_are_those_of_the_metrics(encoders, tmp_path):
    for form, objective in ((Form.TOKENS, Objective.TAGGING), (Form.TEXT, Objective.MULTILABEL), (Form.PAIR, None)):
        metrics = {Objective.TAGGING: ("token_accuracy",), Objective.MULTILABEL: ("subset_accuracy", "micro_f1")}
        task = replace(make_task("t", form, objective, rows=30), metrics=metrics.get(objective, ("accuracy",)))
        ((directory, _),) = exported(tmp_path / form, task, encoders())
        said = load(directory).predict(task.train, batch_size=7)
        assert len(said) == 30
        expected = compute_all(task.metrics, said.answers, task.train.target, task.labels)
        assert said.scores(task.train.target) == expected
        some = np.array([3, 4, 20])
        few = task.train.take(some)
        assert said.scores(few.target, some) == compute_all(
            task.metrics, load(directory).predict(few).answers, few.target, task.labels
        )
        rows, plain = said.to_rows(), said.to_rows(probabilities=False)
        assert all("probabilities" in row for row in rows)
        assert not any("probabilities" in row for row in plain)
        if objective == Objective.TAGGING:
            for row in rows:
                best = [max(word, key=word.get) for word in row["probabilities"]]
                assert best == row["tags"]


def test_rows_in_memory_need_no_ceremony(encoders, tmp_path):
    task = replace(make_task("t", Form.PAIR), inputs={"columns": {"text": "premise", "text_b": "claim"}})
    ((directory, live),) = exported(tmp_path, task, encoders())
    predictor = load(directory)
    first, second = (task.train.columns[name].to_pylist() for name in ("text", "text_b"))
    for names in (("premise", "claim"), ("text", "text_b")):
        said = predictor.predict(dict(zip(names, (first, second), strict=True)))
        assert np.allclose(said.probabilities, live.softmax(-1), atol=1e-5)
    with pytest.raises(SidequestError, match=r"no column 'claim'"):
        predictor.predict({"premise": first})
    with pytest.raises(SidequestError, match="found list"):
        predictor.predict(first)


def test_an_ensemble_averages_probabilities(encoders, tmp_path):
    task = make_task("t", Form.CHOICES)
    models = exported(tmp_path, task, encoders(), seeds=(0, 1, 2))
    expected = torch.stack([live.softmax(-1) for _, live in models]).mean(0)
    both = Predictor.ensemble([load(directory) for directory, _ in models])
    assert np.allclose(both.predict(task.train).probabilities, expected, atol=1e-5)


def test_an_ensemble_averages_values_in_original_units_and_tags(encoders, tmp_path):
    for form, objective in ((Form.TEXT, Objective.REGRESSION), (Form.TOKENS, Objective.TAGGING)):
        task = make_task("t", form, objective)
        members = [load(directory) for directory, _ in exported(tmp_path / form, task, encoders(), seeds=(0, 1))]
        found = Predictor.ensemble(members).predict(task.train)
        single = [member.predict(task.train) for member in members]
        if objective == Objective.REGRESSION:
            assert np.allclose(found.values, np.mean([one.values for one in single], axis=0))
        else:
            for both, one, two in zip(
                found.tag_probabilities, single[0].tag_probabilities, single[1].tag_probabilities, strict=True
            ):
                assert np.allclose(both, (one + two) / 2)


def test_passing_rows_leave_nothing_in_the_cache(encoders, tmp_path, monkeypatch):
    ((directory, _),) = exported(tmp_path, make_task("t"), encoders(), kind="pooled")
    monkeypatch.setenv("SIDEQUEST_CACHE", str(tmp_path / "cache"))
    load(directory).predict(make_task("t").train)
    assert not list((tmp_path / "cache").rglob("*.np?"))


def test_kinds_of_models_may_mix_in_an_ensemble(encoders, tmp_path):
    task = make_task("t")
    ((first, a),) = exported(tmp_path / "hf", task, encoders())
    ((second, b),) = exported(tmp_path / "pooled", task, encoders(), kind="pooled")
    found = Predictor.ensemble([load(first), load(second)]).predict(task.train)
    assert np.allclose(found.probabilities, (a.softmax(-1) + b.softmax(-1)) / 2, atol=1e-5)


def test_different_tasks_make_no_ensemble(encoders, tmp_path):
    ((first, _),) = exported(tmp_path / "a", make_task("t"), encoders())
    ((second, _),) = exported(tmp_path / "b", make_task("u", Form.TEXT, Objective.REGRESSION), encoders())
    with pytest.raises(SettingsError, match=r"one task: 't' \(classification.*'u' \(regression"):
        Predictor.ensemble([load(first), load(second)])
    with pytest.raises(SettingsError, match="at least one"):
        Predictor.ensemble([])


def test_a_directory_that_is_no_export_is_told(tmp_path):
    with pytest.raises(SettingsError, match=r"no sidequest\.json"):
        load(tmp_path)
    (tmp_path / "sidequest.json").write_text('{"format": 99}')
    with pytest.raises(SettingsError, match="reads cards of version 2 and format 1, found 99"):
        load(tmp_path)


@pytest.mark.parametrize("kind", ["hf", "pooled"])
def test_damaged_weights_are_told(kind, encoders, tmp_path):
    ((directory, _),) = exported(tmp_path, make_task("t"), encoders(), kind=kind)
    weights = directory / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-20])
    with pytest.raises(Damaged, match=r"model\.safetensors: is damaged"):
        load(directory)
    edit_card(directory, weights="", files={})  # as sidequest 0.1 wrote it
    with pytest.raises(SettingsError, match="weights cannot be read"):
        load(directory)
    weights.unlink()
    with pytest.raises(SettingsError, match=str(directory)):
        load(directory)


def test_a_flipped_bit_in_the_weights_is_told(encoders, tmp_path):
    ((directory, _),) = exported(tmp_path, make_task("t"), encoders(), kind="pooled")
    weights = directory / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-3] ^= 1
    weights.write_bytes(content)
    with pytest.raises(Damaged, match=r"model\.safetensors: is damaged"):
        load(directory)


def test_weights_that_are_not_finite_are_told(encoders, tmp_path):
    task = make_task("t")
    family = make_family(Suite.of(task), PooledSettings(encoder=str(encoders())))
    model = family.build(0)
    with torch.no_grad():
        next(model.parameters())[0] = torch.nan
    family.export(model, task, tmp_path / "m")
    with pytest.raises(SettingsError, match="weights are not finite"):
        load(tmp_path / "m")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"task": None}, "task"),
        ({"task": {"name": "t"}}, r"task\.objective"),
        ({"model": {"kind": "magic"}}, r"model: .*kind"),
        ({"target": {"mean": "NaN", "deviation": 1}}, r"target\.mean"),
        (
            {"calibration": {"temperature": -1, "split": "select", "items": 1, "loss": [0, 0], "error": [0, 0]}},
            "temperature",
        ),
        ({"version": 7}, "has version 7"),
        ({"surprise": 1}, "surprise"),
    ],
)
def test_a_card_with_odd_fields_is_told(change, says, encoders, tmp_path):
    ((directory, _),) = exported(tmp_path, make_task("t"), encoders(), kind="pooled")
    edit_card(directory, **change)
    with pytest.raises(SettingsError, match=rf"sidequest\.json: .*{says}"):
        load(directory)


def test_a_model_of_the_first_format_is_still_read(encoders, tmp_path):
    task = make_task("t")
    ((directory, live),) = exported(tmp_path, task, encoders(), kind="pooled")
    card = json.loads((directory / "sidequest.json").read_text())
    for key in ("version", "weights", "calibration", "tasks", "sha256"):
        card.pop(key)
    card["task"].pop("inputs")
    (directory / "sidequest.json").write_text(json.dumps(card | {"format": 1}))
    (directory / "reading.json").write_text(json.dumps({"columns": {"text": "body"}, "reading": {"format": "tsv"}}))
    predictor = load(directory)
    assert predictor.task.inputs["columns"] == {"text": "body"}
    assert np.allclose(predictor.predict(task.train).probabilities, live.softmax(-1), atol=1e-5)
    (directory / "reading.json").write_text("{")
    with pytest.raises(SidequestError, match=r"reading\.json: is damaged: it is not JSON"):
        load(directory)


def test_exports_name_no_place_on_this_machine(encoders, tmp_path):
    for kind in ("hf", "pooled"):
        ((directory, _),) = exported(tmp_path / kind, make_task("t"), encoders(), kind=kind)
        card = (directory / "sidequest.json").read_text()
        assert str(encoders()) not in card
        assert str(tmp_path) not in card
        moved = tmp_path / f"moved-{kind}"
        directory.rename(moved)
        load(moved).predict(make_task("t").train)


def test_the_directory_around_a_model_is_refused_with_the_models_own(tmp_path):
    (tmp_path / "run" / "model").mkdir(parents=True)
    with pytest.raises(SettingsError, match=r"it has no sidequest\.json$"):
        load(tmp_path / "run")
    (tmp_path / "run" / "model" / "sidequest.json").write_text("{}")
    with pytest.raises(SettingsError, match=r"did you mean .*run/model\?$"):
        load(tmp_path / "run")
