"""Run plans, or find their results: a plan is keyed by the content of everything that decides its score."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from sidequest.errors import Diverged, SettingsError
from sidequest.files import digest
from sidequest.learning.fit import fit
from sidequest.learning.meter import Meter
from sidequest.learning.probing import probe
from sidequest.learning.protocol import Learner, Probing
from sidequest.methods.base import Plan
from sidequest.progress import Progress
from sidequest.search import recheck
from sidequest.settings import TrainSettings
from sidequest.store import ContentStore


@dataclass(frozen=True)
class TrialResult:
    """score: the best on *select*, or for a plan measured by truth the mean of `truth`, the log-likelihood of each row.
    meter: what the run cost, also when it was found instead of run. failed: why a training has no score, which then is −inf."""

    score: float
    history: list[dict[str, Any]]
    meter: Meter
    reused: bool = False
    truth: np.ndarray | None = None
    failed: str = ""

    def to_json(self) -> dict[str, Any]:
        plain = {"score": self.score, "history": self.history, "meter": self.meter.to_json()}
        if self.failed:  # JSON has no infinities
            plain |= {"score": None, "failed": self.failed}
        return plain if self.truth is None else {**plain, "truth": self.truth.tolist()}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> TrialResult:
        """A result that was found."""
        truth = None if data.get("truth") is None else np.asarray(data["truth"], dtype=np.float64)
        failed = str(data.get("failed", ""))
        score = -math.inf if failed else data["score"]
        return cls(score, data["history"], Meter.from_json(data["meter"]), reused=True, truth=truth, failed=failed)


class TrialRunner(Protocol):
    """Something that turns plans into results. room: how many plans it wants to know at once."""

    @property
    def room(self) -> int: ...

    def first(self, plans: Sequence[Plan]) -> TrialResult:
        """The result of the first plan. The others are those that will be asked for next, whatever it is: they may begin."""
        ...


class TrialCache:
    """Results by key; shared by all methods, runs and processes."""

    def __init__(self, root: Path | None = None) -> None:
        self._store = ContentStore("trials", root)

    def get(self, key: str) -> TrialResult | None:
        """None: it was never run, its entry is damaged, or it is to be run again (see `recheck`)."""
        entry = None if recheck.is_due(key) else self._store.get(key)
        return None if entry is None else TrialResult.from_json(dict(entry.data))

    def put(self, key: str, result: TrialResult) -> None:
        plain = result.to_json()
        if recheck.is_due(key) and (entry := self._store.get(key)) is not None:
            recheck.confirm(key, _result(entry.data), _result(plain), entry.directory)
        self._store.put(key, lambda _: plain)


def _result(data: Mapping[str, Any]) -> dict[str, Any]:
    """Without what it cost, which has seconds in it."""
    return {name: value for name, value in data.items() if name != "meter"}


class LocalTrials:
    """Run plans one after another in this process.

    facts: what else decides a score, for the key: see `trial_facts`. None: nothing is cached.
    progress: told of the batches of each trial.
    """

    def __init__(
        self,
        learner: Learner,
        train: TrainSettings,
        *,
        goal: str = "primary",
        facts: Callable[[Sequence[str]], Any] | None = None,
        cache: TrialCache | None = None,
        progress: Progress | None = None,
    ) -> None:
        self._learner = learner
        self._train = train
        self._goal = goal
        self._facts = facts
        self._cache = cache if cache is not None else TrialCache()
        self._progress = progress
        self._last_permuted: tuple[dict[str, int], Learner] | None = None

    room = 1

    def first(self, plans: Sequence[Plan]) -> TrialResult:
        return self.run(plans[:1])[0]

    def run(self, plans: Sequence[Plan]) -> list[TrialResult]:
        return [self._run(plan) for plan in plans]

    def _run(self, plan: Plan) -> TrialResult:
        key = None if self._facts is None else plan_key(plan, self._facts(tasks_of(plan)))
        if key is not None and (known := self._cache.get(key)) is not None:
            return known
        start = self._permuted(plan.permuted) if plan.permuted else self._learner
        learner = start.fresh(plan.seed)
        learner.meter = meter = Meter(trials=1)
        progress = None
        if self._progress is not None:
            progress = functools.partial(self._progress.training, label=plan.label)
        if plan.measure == "read-out":
            read = _probing(learner).read_out_truth(learner.primary)
            result = TrialResult(0.0 if read is None else float(read.mean()), [], meter, truth=read)
        elif plan.measure == "truth":
            probing, goal = _probing(learner), self._goal
            truth = probe(
                probing, plan.phases, self._train, plan.seed, hold_out=plan.hold_out, goal=goal, progress=progress
            )
            result = TrialResult(float(truth.mean()), [], meter, truth=truth)
        else:
            try:
                best = fit(learner, plan.phases, self._train, plan.seed, goal=self._goal, progress=progress)
                result = TrialResult(best.score, best.history, meter)
            except Diverged as error:  # this mixture is no answer; the search goes on without it
                result = TrialResult(-math.inf, [], meter, failed=str(error))
        if key is not None:
            self._cache.put(key, result)
        return result

    def _permuted(self, tasks: Mapping[str, int]) -> Learner:
        """A learner over shuffled targets; the last one is kept, because its runs come one after another."""
        if self._last_permuted is None or self._last_permuted[0] != tasks:
            self._last_permuted = (dict(tasks), _probing(self._learner).with_permuted(tasks))
        return self._last_permuted[1]


def _probing(learner: Learner) -> Probing:
    if not isinstance(learner, Probing):
        raise SettingsError(f"{type(learner).__name__} cannot be probed: it gives no likelihood of the truth per row")
    return learner


def plan_key(plan: Plan, facts: Any) -> str:
    """The key of a plan: its phases and seed, and the facts about data, model, settings and code."""
    phases = [phase.model_dump(mode="json") for phase in plan.phases]
    # What differs from an ordinary run stands in the key only where it differs: ordinary runs keep the keys that they have.
    special: dict[str, Any] = {"measure": plan.measure} if plan.measure != "metric" else {}
    special |= {"permuted": plan.permuted} if plan.permuted else {}
    special |= {"hold_out": plan.hold_out} if plan.hold_out else {}
    return digest({"phases": phases, "seed": plan.seed, "facts": facts, **special})


def tasks_of(plan: Plan) -> list[str]:
    return sorted({name for phase in plan.phases for name in phase.tasks})
