"""Servers of commands, suites and cases, made once; and at the end the number of kills."""

from __future__ import annotations

import os

import pytest

from tests.faults.cases import cases
from tests.faults.killing import Killer
from tests.faults.runner import Server
from tests.faults.suites import write_suites


@pytest.fixture(scope="session")
def suites(tmp_path_factory):
    folder = tmp_path_factory.mktemp("suites")
    write_suites(folder)
    return folder


@pytest.fixture(scope="session")
def server():
    made = Server(hashes=1)
    yield made
    made.close()


@pytest.fixture(scope="session")
def other_server():
    made = Server(hashes=2)
    yield made
    made.close()


@pytest.fixture(scope="session")
def killer(server, other_server, tmp_path_factory):
    """Runs are resumed where Python's sets have another order than where they were killed."""
    return Killer(server, other_server, tmp_path_factory.mktemp("kills"))


@pytest.fixture(scope="session")
def quick_killer(server, tmp_path_factory):
    return Killer(server, server, tmp_path_factory.mktemp("quick-kills"))


@pytest.fixture(scope="session")
def every_case(suites):
    """Each runs to its end once, in whichever test needs it first."""
    return cases(suites)


def pytest_terminal_summary(terminalreporter):
    reports = [report for outcome in ("passed", "failed") for report in terminalreporter.stats.get(outcome, [])]
    found = {"kills": 0, "problems": 0, "damages": 0, "full disks": 0}
    for report in reports:
        for name, value in getattr(report, "user_properties", []):
            if name in found:
                found[name] += value
    if found["damages"]:
        terminalreporter.write_line(f"damaged files: {found['damages']}")
    if found["full disks"]:
        terminalreporter.write_line(f"full disks: {found['full disks']}")
    if found["kills"]:
        terminalreporter.write_line(
            f"kills: {found['kills']} (seed {os.environ.get('SIDEQUEST_KILL_SEED', '0')}); "
            f"{found['problems']} ended in other bytes, in a failure or with something left over"
        )
