"""Many workers in one process, whose results come in a random order: what a method must not notice."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sidequest.methods.base import Plan
from sidequest.search.executors import Ended, Session
from sidequest.search.parallel_trials import Trials
from sidequest.search.trials import TrialResult


class AnyOrder(Session[Plan, TrialResult]):
    """A session whose jobs end in a random order. run: gives a plan's result. most: how many were ever under way at once."""

    def __init__(self, run: Callable[[Plan], TrialResult], slots: int, seed: int = 0) -> None:
        self.slots, self.most = slots, 0
        self._run, self._rng = run, np.random.default_rng(seed)
        self._under_way: dict[int, Plan] = {}
        self._tickets = 0

    def submit(self, job: Plan, label: str = "") -> int:
        self._under_way[self._tickets] = job
        self.most = max(self.most, min(self.slots, len(self._under_way)))
        self._tickets += 1
        return self._tickets - 1

    def cancel(self, ticket: int) -> None:
        self._under_way.pop(ticket, None)

    def wait(self, seconds: float | None = None) -> Ended[TrialResult] | None:
        if not self._under_way:
            return None
        begun = sorted(self._under_way)[: self.slots]
        ticket = begun[int(self._rng.integers(len(begun)))]
        return Ended(ticket, self._run(self._under_way.pop(ticket)))

    def close(self, *, now: bool = False) -> None:
        self._under_way.clear()


def trials_in_any_order(run: Callable[[Plan], TrialResult], workers: int, seed: int = 0) -> Trials:
    """A runner for `run_method` with this many workers."""
    return Trials(lambda: AnyOrder(run, workers, seed), workers)
