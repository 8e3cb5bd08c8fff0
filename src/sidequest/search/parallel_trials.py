"""The trials of a search on many workers: started as soon as a worker is free, told in the order in which they were asked for.

Which plans a method asks for must not depend on how many workers there are, nor on which of them is quicker. So `Method.ask`
gives plans that follow from its state *whatever the scores of the plans before them* (`methods/base.py`), and the driver tells
scores in the order of the plans. While the first plan of that order runs, the others run too; when it ends, its score is told
and the next plan asked for at once. Nobody waits for a batch to be complete.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from sidequest.errors import WorldError
from sidequest.methods.base import Plan
from sidequest.search.executors import Ended, Session
from sidequest.search.trials import TrialCache, TrialResult, plan_key, tasks_of


class TrialListener(Protocol):
    """Told of the trials of a search; a ledger is one. Keys are those of `plan_key`."""

    def begun(self, plan: Plan, key: str) -> None: ...

    def ended(self, plan: Plan, key: str, result: TrialResult) -> None:
        """The trial was run, or found (`result.reused`)."""
        ...

    def failed(self, plan: Plan, key: str) -> None: ...


class Shared(Protocol):
    """Results that other processes see, perhaps on other machines; and who is at which trial."""

    def result(self, key: str) -> TrialResult | None: ...

    def claim(self, key: str) -> bool:
        """Whether this process may run the trial now: nobody else who lives is at it, and it has no result."""
        ...


POLL = 0.2  # seconds between two looks at a trial that runs elsewhere
ROOM = 4  # plans known per worker: enough that a slow one does not leave the others idle


class Trials:
    """Runs the plans of a search on the workers of an executor, and gives their results in the order of the plans.

    open_session: of jobs that are plans; called when the first plan has to run. facts: what else decides a score, for the key;
    None: nothing is kept. listening: opens what listens, when the first plan is asked for: a search without trials leaves no
    ledger behind. shared: whether several processes share the search; a trial that another one is at is left to it.
    """

    def __init__(
        self,
        open_session: Callable[[], Session[Plan, TrialResult]],
        workers: int,
        *,
        facts: Callable[[Sequence[str]], Any] | None = None,
        cache: TrialCache | None = None,
        listening: Callable[[], tuple[Sequence[TrialListener], Shared | None]] = lambda: ((), None),
        shared: bool = False,
    ) -> None:
        self._open = open_session
        self._session: Session[Plan, TrialResult] | None = None
        self._workers = workers
        self._facts = facts
        self._cache = cache if cache is not None else TrialCache()
        self._listening = listening
        self._is_shared = shared
        self._tickets: dict[str, int] = {}  # plans that are under way, by key
        self._plans: dict[str, Plan] = {}
        self._ended: dict[str, TrialResult | Exception] = {}

    @property
    def room(self) -> int:
        """With one worker that nobody helps, a plan is started when its score is wanted and no sooner."""
        return 1 if self._workers == 1 and not self._is_shared else ROOM * self._workers

    @functools.cached_property
    def _opened(self) -> tuple[Sequence[TrialListener], Shared | None]:
        return self._listening()

    @property
    def _listeners(self) -> Sequence[TrialListener]:
        return self._opened[0]

    @property
    def _shared(self) -> Shared | None:
        return self._opened[1]

    def run(self, plans: Sequence[Plan]) -> list[TrialResult]:
        return [self.first(plans[index:]) for index in range(len(plans))]

    def first(self, plans: Sequence[Plan]) -> TrialResult:
        keys = [plan_key(plan, None if self._facts is None else self._facts(tasks_of(plan))) for plan in plans]
        self._forget(keys)
        for key, plan in zip(keys, plans, strict=True):
            self._plans.setdefault(key, plan)
        while keys[0] not in self._ended:
            waiting = [key for key in dict.fromkeys(keys) if key not in self._ended and key not in self._tickets]
            elsewhere = not self._begin(waiting)
            ended = None if self._session is None else self._session.wait(POLL if elsewhere else None)
            if ended is not None:
                self._take(ended)
            elif elsewhere and not self._tickets:
                time.sleep(POLL)
        result = self._ended[keys[0]]
        if isinstance(result, Exception):
            raise result
        return result

    def close(self, *, now: bool = False) -> None:
        for key in list(self._tickets):
            self._tell_failed(key)
        if self._session is not None:
            self._session.close(now=now)

    def __enter__(self) -> Trials:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.close(now=True)

    def _forget(self, keys: Sequence[str]) -> None:
        """Results that were given, and plans that nobody asks for any more (a budget ended the search)."""
        for key in [key for key in self._plans if key not in keys]:
            if (ticket := self._tickets.pop(key, None)) is not None and self._session is not None:
                self._session.cancel(ticket)
                self._tell_failed(key)
            self._ended.pop(key, None)
            del self._plans[key]

    def _begin(self, keys: Sequence[str]) -> bool:
        """Find the results of these plans, or begin them. False: another process is at some of them."""
        all_here = True
        for key in keys:
            plan = self._plans[key]
            if (found := self._find(key)) is not None:
                self._ended[key] = found
                for listener in self._listeners:
                    listener.ended(plan, key, found)
            elif len(self._tickets) < self._limit():
                if self._shared is not None and not self._shared.claim(key):
                    all_here = False
                    continue
                for listener in self._listeners:
                    listener.begun(plan, key)
                if self._session is None:
                    self._session = self._open()
                self._tickets[key] = self._session.submit(plan, plan.label)
        return all_here

    def _limit(self) -> int:
        """What is shared is claimed when a worker is free for it, and not kept from the others before."""
        return self.room if self._shared is None else self._workers

    def _find(self, key: str) -> TrialResult | None:
        if self._facts is None:
            return None
        result = None if self._shared is None else self._shared.result(key)
        return result or self._cache.get(key)

    def _take(self, ended: Ended[TrialResult]) -> None:
        key = next((key for key, ticket in self._tickets.items() if ticket == ended.ticket), None)
        if key is None:
            return
        del self._tickets[key]
        if ended.error is not None or ended.value is None:
            self._ended[key] = ended.error or WorldError("a trial ended without a result")
            self._tell_failed(key)
            return
        self._ended[key] = ended.value
        if self._facts is not None:
            self._cache.put(key, ended.value)
        for listener in self._listeners:
            listener.ended(self._plans[key], key, ended.value)

    def _tell_failed(self, key: str) -> None:
        for listener in self._listeners:
            listener.failed(self._plans[key], key)
