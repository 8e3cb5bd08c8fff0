"""Two states are kept; a damaged one falls back to the one before it, and then to the beginning."""

import pytest

from sidequest.files import write_atomically
from sidequest.learning.checkpoints import Checkpoints, SavedLearner


def saver(content):
    return lambda place: write_atomically(place / "weights", content)


def save(checkpoints, number, version=None):
    part = SavedLearner(number if version is None else version, saver(f"weights {number}".encode()))
    checkpoints.save({"number": number}, {"learner": part})


def loaded(checkpoints):
    found = checkpoints.load()
    return None if found is None else (found[0]["number"], (found[1] / "learner" / "weights").read_text())


@pytest.fixture
def checkpoints(tmp_path):
    made = Checkpoints(tmp_path / "states", "this run")
    assert loaded(made) is None
    for number in (1, 2, 3):
        save(made, number)
    return made


def test_the_last_two_are_kept_and_the_last_is_loaded(checkpoints):
    assert loaded(checkpoints) == (3, "weights 3")
    assert sorted(path.name for path in checkpoints.directory.iterdir()) == ["0000000002", "0000000003"]


DAMAGES = {
    "flipped": lambda path: path.write_bytes(bytes([path.read_bytes()[0] ^ 1]) + path.read_bytes()[1:]),
    "halved": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "emptied": lambda path: path.write_bytes(b""),
    "gone": lambda path: path.unlink(),
    "other": lambda path: path.write_bytes(b"{}"),
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("file", ["record.json", "learner/weights"])
def test_a_damaged_state_falls_back_to_the_one_before_and_then_to_none(checkpoints, damage, file):
    DAMAGES[damage](checkpoints.directory / "0000000003" / file)
    assert loaded(checkpoints) == (2, "weights 2")
    DAMAGES[damage](checkpoints.directory / "0000000002" / file)
    assert loaded(checkpoints) is None
    assert not list(checkpoints.directory.iterdir())
    save(checkpoints, 9)
    assert loaded(checkpoints) == (9, "weights 9")


def test_a_part_of_the_same_version_is_not_written_again(checkpoints):
    save(checkpoints, 4, version="same")
    save(checkpoints, 5, version="same")
    assert loaded(checkpoints) == (5, "weights 4")
    save(checkpoints, 6, version="other")
    assert loaded(checkpoints) == (6, "weights 6")


def test_states_of_another_run_are_not_loaded(checkpoints):
    assert Checkpoints(checkpoints.directory, "another run").load() is None


def test_saving_takes_no_large_share_of_the_time(tmp_path, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr("sidequest.learning.checkpoints.time.monotonic", lambda: clock[0])
    checkpoints = Checkpoints(tmp_path, seconds=60)

    def slow(place):
        clock[0] += 30
        saver(b"much")(place)

    clock[0] = 59
    assert not checkpoints.due()
    clock[0] = 60
    assert checkpoints.due()
    checkpoints.save({}, {"learner": SavedLearner(1, slow)})
    clock[0] += 30 / 0.05 - 1
    assert not checkpoints.due()
    clock[0] += 1
    assert checkpoints.due()


def test_nothing_is_left_of_a_run_that_is_done(checkpoints):
    checkpoints.remove()
    assert not checkpoints.directory.exists()


def test_nothing_is_left_where_a_removal_was_killed_in_its_middle(tmp_path):
    states = Checkpoints(tmp_path / "checkpoints" / "selection")
    save(states, 1)
    (tmp_path / "checkpoints" / "selection" / "0000000001").rename(tmp_path / "aside")
    (tmp_path / "checkpoints" / "selection").rmdir()
    states.remove()
    assert not (tmp_path / "checkpoints").exists()
