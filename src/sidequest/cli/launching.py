"""Starts the processes that train one model together, and ends with them.

torchrun does the same on several machines. Here it is done without it, because what a user sees must be that of one process: the
first process speaks, its exit code is the command's, and whoever ends this process ends the others.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from typing import IO

from sidequest import ranks

TIED = "SIDEQUEST_TIED"  # set for processes whose standard input ends when the one that started them does
AFTER_ONE = 5.0  # seconds that the others have to say something of their own when one has failed


def run_together(command: Sequence[str], processes: int, more: Mapping[str, str] | None = None) -> int:
    """Run a command in several processes; the exit code is the first process's, or that of the one that failed alone. more: of
    their environment."""
    shared = {
        **(more or {}),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(_free_port()),
        "WORLD_SIZE": str(processes),
        "LOCAL_WORLD_SIZE": str(processes),
        ranks.LAUNCHED: f"sidequest-{os.getpid()}",
        "GLOO_SOCKET_IFNAME": os.environ.get("GLOO_SOCKET_IFNAME", "lo"),
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1"),
        TIED: "1",
    }
    started: list[subprocess.Popen[bytes]] = []
    with contextlib.ExitStack() as stack:
        said: list[IO[bytes] | None] = [None]  # the first one speaks to the user itself
        said += [stack.enter_context(tempfile.TemporaryFile()) for _ in range(1, processes)]
        stack.callback(_end, started)
        for rank, output in enumerate(said):
            own = {**os.environ, **shared, "RANK": str(rank), "LOCAL_RANK": str(rank)}
            started.append(
                subprocess.Popen(
                    command, env=own, stdin=subprocess.PIPE, stdout=output, stderr=output, start_new_session=True
                )
            )
        code, failed = _wait(started)
        if failed and (heard := said[failed]) is not None:
            heard.seek(0)
            sys.stderr.write(heard.read().decode(errors="replace"))
        return code


def _wait(started: Sequence[subprocess.Popen[bytes]]) -> tuple[int, int]:
    """The exit code of the command, and which process it is from. The first that fails fails all; where the first process fails
    at the same moment, what it said is what counts."""
    failed_at: float | None = None
    failed = 0
    while True:
        codes = [process.poll() for process in started]
        if codes[0] is not None and (codes[0] or all(code is not None for code in codes)):
            return _shell_code(codes[0]), 0
        if failed_at is None and (bad := [rank for rank, code in enumerate(codes) if code]):
            failed, failed_at = bad[0], time.monotonic()
        if failed_at is not None and time.monotonic() - failed_at > AFTER_ONE:
            return _shell_code(codes[failed] or 1), failed
        time.sleep(0.05)


def _shell_code(code: int) -> int:
    """A process that a signal has ended failed: the signal was not meant for the command."""
    if code >= 0:
        return code
    print(
        f"sidequest: one of the processes was ended by {signal.Signals(-code).name}. What is done is kept",
        file=sys.stderr,
    )
    return 1


def _end(started: Sequence[subprocess.Popen[bytes]]) -> None:
    """Whatever happens, nobody is left running, nor what they had for a time."""
    from sidequest.files import remove_forgotten

    for process in started:
        if process.poll() is None:
            with contextlib.suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if process.stdin is not None:
            process.stdin.close()
    remove_forgotten()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def end_with_launcher() -> None:
    """In a process that `run_together` has started: end when the one that started it is gone, however it went."""
    if os.environ.pop(TIED, None):
        threading.Thread(target=_wait_for_the_end, daemon=True).start()


def _wait_for_the_end() -> None:
    with contextlib.suppress(OSError):
        while os.read(0, 1):
            pass
    os._exit(1)
