"""A PostgreSQL server of its own on loopback, from the system's packages: made, started and stopped by the test."""

import contextlib
import glob
import importlib.util
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest

PASSWORD = "not-to-be-seen-8a31"


def programs():
    """The directory of initdb and pg_ctl; None where there is no server."""
    places = [*sorted(glob.glob("/usr/lib/postgresql/*/bin"), reverse=True), *os.environ.get("PATH", "").split(":")]
    return next((Path(place) for place in places if (Path(place) / "initdb").exists()), None)


needs_postgresql = pytest.mark.skipif(
    programs() is None or importlib.util.find_spec("psycopg") is None,
    reason="PostgreSQL's server (apt-get install postgresql) or psycopg is missing; see `make test-cluster`",
)


@contextlib.contextmanager
def server():
    """The URL of an empty database, with a password in it."""
    with server_and_control() as (url, _):
        yield url


@contextlib.contextmanager
def server_and_control():
    """The same, and a function that takes a word of pg_ctl: stop or start."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    place = Path(tempfile.mkdtemp(prefix="sidequest-pg-"))
    as_user = []
    if os.getuid() == 0:  # the server refuses to run as root
        user = pwd.getpwnam("postgres")
        os.chown(place, user.pw_uid, user.pw_gid)
        as_user = ["runuser", "-u", "postgres", "--"]
    secret = place / "password"
    secret.write_text(PASSWORD)
    secret.chmod(0o644)
    data = place / "data"

    def do(*command):
        subprocess.run([*as_user, *map(str, command)], check=True, timeout=120, stdout=subprocess.DEVNULL, cwd=place)

    def control(word):
        more = {"start": ["-o", options, "-l", place / "log"], "stop": ["-m", "immediate"]}[word]
        do(programs() / "pg_ctl", "-D", data, "-w", *more, word)

    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={place} -c fsync=off"
    try:
        do(programs() / "initdb", "-D", data, "-U", "quest", "-A", "scram-sha-256", f"--pwfile={secret}", "-N")
        control("start")
        yield f"postgresql://quest:{PASSWORD}@127.0.0.1:{port}/postgres", control
    finally:
        if (data / "postmaster.pid").exists():
            control("stop")
        shutil.rmtree(place, ignore_errors=True)
