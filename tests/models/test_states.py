"""Cached states: what transformers computes, once per text, whoever asks; safe against interruption, damage and company."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch
import transformers

from sidequest.errors import SidequestError
from sidequest.models import states as states_module
from sidequest.models.encoders import resolve
from sidequest.models.states import FrozenEncoder, States
from sidequest.models.store import Store, item_key
from tests.helpers.sample_models import make_encoder, sentences

TEXTS = ["the cat sat", "a dog", "it is not very good", "zebra"]


@pytest.fixture
def encoder(encoders, tmp_path, monkeypatch):
    monkeypatch.setenv("SIDEQUEST_CACHE", str(tmp_path / "cache"))
    return resolve(str(encoders()))


@pytest.fixture
def encoded(monkeypatch):
    """How many texts the encoder has worked on, batch by batch."""
    counts: list[int] = []
    original = FrozenEncoder.encode

    def count(self, tokens, positions, view):
        counts.append(len(positions))
        return original(self, tokens, positions, view)

    monkeypatch.setattr(FrozenEncoder, "encode", count)
    return counts


def reference(encoder, text):
    """Hidden states of one text alone, [tokens, layers, width], by plain transformers."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(encoder.directory)
    model = transformers.AutoModel.from_pretrained(encoder.directory).eval()
    inputs = tokenizer(text, return_tensors="pt", is_split_into_words=not isinstance(text, str))
    with torch.no_grad():
        hidden = model(**inputs, output_hidden_states=True).hidden_states
    return torch.stack(hidden, dim=2)[0], inputs


def values(rows, i):
    return rows.gather(np.array([i])).astype(np.float32)


@pytest.mark.parametrize("layers", [None, 2])
def test_token_states_are_the_encoders_hidden_states(encoder, layers):
    rows = States(FrozenEncoder(encoder, layers), "tokens").rows(TEXTS)
    for i, text in enumerate(TEXTS):
        expected, _ = reference(encoder, text)
        assert np.allclose(values(rows, i), expected[:, -(layers or 4) :], atol=2e-3)  # float16


def test_pooled_vectors_are_the_mean_over_tokens(encoder):
    rows = States(FrozenEncoder(encoder), "pooled").rows(TEXTS)
    table, place = rows.table()
    for i, text in enumerate(TEXTS):
        expected, _ = reference(encoder, text)
        assert np.allclose(table[place[i]], expected[:, -1].mean(0), atol=1e-5)


def test_word_states_are_the_mean_over_sub_tokens(encoder):
    words = [["the", "zebra", "sat"], [], ["cat"]]
    rows = States(FrozenEncoder(encoder), "words").rows(words)
    assert rows.lengths.tolist() == [3, 1, 1]
    expected, inputs = reference(encoder, words[0])
    of_token = inputs.word_ids()
    for word in range(3):
        mean = expected[[i for i, w in enumerate(of_token) if w == word]].mean(0)
        assert np.allclose(values(rows, 0)[word], mean, atol=2e-3)
    assert not values(rows, 1).any(), "a sentence without words has one state of zeros"


def test_sentences_that_join_to_the_same_text_are_different(encoder):
    rows = States(FrozenEncoder(encoder), "words").rows([["a b"], ["a", "b"], ["1", "a"]])
    assert rows.lengths.tolist() == [1, 2, 2]


def test_only_missing_texts_are_computed(encoder, encoded):
    States(FrozenEncoder(encoder), "tokens").rows([*TEXTS, *TEXTS])
    assert sum(encoded) == len(TEXTS), "a repeated text is one text"
    again = FrozenEncoder(encoder)
    rows = States(again, "tokens").rows(TEXTS[::-1])
    assert sum(encoded) == len(TEXTS)
    assert "model" not in again.__dict__, "with a warm cache the encoder is not even loaded"
    expected, _ = reference(encoder, TEXTS[-1])
    assert np.allclose(values(rows, 0), expected, atol=2e-3)
    States(FrozenEncoder(encoder), "tokens").rows(["something new", *TEXTS])
    assert sum(encoded) == len(TEXTS) + 1


def test_what_makes_states_different_keeps_them_apart(encoder, encoded, tmp_path):
    other = resolve(str(make_encoder(tmp_path / "other", hidden_dropout_prob=0.25)))
    for frozen, view in [
        (FrozenEncoder(encoder), "tokens"),
        (FrozenEncoder(encoder, layers=2), "tokens"),
        (FrozenEncoder(encoder, max_length=8), "tokens"),
        (FrozenEncoder(encoder), "pooled"),
        (FrozenEncoder(other), "tokens"),
    ]:
        encoded.clear()
        States(frozen, view).rows(TEXTS)
        assert sum(encoded) == len(TEXTS)
    encoded.clear()
    copy = make_encoder(tmp_path / "copy")  # the same contents elsewhere
    States(FrozenEncoder(resolve(str(copy))), "tokens").rows(TEXTS)
    assert not encoded


def test_an_interruption_keeps_what_was_computed(encoder, encoded, monkeypatch):
    monkeypatch.setattr(states_module, "batch_tokens", lambda device: 40)
    texts = sentences(np.random.default_rng(0), 60)
    unique = len(set(texts))
    seen = []

    def stop(done, total):
        seen.append((done, total))
        if done > 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        States(FrozenEncoder(encoder), "tokens").rows(texts, stop)
    kept = sum(encoded)
    assert 20 < kept < unique
    assert seen[-1] == (kept, unique)
    encoded.clear()
    States(FrozenEncoder(encoder), "tokens").rows(texts)
    assert sum(encoded) == unique - kept


def test_progress_ends_at_the_total(encoder):
    calls = []
    States(FrozenEncoder(encoder), "pooled").rows(TEXTS, lambda done, total: calls.append((done, total)))
    assert calls[-1] == (len(TEXTS), len(TEXTS))


def test_a_full_disk_is_told_before_the_work(encoder, encoded, monkeypatch):
    monkeypatch.setattr(states_module.shutil, "disk_usage", lambda path: type("Usage", (), {"free": 10}))
    with pytest.raises(SidequestError, match=r"model\.layers=2.*SIDEQUEST_CACHE"):
        States(FrozenEncoder(encoder), "tokens").rows(TEXTS)
    assert not encoded


def test_more_layers_than_there_are(encoder):
    with pytest.raises(SidequestError, match="has 4 layers of states"):
        States(FrozenEncoder(encoder, layers=5), "tokens")


def test_passing_rows_leave_nothing_on_disk(encoder, tmp_path):
    States(FrozenEncoder(encoder), "pooled", persist=False).rows(TEXTS)
    assert not (tmp_path / "cache" / "states").exists()


def test_texts_come_back_in_the_order_asked(encoder):
    texts = sentences(np.random.default_rng(1), 50)
    rows = States(FrozenEncoder(encoder, layers=1), "tokens").rows(texts)
    tokenizer = transformers.AutoTokenizer.from_pretrained(encoder.directory)
    assert rows.lengths.tolist() == [len(tokenizer(text)["input_ids"]) for text in texts]


def keys_of(names):
    return np.array([item_key(name) for name in names], dtype="S16")


def write_items(directory, names):
    """Items whose values tell their name, one shard each."""
    store = Store(directory, (2,), np.float32)
    for name in names:
        store.append(keys_of([name]), np.array([2]), np.full((2, 2), float(name), dtype=np.float32))


WRITER = """
import sys
import numpy as np
from pathlib import Path
from sidequest.models.store import Store, item_key
store = Store(Path(sys.argv[1]), (2,), np.float32)
for name in sys.argv[2:]:
    key = np.array([item_key(name)], dtype="S16")
    store.append(key, np.array([2]), np.full((2, 2), float(name), dtype=np.float32))
"""


def test_two_processes_may_write_at_once(tmp_path):
    halves = [range(30), range(20, 50)]  # ten items twice
    workers = [subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path), *map(str, half)]) for half in halves]
    assert [worker.wait(60) for worker in workers] == [0, 0]
    names = [str(i) for i in range(50)]
    rows = Store(tmp_path, (2,), np.float32).rows(keys_of(names))
    assert rows.gather(np.arange(50))[::2, 0].tolist() == [float(name) for name in names]


def test_a_store_sees_what_others_wrote_since(tmp_path):
    early = Store(tmp_path, (2,), np.float32)
    write_items(tmp_path, ["1"])
    assert early.find(keys_of(["1"]))[0, 0] == -1
    early.refresh()
    assert early.find(keys_of(["1"]))[0, 0] >= 0


def test_damaged_shards_count_as_missing(tmp_path):
    write_items(tmp_path, ["1", "2", "3"])
    values_files = sorted(tmp_path.glob("*.npy"))
    values_files[0].write_bytes(values_files[0].read_bytes()[:100])
    values_files[1].unlink()
    store = Store(tmp_path, (2,), np.float32)
    assert (store.find(keys_of(["1", "2", "3"]))[:, 0] >= 0).sum() == 1


def test_values_without_an_index_are_not_seen(tmp_path):
    write_items(tmp_path, ["1"])
    next(tmp_path.glob("*.npz")).unlink()
    assert Store(tmp_path, (2,), np.float32).find(keys_of(["1"]))[0, 0] == -1


def test_one_shard_is_used_without_a_copy(tmp_path):
    store = Store(tmp_path, (3,), np.float32)
    store.append(keys_of(["a", "b"]), np.array([1, 1]), np.arange(6, dtype=np.float32).reshape(2, 3))
    table, place = store.rows(keys_of(["b", "a"])).table()
    assert isinstance(table, np.memmap)
    assert table[place].tolist() == [[3, 4, 5], [0, 1, 2]]
    store.append(keys_of(["c"]), np.array([1]), np.full((1, 3), 7, dtype=np.float32))
    table, place = store.rows(keys_of(["c", "b"])).table()
    assert table[place].tolist() == [[7, 7, 7], [3, 4, 5]]
