"""Trials on a Ray cluster (extra `ray`): the same plans and the same results as in local worker processes."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from typing import Any

from sidequest.errors import SettingsError
from sidequest.methods.base import Plan
from sidequest.search.trials import TrialResult, TrialRunner


class RayTrials:
    """Runs plans in actors of a Ray cluster, one core and one torch thread each; an actor loads its data and model once.

    make: makes, inside an actor, the runner of its plans; it travels to the nodes, which need sidequest, the data and a shared or
        own cache. address: as `ray.init` takes it: `auto`, `host:port`, `ray://…`; `local` starts Ray on this machine.
    Results come in the order of the plans. Use it in a `with` statement.
    """

    def __init__(self, make: Callable[[], TrialRunner], workers: int, address: str) -> None:
        if importlib.util.find_spec("ray") is None:
            raise SettingsError("trials on a Ray cluster need the package ray: pip install 'sidequest[ray]'")
        import ray
        from ray.util import ActorPool

        self._ray = ray
        self._started = not ray.is_initialized()
        if self._started:
            local: dict[str, Any] = {"num_cpus": workers, "include_dashboard": False}
            where = local if address == "local" else {"address": address}
            try:
                ray.init(log_to_driver=False, **where)
            except ConnectionError as error:
                raise SettingsError(f"--ray {address}: no Ray cluster answers: {error}") from None
        actor = ray.remote(num_cpus=1)(_Worker)
        self._pool = ActorPool([actor.remote(make) for _ in range(workers)])

    def run(self, plans: Sequence[Plan]) -> list[TrialResult]:
        return list(self._pool.map(lambda worker, plan: worker.run.remote(plan), list(plans)))

    def __enter__(self) -> RayTrials:
        return self

    def __exit__(self, *_: object) -> None:
        if self._started:
            self._ray.shutdown()


class _Worker:
    """Lives in an actor's process."""

    def __init__(self, make: Callable[[], TrialRunner]) -> None:
        import torch

        torch.set_num_threads(1)
        self._make = make
        self._runner: TrialRunner | None = None

    def run(self, plan: Plan) -> TrialResult:
        if self._runner is None:
            self._runner = self._make()
        return self._runner.run([plan])[0]
