"""Head importances by content: found again when nothing that decides them changed, and only then."""

import threading
import time
from contextlib import nullcontext

import numpy as np
import pytest

from sidequest.learning.meter import Meter
from sidequest.learning.protocol import HeadImportance, Warmup
from sidequest.learning.torch.powers import PowerStores
from sidequest.search.head_cache import HeadStore
from tests.helpers.tiny_suites import task, tiny_setup

WARMUP = Warmup(epochs=1)


def rows_of(values, ids=None, chunk=3):
    """A computation that gives these rows in chunks and counts what it did."""

    def compute(meter):
        meter.of("t").examples += len(values)
        for start in range(0, len(values), chunk):
            yield np.arange(start, min(start + chunk, len(values))), values[start : start + chunk]

    return compute


def refuse(meter):
    raise AssertionError("computed again")


def test_what_was_stored_is_found_with_its_cost(tmp_path):
    values = np.random.default_rng(0).random((10, 2, 3), dtype=np.float32)
    first = HeadStore(lambda task: "facts", tmp_path)
    stored = first.of("t", WARMUP, rows_of(values))
    again = HeadStore(lambda task: "facts", tmp_path)
    found = again.of("t", WARMUP, refuse)
    for record in (stored, found):
        np.testing.assert_allclose(record.total(), values.sum(0, dtype=np.float64))
        ids, rows = zip(*record.rows(), strict=True)
        np.testing.assert_array_equal(np.concatenate(ids), np.arange(10))
        np.testing.assert_array_equal(np.concatenate(rows), values)
        assert record.meter.tasks["t"].examples == 10
    assert first.summary() == {"reused": [], "computed": ["t"]}
    assert again.summary() == {"reused": ["t"], "computed": []}
    again.of("t", WARMUP, refuse)
    assert again.summary()["reused"] == ["t"]


def test_rows_are_read_in_chunks(tmp_path, monkeypatch):
    monkeypatch.setattr("sidequest.search.head_cache.CHUNK", 4)
    record = HeadStore(str, tmp_path).of("t", WARMUP, rows_of(np.ones((10, 2, 3), np.float32)))
    assert [len(ids) for ids, _ in record.rows()] == [4, 4, 2]


def test_any_difference_is_another_entry(tmp_path):
    facts = {"a": 1}
    cache = HeadStore(lambda task: {"task": task, **facts}, tmp_path)
    values = np.ones((1, 1, 1), np.float32)
    places = {cache.of("t", WARMUP, rows_of(values)).directory}
    places.add(cache.of("u", WARMUP, rows_of(values)).directory)
    places.add(cache.of("t", Warmup(epochs=2), rows_of(values)).directory)
    places.add(cache.of("t", Warmup(epochs=1, seed=1), rows_of(values)).directory)
    facts["a"] = 2
    places.add(cache.of("t", WARMUP, rows_of(values)).directory)
    assert len(places) == 5


def test_a_computation_that_fails_leaves_nothing(tmp_path):
    def breaks(meter):
        yield np.arange(1), np.ones((1, 1, 1), np.float32)
        raise KeyboardInterrupt

    cache = HeadStore(str, tmp_path)
    with pytest.raises(KeyboardInterrupt):
        cache.of("t", WARMUP, breaks)
    assert [path for path in tmp_path.rglob("*") if path.is_file() and path.suffix != ".lock"] == []
    cache.of("t", WARMUP, rows_of(np.ones((1, 1, 1), np.float32)))


def test_the_slower_of_two_processes_takes_what_the_faster_left(tmp_path, monkeypatch):
    """As on a system without locks: both compute, and one entry is left."""
    monkeypatch.setattr("sidequest.store.locked", lambda path: nullcontext())
    values = np.ones((2, 1, 1), np.float32)
    faster = HeadStore(str, tmp_path)

    def slow(meter):
        faster.of("t", WARMUP, rows_of(values))
        yield from rows_of(values)(meter)

    record = HeadStore(str, tmp_path).of("t", WARMUP, slow)
    np.testing.assert_array_equal(record.total(), [[2.0]])
    assert len(list(tmp_path.rglob("entry.json"))) == 1


def test_one_process_computes_while_the_others_wait(tmp_path):
    """Both need the entry at once: a computation takes a while, and only one happens."""
    values, computed, summaries = np.ones((2, 1, 1), np.float32), [], []

    def slow(meter):
        computed.append(1)
        time.sleep(0.2)
        yield from rows_of(values)(meter)

    def ask():
        cache = HeadStore(str, tmp_path)
        cache.of("t", WARMUP, slow)
        summaries.append(cache.summary())

    threads = [threading.Thread(target=ask) for _ in range(3)]  # flock is per open file, so threads stand for processes
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(computed) == 1
    assert sorted(len(summary["reused"]) for summary in summaries) == [0, 1, 1]


def test_a_learner_finds_what_another_computed_and_is_charged_the_same(tmp_path, encoder):
    def run(setup):
        cache = HeadStore(setup.facts_alone, tmp_path)
        learner = setup.learner(0, PowerStores(heads=cache))
        totals = [learner[HeadImportance].head_importance(name, WARMUP) for name in setup.suite.tasks]
        return totals, _without_seconds(learner.meter), cache.summary()

    one, two, three = task("one"), task("two"), task("three")
    totals, cost, summary = run(tiny_setup(encoder, [one, two]))
    assert summary == {"reused": [], "computed": ["one", "two"]}
    again, same_cost, summary = run(tiny_setup(encoder, [one, two]))
    assert summary == {"reused": ["one", "two"], "computed": []}
    assert cost == same_cost
    np.testing.assert_array_equal(totals, again)

    # Another primary, another length of training and one task more: only the new task is computed.
    _, _, summary = run(tiny_setup(encoder, [two, one, three], epochs=5, patience=None))
    assert summary == {"reused": ["two", "one"], "computed": ["three"]}
    # Another learning rate, or one row less, decides importances.
    assert run(tiny_setup(encoder, [one, two], learning_rate=2e-3))[2]["reused"] == []
    shorter = task("one", rows=39)
    assert run(tiny_setup(encoder, [shorter, two]))[2] == {"reused": ["two"], "computed": ["one"]}


def test_rows_come_from_the_pass_that_gave_the_total(tmp_path, encoder):
    setup = tiny_setup(encoder, [task("one")])
    learner = setup.learner(0, PowerStores(heads=HeadStore(setup.facts_alone, tmp_path)))
    total = learner[HeadImportance].head_importance("one", WARMUP)
    charged = learner.meter.work
    rows = np.concatenate([values for _, values in learner[HeadImportance].instance_importance("one", WARMUP)])
    np.testing.assert_allclose(rows.sum(0, dtype=np.float64), total)
    assert learner.meter.work == charged


def _without_seconds(meter: Meter) -> dict:
    data = meter.to_json()
    for count in data["tasks"].values():
        count.pop("seconds")
    return data
