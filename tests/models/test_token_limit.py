"""How many rows a model reads only in part: counted by the encoder's own tokeniser, without torch."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from sidequest.model_settings import HfSettings, PooledSettings, model_settings
from sidequest.models import token_limit as module
from sidequest.models.encoders import load_tokeniser, resolve
from sidequest.models.hf import HfFamily
from sidequest.models.local_encoders import local_encoder
from sidequest.models.token_limit import TokenLimit, section_limit, token_limit
from sidequest.tasks import check_suite, make_task
from sidequest.tasks.lengths import WordLimit
from sidequest.tasks.suite import Suite
from tests.helpers.sample_models import sentences


@pytest.fixture
def suite():
    """Texts, pairs and choices between one and sixty words."""
    rng = np.random.default_rng(0)
    label = rng.integers(0, 2, 80).tolist()
    texts, others = sentences(rng, 80, 60), sentences(rng, 80, 60)
    choices = [sentences(rng, int(n), 40) for n in rng.integers(2, 4, 80)]
    return Suite.of(
        make_task("text", "classification", {"text": texts, "label": label}),
        [
            make_task("pair", "classification", {"text": texts, "text_b": others, "label": label}),
            make_task("choice", "multiple-choice", {"text": texts, "choices": choices, "label": label}),
        ],
    )


def by_tokenising(suite, encoder, name, most, together):
    """One row after another, with transformers' tokeniser."""
    tokeniser = load_tokeniser(resolve(str(encoder)))
    long = []
    for row, columns in enumerate(zip(*(c.to_pylist() for c in suite[name].train.columns.values()), strict=True)):
        first, rest = columns[0], columns[1:]
        others = [None] if not rest else rest if isinstance(rest[0], str) else rest[0]
        given = [(first, other) for other in others]
        if not together:
            given = [(text, None) for pair in given for text in pair if text is not None]
        if any(len(tokeniser(*pair)["input_ids"]) > most for pair in given):
            long.append(row)
    return long


@pytest.mark.parametrize(
    ("architecture", "most"), [("bert", 40), ("roberta", 150)]
)  # every byte is a token of the second
@pytest.mark.parametrize(
    ("model", "together"),
    [({"kind": "hf"}, True), ({"kind": "hf", "pairing": "bi"}, False), ({"kind": "pooled"}, False)],
)
def test_counts_are_those_of_the_tokeniser(architecture, most, model, together, suite, encoders):
    encoder = encoders(architecture)
    limit = token_limit(model_settings({**model, "encoder": str(encoder), "max_length": most}))
    assert isinstance(limit, TokenLimit)
    for name, task in suite.tasks.items():
        rows = limit.long_rows(task, task.train)
        expected = by_tokenising(suite, encoder, name, most, together)
        assert rows.positions.tolist() == expected
        assert (rows.number, rows.how) == (len(expected), "")
        assert 0 < len(expected) < len(task.train)


def test_pairs_are_counted_as_the_default_reads_them(suite, encoders, tmp_path):
    sentence = tmp_path / "sentence-encoder"
    shutil.copytree(encoders(), sentence)
    (sentence / "modules.json").write_text('[{"type": "sentence_transformers.models.Pooling", "path": "1_Pooling"}]')
    (sentence / "1_Pooling").mkdir()
    (sentence / "1_Pooling" / "config.json").write_text('{"pooling_mode_mean_tokens": true}')
    task, counted = suite["pair"], {}
    for encoder in (encoders(), sentence):
        settings = HfSettings(encoder=str(encoder), max_length=40)
        limit = token_limit(settings)
        assert isinstance(limit, TokenLimit)
        assert limit.together is not HfFamily(Suite.of(task), settings).apart(task)
        counted[encoder] = limit.long_rows(task, task.train).number
    assert counted[sentence] < counted[encoders()]


def test_what_is_counted_is_what_is_cut(suite, encoders):
    settings = HfSettings(encoder=str(encoders()), max_length=30)
    task = suite["text"]
    family = HfFamily(Suite.of(task), settings)
    uncut = HfFamily(Suite.of(task), settings.model_copy(update={"max_length": 150}))
    lengths, whole = (each.inputs(task, task.train).lengths for each in (family, uncut))
    counted = token_limit(settings).long_rows(task, task.train)
    assert counted.positions.tolist() == np.flatnonzero(lengths < whole).tolist()


def test_a_long_beginning_is_enough_and_a_short_one_is_not(encoders, monkeypatch):
    monkeypatch.setattr(module, "LETTERS", 1)
    texts = ["cat " * 20, "cat " * 7, "ca" * 30, "it " + " " * 200 + "is"]
    task = make_task("t", "classification", {"text": texts * 4, "label": [0, 1] * 8})
    limit = token_limit(PooledSettings(encoder=str(encoders()), max_length=10))
    found = [task.train.columns["text"][i].as_py() for i in limit.long_rows(task, task.train).positions]
    assert set(found) == {texts[0], texts[2]}


def test_large_splits_are_estimated(encoders, monkeypatch):
    monkeypatch.setattr(module, "COUNTED", 200)
    texts = ["cat " * (30 if i % 4 == 0 else 3) + f"dog {i} " + "a" * 40 for i in range(2000)]
    task = make_task("t", "classification", {"text": texts, "label": [0, 1] * 1000})
    limit = token_limit(PooledSettings(encoder=str(encoders()), max_length=60))
    rows = limit.long_rows(task, task.train)
    assert rows.how == "about"
    assert rows.number == pytest.approx(len(task.train) / 4, rel=0.25)


def test_without_a_tokeniser_words_are_counted(suite, tmp_path):
    for encoder in ("nobody/has-this", str(tmp_path), "not a name at all"):
        limit = token_limit(HfSettings(encoder=encoder, max_length=40))
        assert limit == WordLimit(40)
    words = np.array([len(text.split()) for text in suite["text"].train.columns["text"].to_pylist()])
    rows = WordLimit(40).long_rows(suite["text"], suite["text"].train)
    assert (rows.number, rows.how) == (int((words > 38).sum()), "at least")
    assert local_encoder("nobody/has-this") is None


def test_sentences_to_tag_are_never_cut():
    tokens = pa.array([["a"] * 300, ["b"] * 3] * 4)
    tags = pa.array([["x"] * 300, ["y"] * 3] * 4)
    task = make_task("t", "tagging", {"tokens": tokens, "tags": tags})
    assert WordLimit(40).long_rows(task, task.train).number == 0


def test_check_says_how_many(suite, encoders):
    model = {"kind": "hf", "encoder": str(encoders()), "max_length": 40}
    whole = Suite.of(suite["text"], defaults={"model": model})
    number = sum(
        len(section_limit(whole, model).long_rows(suite["text"], rows).positions)
        for rows in suite["text"].splits.values()
    )
    said = [problem.message for problem in check_suite(whole, limit=section_limit).warnings]
    assert f"{number} of 80 texts are longer than the 40 tokens that the model reads and would be cut" in " ".join(said)
    roomy = Suite.of(suite["text"], defaults={"model": model | {"max_length": 150}})
    assert not any("would be cut" in problem.message for problem in check_suite(roomy, limit=section_limit).warnings)


def test_check_needs_no_torch(tmp_path, encoders):
    rows = [{"text": "cat " * (50 if i % 2 else 3) + str(i), "label": i % 2} for i in range(40)]
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, rows)))
    spec = {"objective": "classification", "train": "t.jsonl", "text": "text", "label": "label"}
    model = {"kind": "hf", "encoder": str(encoders()), "max_length": 40}
    (tmp_path / "s.yaml").write_text(json.dumps({"primary": "t", "tasks": {"t": spec}, "model": model}))
    code = (
        "import sys; from sidequest.tasks import check_suite; from sidequest.models.token_limit import section_limit\n"
        f"report = check_suite({str(tmp_path / 's.yaml')!r}, limit=section_limit)\n"
        "assert any('20 of 40 texts' in p.message for p in report.warnings), report.problems\n"
        "assert not {'torch', 'transformers'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
