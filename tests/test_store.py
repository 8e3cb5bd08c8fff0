"""The content store: made once, found by key, damage noticed, one maker at a time."""

import os
import threading

import numpy as np
import pytest

from sidequest.locks import locked
from sidequest.store import ContentStore, remembered_digest, save_arrays, sweep

VALUES = np.arange(6, dtype=np.float32)


def make(directory):
    save_arrays(directory, {"values": VALUES})
    (directory / "more").mkdir()
    (directory / "more" / "words.txt").write_text("some words")
    return {"cost": 3}


def refuse(directory):
    raise AssertionError("made again")


@pytest.fixture
def store(tmp_path):
    return ContentStore("things", tmp_path)


def test_an_entry_is_made_once_and_found_by_its_key(store, tmp_path):
    entry = store.get_or_make("ab12", make)
    assert entry.made
    again = ContentStore("things", tmp_path).get_or_make("ab12", refuse)
    assert not again.made
    assert again.data == {"cost": 3}
    np.testing.assert_array_equal(again.arrays()["values"], VALUES)
    assert store.get("ab13") is None
    assert ContentStore("other", tmp_path).get("ab12") is None
    assert not list(tmp_path.rglob("*.lock"))


@pytest.mark.parametrize("name", ["entry.json", "arrays.npz", "more/words.txt"])
@pytest.mark.parametrize("damage", ["flip", "halve", "remove", "empty"])
def test_a_damaged_entry_is_made_again(store, name, damage):
    path = store.get_or_make("ab12", make).directory / name
    whole = path.read_bytes()
    middle = len(whole) // 2
    flipped = whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :]
    path.write_bytes({"flip": flipped, "halve": whole[:middle], "remove": b"", "empty": b""}[damage])
    if damage == "remove":
        path.unlink()
    assert store.get("ab12") is None
    assert store.get_or_make("ab12", make).made
    assert path.read_bytes() == whole


def test_an_entry_under_another_name_is_not_taken(store):
    entry = store.get_or_make("ab12", make)
    os.rename(entry.directory, entry.directory.with_name("ab13"))
    assert store.get("ab13") is None


def test_a_failure_leaves_nothing(store, tmp_path):
    def fail(directory):
        (directory / "half").write_text("x")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.get_or_make("ab12", fail)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_one_makes_while_the_others_wait(store):
    begun, made, found = threading.Event(), [], []

    def slow(directory):
        made.append(1)
        begun.wait(0.2)
        return {}

    threads = [
        threading.Thread(target=lambda: found.append(store.get_or_make("ab12", slow).made)) for _ in range(3)
    ]  # flock is per open file, so threads stand for processes
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1
    assert sorted(found) == [False, False, True]


def test_the_digest_of_a_file_is_remembered_until_it_changes(tmp_path, monkeypatch):
    monkeypatch.setenv("SIDEQUEST_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "weights"
    path.write_bytes(b"one")
    first = remembered_digest(path)
    with monkeypatch.context() as patched:
        patched.setattr("sidequest.store.file_digest", refuse)
        assert remembered_digest(path) == first
    path.write_bytes(b"two!")
    assert remembered_digest(path) != first


def test_what_killed_writers_left_is_swept(store, tmp_path, monkeypatch):
    monkeypatch.setenv("SIDEQUEST_CACHE", str(tmp_path))
    shelf = tmp_path / "kind" / "ab"
    (shelf / f".{'ab' * 32}.0123abcd.part" / "new").mkdir(parents=True)
    (shelf / f"{'ab' * 32}.lock").write_text("{}")
    (shelf / "kept").mkdir()
    with locked(shelf / "held.lock"):
        sweep()
        assert sorted(path.name for path in shelf.iterdir()) == ["held.lock", "kept"]
