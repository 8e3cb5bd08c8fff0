"""Workers on a Ray cluster (extra `ray`): actors with their own cores and GPUs.

What is common to all jobs goes into the object store once and from there once to each node; nodes need sidequest and no shared
disk.
"""

from __future__ import annotations

import importlib.util
import math
import re
import socket
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sidequest.errors import SettingsError
from sidequest.search.executors import Executor, Job, Result, Running, WorkerJournal
from sidequest.search.processes import answer
from sidequest.search.workers import Answer, Worker, WorkerSession
from sidequest.threads import one_torch_thread

ANSWERS = 10.0  # seconds that a cluster has to answer


@dataclass
class _Actor:
    """waited: what is awaited of it: that it is ready, or its job."""

    actor: Any
    waited: Any


class RaySession(WorkerSession[Job, Result]):
    def __init__(
        self,
        executor: Executor,
        slots: int,
        function: Callable[[Any, Job], Result],
        common: Any,
        journal: WorkerJournal | None,
        running: Running | None,
    ) -> None:
        if importlib.util.find_spec("ray") is None:
            raise SettingsError("work on a Ray cluster needs the package ray: pip install 'sidequest[ray]'")
        import ray

        super().__init__(executor, slots, function, common, journal, running)
        self._ray = ray
        self._connected = not ray.is_initialized()
        if self._connected:
            _connect(ray, executor, slots)
        check_room(ray.nodes(), executor)
        self._shared = ray.put(common)
        options: dict[str, Any] = {"num_cpus": executor.cpus_per_trial, "max_restarts": 0, "max_task_retries": 0}
        if executor.gpus_per_trial:
            options["num_gpus"] = executor.gpus_per_trial
        self._actor = ray.remote(**options)(_RayWorker)

    def _start(self) -> _Actor:
        actor = self._actor.remote(self._function, self._shared)
        return _Actor(actor, actor.name.remote())

    def _send(self, handle: _Actor, job: Job) -> None:
        handle.waited = handle.actor.run.remote(job)

    def _poll(
        self, workers: Sequence[Worker[Job]], seconds: float | None
    ) -> Iterator[tuple[Worker[Job], Answer | None]]:
        by_reference = {worker.handle.waited: worker for worker in workers}
        ready, _ = self._ray.wait(list(by_reference), num_returns=1, timeout=seconds)
        for reference in ready:
            try:
                yield by_reference[reference], self._ray.get(reference)
            except self._ray.exceptions.RayError:  # the actor, its process or its node is gone
                yield by_reference[reference], None

    def _end(self, handle: _Actor, *, now: bool) -> None:
        self._ray.kill(handle.actor)

    def close(self, *, now: bool = False) -> None:
        super().close(now=now)
        if self._connected:
            self._ray.shutdown()


def _connect(ray: Any, executor: Executor, slots: int) -> None:
    where: dict[str, Any] = {"address": executor.address}
    if executor.address == "local":
        where = {"num_cpus": max(1, math.ceil(slots * executor.cpus_per_trial)), "include_dashboard": False}
    check_address(executor.address)
    try:
        ray.init(log_to_driver=False, **where)
    except ConnectionError as error:
        raise SettingsError(f"--address {executor.address}: no Ray cluster answers: {error}") from None


def check_address(address: str) -> None:
    """Ray itself waits for minutes for a cluster that is not there."""
    found = re.fullmatch(r"(?:ray://)?(?P<host>[^/:@]+):(?P<port>\d{1,5})", address)
    if found is None:  # `local`, `auto`, and what only Ray knows
        return
    try:
        socket.create_connection((found["host"], int(found["port"])), ANSWERS).close()
    except (OSError, OverflowError) as error:
        raise SettingsError(f"--address {address}: no Ray cluster answers: {error}") from None


def check_room(nodes: Sequence[Mapping[str, Any]], executor: Executor) -> None:
    """A job for which no node is large enough would wait forever. A cluster that grows may get such a node, so there it is
    said, and waited for."""
    asked = {"CPU": executor.cpus_per_trial, "GPU": executor.gpus_per_trial}
    there = [node.get("Resources", {}) for node in nodes if node.get("Alive")]
    if any(all(node.get(kind, 0) >= amount for kind, amount in asked.items()) for node in there):
        return
    most = max(((node.get("CPU", 0), node.get("GPU", 0)) for node in there), default=(0, 0))
    words = (
        f"a job takes {asked['CPU']:g} cores and {asked['GPU']:g} GPUs (--cpus-per-trial, --gpus-per-trial), and no node of "
        f"the Ray cluster has them: the largest has {most[0]:g} cores and {most[1]:g} GPUs"
    )
    if executor.address == "local":
        raise SettingsError(words)
    warnings.warn(f"{words}. Waiting for one", stacklevel=2)


class _RayWorker:
    """Lives in an actor's process."""

    def __init__(self, function: Callable[[Any, Any], Any], common: Any) -> None:
        self._function, self._common = function, common

    def name(self) -> Answer:
        import os

        import ray

        node = ray.get_runtime_context().get_node_id()[:8]
        return Answer(name=f"{socket.gethostname()}, node {node}, process {os.getpid()}")

    def run(self, job: Any) -> Answer:
        with one_torch_thread():
            return answer(self._function, self._common, job)
