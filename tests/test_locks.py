"""One holder at a time; who holds it is told; a killed holder's file stops nobody."""

import multiprocessing
import os
import signal
import time

import pytest

from sidequest.errors import RunBusy
from sidequest.locks import locked


def hold(path, ready):
    with locked(path):
        ready.set()
        time.sleep(60)


@pytest.fixture
def holder(tmp_path):
    context = multiprocessing.get_context("fork")
    ready = context.Event()
    process = context.Process(target=hold, args=(tmp_path / "lock", ready))
    process.start()
    assert ready.wait(20)
    yield process
    process.kill()
    process.join()


def test_the_second_is_told_who_holds_it(tmp_path, holder):
    with (
        pytest.raises(RunBusy, match=f"^the run: process {holder.pid} on .* is working there"),
        locked(tmp_path / "lock", patience=0.1, what="the run"),
    ):
        pass


def test_the_lock_of_a_killed_process_stops_nobody(tmp_path, holder):
    os.kill(holder.pid, signal.SIGKILL)
    holder.join()
    assert (tmp_path / "lock").exists()
    with locked(tmp_path / "lock", patience=0):
        pass
    assert not (tmp_path / "lock").exists()


def test_without_locks_the_process_number_decides(tmp_path, holder, monkeypatch):
    monkeypatch.setattr("sidequest.locks.fcntl", None)
    with pytest.raises(RunBusy), locked(tmp_path / "lock", patience=0.05):
        pass
    os.kill(holder.pid, signal.SIGKILL)
    holder.join()
    with locked(tmp_path / "lock", patience=0):
        pass


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"process": "x"}', b"\xff" * 2000])
def test_any_content_of_a_stale_lock_will_do(tmp_path, content):
    (tmp_path / "lock").write_bytes(content)
    with locked(tmp_path / "lock", patience=0):
        pass


def take_turns(path, counter, times):
    for _ in range(times):
        with locked(path):
            number = int(counter.read_text())
            time.sleep(0.001)
            counter.write_text(str(number + 1))


def test_no_two_hold_it_at_once(tmp_path):
    counter = tmp_path / "counter"
    counter.write_text("0")
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=take_turns, args=(tmp_path / "lock", counter, 30)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert counter.read_text() == "90"
    assert [path.name for path in tmp_path.iterdir()] == ["counter"]
