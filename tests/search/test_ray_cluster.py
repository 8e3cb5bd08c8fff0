"""Work on a Ray cluster of two nodes without a shared disk: the bytes of one worker, also when a node is killed midway."""

import json
import os
import socket
import subprocess
import sys
import threading
import time

import pytest

from sidequest.errors import SettingsError
from sidequest.runs.comparing import compare
from sidequest.runs.selecting import select
from sidequest.runs.setup import Setup
from sidequest.search.executors import Executor, WorkerJournal
from sidequest.search.ray_workers import check_address, check_room
from sidequest.tasks.loading import load_suite
from tests.helpers.ray_cluster import needs_ray, two_nodes

METHODS = {"heu-size": {}, "exp3s": {"steps": 20}}


def setup():
    return Setup.of(load_suite("digits"), {}, {"epochs": 1, "max_batches": 30})


def events(directory):
    path = directory / WorkerJournal.FILE
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def test_a_missing_ray_is_said(monkeypatch):
    import importlib.util

    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == "ray" else find(name, *rest))
    with pytest.raises(SettingsError, match=r"sidequest\[ray\]"):
        Executor(2, "ray").open(print, None)


def test_a_cluster_that_does_not_answer_is_said_at_once():
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{listening.getsockname()[1]}"
        for bad in (address, f"ray://{address}", "127.0.0.1:99999"):
            with pytest.raises(SettingsError, match=f"--address {bad}: no Ray cluster answers"):
                check_address(bad)
        listening.listen()
        check_address(address)  # the control: somebody is there
    for other in ("local", "auto"):
        check_address(other)


def test_a_job_that_no_node_can_take_is_not_waited_for_in_silence():
    def node(alive=True, **resources):
        return {"Alive": alive, "Resources": resources}

    nodes = [node(CPU=2.0), node(CPU=1.0, GPU=1.0), node(alive=False, CPU=64.0, GPU=8.0)]
    for cpus, gpus in ((1, 0), (2, 0), (1, 1), (0, 1)):
        check_room(nodes, Executor(2, "ray", cpus_per_trial=cpus, gpus_per_trial=gpus))
    for cpus, gpus in ((3, 0), (2, 1), (1, 2)):
        with pytest.raises(SettingsError, match=r"no node of the Ray cluster has them: the largest has 2 cores"):
            check_room(nodes, Executor(2, "ray", cpus_per_trial=cpus, gpus_per_trial=gpus))
        with pytest.warns(UserWarning, match="Waiting for one"):  # it may grow
            check_room(nodes, Executor(2, "ray", address="auto", cpus_per_trial=cpus, gpus_per_trial=gpus))


@needs_ray
@pytest.mark.cluster
def test_a_gpu_that_is_not_there_is_refused_by_the_command(tmp_path):
    few = ["-m", "task-modelling", "--set", "subsets=2", "--set", "train.epochs=0.2", "--workers", "1"]
    command = [sys.executable, "-m", "sidequest", "select", "digits", *few, "-o", str(tmp_path / "run")]
    command += ["--executor", "ray", "--gpus-per-trial", "64"]
    environment = {**os.environ, "SIDEQUEST_CACHE": str(tmp_path / "cache"), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, timeout=240, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "64 GPUs" in done.stderr
    assert "Traceback" not in done.stderr


@needs_ray
@pytest.mark.cluster
def test_two_nodes_write_the_bytes_of_one_worker_and_so_do_those_that_are_left(tmp_path, monkeypatch):
    monkeypatch.setenv("SIDEQUEST_CACHE", str(tmp_path / "cache"))
    compare(setup(), METHODS, [0, 1], tmp_path / "one")
    monkeypatch.setenv("SIDEQUEST_CACHE", str(tmp_path / "cache-of-driver"))
    with two_nodes(tmp_path) as (cluster, second):
        executor = Executor(2, "ray", address=cluster.address)
        compare(setup(), METHODS, [0, 1], tmp_path / "two", workers=executor)
        recipe = select(setup(), "autosem-grid", settings={"rounds": 2, "trials": 4}, workers=executor)
        killer = threading.Thread(target=kill_when_busy, args=(cluster, second, tmp_path / "killed"), daemon=True)
        killer.start()
        monkeypatch.setenv("SIDEQUEST_CACHE", str(tmp_path / "cache-of-driver-2"))
        compare(setup(), METHODS, [0, 1], tmp_path / "killed", workers=executor)
        killer.join(60)
    one, two, killed = ((tmp_path / name / "comparison.json").read_bytes() for name in ("one", "two", "killed"))
    assert two == one
    assert killed == one
    nodes = {line["worker"].split(",")[1] for line in events(tmp_path / "two") if line["event"] == "begun"}
    assert len(nodes) == 2  # both worked
    lost = [line["job"] for line in events(tmp_path / "killed") if line["event"] == "lost"]
    assert len(lost) == 1
    ended = [line["job"] for line in events(tmp_path / "killed") if line["event"] == "ended"]
    assert lost[0] in ended
    monkeypatch.setenv("SIDEQUEST_CACHE", str(tmp_path / "cache-of-another"))
    alone = select(setup(), "autosem-grid", settings={"rounds": 2, "trials": 4})
    assert recipe.to_json() == alone.to_json()


@needs_ray
@pytest.mark.cluster
def test_pieces_and_states_come_back_from_nodes_without_the_disk(tmp_path, monkeypatch, encoder):
    """Head matrices and chunks of a ranking by the nodes; states of texts by the nodes, and back to them for the trainings."""
    from tests.helpers.tiny_suites import tiny_setup
    from tests.runs.test_pieces import METHODS as PIECES
    from tests.runs.test_pieces import frozen_setup, tasks

    def recipes(place, workers):
        monkeypatch.setenv("SIDEQUEST_CACHE", str(tmp_path / f"cache-of-{place}"))
        for name, (settings, _) in PIECES.items():
            run = tmp_path / place / name
            select(tiny_setup(encoder, tasks()), name, settings=settings, directory=run, workers=workers)
        select(frozen_setup(encoder), "heu-size", directory=tmp_path / place / "frozen", workers=workers)
        return [path.read_bytes() for path in sorted((tmp_path / place).glob("*/recipe.json"))]

    alone = recipes("alone", 1)
    with two_nodes(tmp_path) as (cluster, _):
        assert recipes("driver", Executor(2, "ray", address=cluster.address)) == alone
    assert len(alone) == 3
    for name, (_, what) in PIECES.items():
        begun = [line for line in events(tmp_path / "driver" / name) if line["job"].startswith(what)]
        assert begun
        assert all("node" in line["worker"] for line in begun)


def kill_when_busy(cluster, node, directory):
    """Kill the node once it has ended a job and begun another."""
    name = node.node_id[:8]
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        here = [line["event"] for line in events(directory) if f"node {name}" in line["worker"]]
        if here.count("ended") >= 1 and here[-1] == "begun":
            cluster.remove_node(node, allow_graceful=False)
            return
        time.sleep(0.02)
