"""Files are written whole or not at all, say when they were changed, and what a killed writer left is removed."""

import json
import os
import signal
import tempfile
import time

import pytest

from sidequest.errors import Damaged
from sidequest.files import (
    atomic_directory,
    atomic_file,
    check_files,
    file_digests,
    read_json,
    remove_forgotten,
    remove_parts,
    temporary_directory,
    write_atomically,
    write_json,
)


def names(directory):
    return sorted(path.name for path in directory.iterdir())


def die_while_writing(directory, *, file):
    """A process that is killed in the middle of a file or a directory."""
    child = os.fork()
    if child == 0:
        with atomic_file(directory / "new") if file else atomic_directory(directory / "new") as place:
            if not file:
                (place / "inside").write_text("half")
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)


@pytest.mark.parametrize("file", [True, False])
def test_the_part_of_a_killed_writer_is_removed_by_the_next_write(tmp_path, file):
    die_while_writing(tmp_path, file=file)
    assert [name.endswith(".part") for name in names(tmp_path)] == [True]
    write_atomically(tmp_path / "other", b"whole")
    assert names(tmp_path) == ["other"]


def test_the_part_of_a_living_writer_is_left_alone(tmp_path):
    with atomic_file(tmp_path / "a") as file, atomic_directory(tmp_path / "b") as place:
        remove_parts(tmp_path)
        file.write(b"a")
        (place / "b").write_text("b")
    assert (tmp_path / "a").read_bytes() == b"a"
    assert (tmp_path / "b" / "b").read_text() == "b"
    assert names(tmp_path) == ["a", "b"]


def test_the_temporary_directory_of_a_killed_process_is_removed_and_nothing_else(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    child = os.fork()
    if child == 0:
        with temporary_directory("rank") as place:
            (place / "inside").write_text("half")
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    (left,) = tmp_path.iterdir()
    others = [".film.12345678.part", ".sidequest-rank.12345678.part.old", "sidequest-rank.12345678.part"]
    for name in others:
        (tmp_path / name).mkdir()
    (tmp_path / ".sidequest-rank.00000000.part").symlink_to(tmp_path / others[0])
    with temporary_directory("rank") as living:
        assert living.stat().st_mode & 0o077 == 0
        remove_forgotten()
        assert living.is_dir()
        assert not left.exists()
    assert names(tmp_path) == sorted([*others, ".sidequest-rank.00000000.part"])


def test_an_error_leaves_the_old_file_and_no_part(tmp_path):
    write_atomically(tmp_path / "a", b"old")
    with pytest.raises(ZeroDivisionError), atomic_file(tmp_path / "a") as file:
        file.write(b"new" * (1 // 0))
    with pytest.raises(ZeroDivisionError), atomic_directory(tmp_path / "b"):
        raise ZeroDivisionError
    assert names(tmp_path) == ["a"]
    assert (tmp_path / "a").read_bytes() == b"old"


def test_a_directory_takes_the_place_of_the_old_one(tmp_path):
    for content in ("one", "two"):
        with atomic_directory(tmp_path / "d") as place:
            (place / content).write_text(content)
    assert names(tmp_path / "d") == ["two"]
    assert names(tmp_path) == ["d"]


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_modes_are_what_the_umask_says(tmp_path, mask):
    before = os.umask(mask)
    try:
        write_atomically(tmp_path / "file", b"")
        with atomic_directory(tmp_path / "folder"):
            pass
    finally:
        os.umask(before)
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o666 & ~mask
    assert (tmp_path / "folder").stat().st_mode & 0o777 == 0o777 & ~mask


def test_a_link_is_replaced_and_not_followed(tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / "link").symlink_to(victim)
    write_atomically(tmp_path / "link", b"new")
    assert victim.read_text() == "mine"
    assert not (tmp_path / "link").is_symlink()


def test_json_comes_back_and_equal_values_are_equal_bytes(tmp_path):
    value = {"b": [1, 2.5, None], "a": {"10": 1, "9": "ü"}, "nan": float("inf")}
    write_json(tmp_path / "a.json", value)
    write_json(tmp_path / "b.json", dict(reversed(value.items())))
    assert read_json(tmp_path / "a.json", must_be_sealed=True) == value
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()


def test_every_changed_byte_of_a_sealed_file_is_noticed(tmp_path):
    path = tmp_path / "a.json"
    write_json(path, {"score": 0.75, "task": "mood"})
    whole = path.read_bytes()
    meant = json.loads(whole)
    for place in range(len(whole)):
        for flip in (0x01, 0x20, 0x80):
            path.write_bytes(whole[:place] + bytes([whole[place] ^ flip]) + whole[place + 1 :])
            try:
                found = read_json(path, must_be_sealed=True)
            except Damaged:
                continue
            assert {**found, "sha256": meant["sha256"]} == meant  # white space
    for length in range(len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(Damaged, match=r"a\.json: is damaged"):
            read_json(path, must_be_sealed=True)


def test_a_file_written_by_hand_needs_no_seal_and_an_edited_one_is_told_how(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('{"score": 1}')
    assert read_json(path) == {"score": 1}
    with pytest.raises(Damaged, match="it has no sha256"):
        read_json(path, must_be_sealed=True)
    write_json(path, {"score": 1})
    path.write_text(path.read_text().replace('"score": 1', '"score": 2'))
    with pytest.raises(Damaged, match="If it was changed on purpose, remove its `sha256`"):
        read_json(path)


def test_files_are_checked_against_their_digests(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "weights").write_bytes(b"12345")
    digests = file_digests(tmp_path)
    check_files(tmp_path, digests)
    (tmp_path / "folder" / "weights").write_bytes(b"12346")
    with pytest.raises(Damaged, match="weights: is damaged"):
        check_files(tmp_path, digests)
    (tmp_path / "folder" / "weights").unlink()
    with pytest.raises(Damaged, match="cannot be read"):
        check_files(tmp_path, digests)


def test_without_locks_only_old_parts_are_removed(tmp_path, monkeypatch):
    monkeypatch.setattr("sidequest.files.fcntl", None)
    die_while_writing(tmp_path, file=True)
    (part,) = tmp_path.iterdir()
    remove_parts(tmp_path)
    assert part.exists()
    os.utime(part, (time.time() - 100_000,) * 2)
    remove_parts(tmp_path)
    assert names(tmp_path) == []
