"""The driver runs a method round by round: it saves, resumes, meters and shows progress, so that methods need not.

A checkpoint holds the method's state, the meter and the learner. The learner is saved by time, not after every round; what came
after the last checkpoint is replayed, and because a round is a function of (state, learner, seed, number of the round), the
replay gives the same bytes. For a method that trains the model itself the best weights so far are saved in the same way.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sidequest.errors import SettingsError, nearest, speaking_for
from sidequest.files import write_atomically
from sidequest.formatting import without_zero_differences
from sidequest.learning.checkpoints import Checkpoints, SavedLearner
from sidequest.learning.guard import guard
from sidequest.learning.meter import Meter
from sidequest.learning.protocol import Learner, Piece, Snapshot
from sidequest.methods.base import Method, Pool, State
from sidequest.models.kinds import has_no, powers_of
from sidequest.recipe import Cost, Phase, Recipe
from sidequest.runs.directory import SO_FAR
from sidequest.search.trials import TrialRunner

TRAINED = "trained"  # the weights of a method that trains the model itself, in its run directory

SELECTION = Path("checkpoints") / "selection"

OnRound = Callable[[int, int | None, dict[str, Any], Meter], None]  # (calls done, calls in all, journal entry, meter)


@dataclass
class _At:
    """Where a run stands. `calls` counts rounds and tells; `rounds` only those that moved the learner.

    best: the weights that a method which trains the model wants kept, of round `best_round`.
    """

    state: State
    calls: int = 0
    rounds: int = 0
    best: Snapshot | None = None
    best_round: int = 0


def run_method(
    method: Method[Any, Any],
    learner: Learner,
    pool: Pool,
    trials: TrialRunner,
    *,
    single_run_work: float,
    provenance: dict[str, Any] | None = None,
    directory: Path | None = None,
    budget: float | None = None,
    checkpoint_seconds: float | None = None,
    on_round: OnRound | None = None,
    ahead: Callable[[Sequence[Piece]], None] | None = None,
) -> Recipe:
    """Run a method to its end and return its recipe; with a directory, continue what was started there.

    If the method trains the model itself, the learner ends with its best weights, saved in `directory/trained`.
    budget: stop when the selection has cost this much, in x. A method that can decide at any time then decides by what it has
        seen; any other has no decision, and its recipe is the primary alone. The recipe's provenance says so.
    ahead: computes pieces of the rounds to come on workers.
    """
    check_requirements(method, learner)
    method.budget = budget
    checkpoints = None if directory is None else _Checkpoints(directory, learner, method, checkpoint_seconds)
    at = checkpoints.load() if checkpoints is not None else None
    if at is None:
        learner.meter = Meter()
        with _speaking(method, "start"):
            at = _At(method.start(pool, _rng(method.seed, 0)))
    driving = _Driving(method, learner, guard(learner), trials, single_run_work, budget, checkpoints, on_round, ahead)
    try:
        stopped = driving.work(at)
    except KeyboardInterrupt:
        if directory is not None and method.anytime and not method.trains_model and at.calls:
            _answer_so_far(method, at, learner.meter.cost(single_run_work), provenance or {}, directory)
        raise
    if at.best is not None:
        learner.restore(at.best)
        if directory is not None:
            learner.save(directory / TRAINED, at.best)
    if directory is not None:
        for name, data in method.artifacts(at.state).items():
            write_atomically(directory / name, data)
    if stopped and not (method.anytime and at.calls):
        # No decision: the primary alone, or all tasks alike where no task is more than another.
        names = pool.names if pool.goal == "average" else (pool.primary,)
        recipe = Recipe(method=method.name, primary=pool.primary, phases=(Phase(shares=dict.fromkeys(names, 1.0)),))
    else:
        with _speaking(method, "recipe"):
            recipe = method.recipe(at.state)
        _check_recipe(recipe, method, pool)
    noted = {"stopped_by_budget": budget} if stopped else {}
    changes = {
        "cost": learner.meter.cost(single_run_work),
        "provenance": {**(provenance or {}), **noted},
        "verdict": without_zero_differences(recipe.verdict),
    }
    return recipe.model_copy(update=changes)


@dataclass(frozen=True)
class _Driving:
    """A method at work on a learner; see `run_method`."""

    method: Method[Any, Any]
    learner: Learner
    guarded: Learner
    trials: TrialRunner
    single_run_work: float
    budget: float | None
    checkpoints: _Checkpoints | None
    on_round: OnRound | None
    ahead: Callable[[Sequence[Piece]], None] | None

    def work(self, at: _At) -> bool:
        """Until the method is done, or the budget spent: then True."""
        while not self.method.done(at.state):
            if self.budget is not None and self.learner.meter.cost(self.single_run_work).x >= self.budget:
                return True
            with _speaking(self.method, "ask"):
                plans = self.method.ask(at.state, self.trials.room)
            failed = ""
            if plans:
                # One score at a time and in the order of the plans, so that neither the number of workers nor which of them is
                # quicker decides anything. The other plans run meanwhile.
                result = self.trials.first(plans)
                failed = result.failed
                with _speaking(self.method, "tell"):
                    at.state = self.method.tell_rows(at.state, plans[0], result.score, result.truth)
                self.learner.meter.add(result.meter)
                self.learner.meter.trials_reused += result.reused
            else:
                if self.ahead is not None:
                    self.ahead(self.method.ahead(at.state))
                with _speaking(self.method, "round"):
                    at.state = self.method.round(at.state, self.guarded, _rng(self.method.seed, at.calls + 1))
                at.rounds += 1
                if self.method.trains_model and self.method.improved(at.state):
                    at.best, at.best_round = self.learner.snapshot(weights_only=True), at.rounds
            at.calls += 1
            entry = {**self.method.journal(at.state), **({"failed": failed} if failed else {})}
            if self.on_round is not None:
                self.on_round(at.calls, self.method.total(at.state), entry, self.learner.meter)
            if self.checkpoints is not None:
                self.checkpoints.journal(at.calls, entry)
                # Trials are kept in their cache, so a state without a learner is cheap to save each time.
                if not at.rounds or plans or self.checkpoints.due():
                    self.checkpoints.save(at)
        return False


def _answer_so_far(method: Method[Any, Any], at: _At, cost: Cost, provenance: dict[str, Any], directory: Path) -> None:
    """What a run that somebody stops can already say, beside what it goes on with."""
    place = directory / SO_FAR
    with (
        _undisturbed(),
        contextlib.suppress(Exception),
    ):  # whatever goes wrong here, that the run was stopped is what counts
        recipe = method.recipe(at.state)
        notes = [
            *recipe.evidence.get("notes", []),
            "the selection was stopped before its end; this is what it had seen",
        ]
        changes = {"cost": cost, "provenance": provenance, "evidence": {**recipe.evidence, "notes": notes}}
        place.mkdir(exist_ok=True)
        recipe.model_copy(update=changes).write(place / "recipe.json")


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """By a second signal: some tools send one to the process and one to its group."""
    try:
        before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM)}
    except ValueError:  # not the main thread, which alone hears signals
        before = {}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _speaking(method: Method[Any, Any], call: str) -> AbstractContextManager[None]:
    """Around a method of somebody else: what it raises is said in one sentence. One of ours that raises is a fault of ours."""
    ours = type(method).__module__.startswith("sidequest.")
    return contextlib.nullcontext() if ours else speaking_for(f"method {method.name!r}: {call}")


def _check_recipe(recipe: Any, method: Method[Any, Any], pool: Pool) -> None:
    if not isinstance(recipe, Recipe):
        raise SettingsError(f"method {method.name!r}: recipe: gives a Recipe, found {type(recipe).__name__}")
    for name in recipe.tasks:
        if name not in pool.names:
            raise SettingsError(
                f"method {method.name!r}: recipe: there is no task {name!r}. {nearest(name, pool.names)}"
            )


def check_requirements(method: Method[Any, Any], learner: Learner) -> None:
    """Refuse a method whose needs the model cannot meet, before any work starts."""
    for power in method.requires:
        try:
            learner[power]
        except SettingsError as error:
            raise SettingsError(f"method {method.name!r}: {error}") from None


def check_kind(method: Method[Any, Any], kind_name: str) -> None:
    """The same by the kind of model alone, before anything heavy is imported. A kind may promise what its model then lacks."""
    for power in method.requires:
        if power not in powers_of(kind_name):
            raise SettingsError(f"method {method.name!r}: {has_no(kind_name, power)}")


def _rng(seed: int, call: int) -> np.random.Generator:
    return np.random.default_rng([seed, call])


def forget_checkpoints(directory: Path) -> None:
    """Of a selection whose recipe is written, with what an interrupted one could say before."""
    shutil.rmtree(directory / SO_FAR, ignore_errors=True)
    Checkpoints(directory / SELECTION).remove()


class _Checkpoints:
    """`checkpoints/selection/` and `journal.jsonl` of a run directory."""

    def __init__(self, directory: Path, learner: Learner, method: Method[Any, Any], seconds: float | None) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._journal = directory / "journal.jsonl"
        self._states = Checkpoints(directory / SELECTION, seconds=seconds)
        self._learner = learner
        self._method = method
        self._written, self._hash = 0, hashlib.sha256()  # of the journal
        self.due = self._states.due

    def load(self) -> _At | None:
        loaded = self._states.load()
        if loaded is None or not self._cut_journal(loaded[0]["journal"]):
            self._states.remove()
            self._journal.unlink(missing_ok=True)
            return None
        record, place = loaded
        best = None
        if (place / "best").is_dir():
            self._learner.load(place / "best")
            best = self._learner.snapshot(weights_only=True)
        if (place / "learner").is_dir():
            self._learner.load(place / "learner")
        self._learner.meter = Meter.from_json(record["meter"])
        state = self._method.State.model_validate(record["state"])
        return _At(state, record["calls"], record["rounds"], best, record["best_round"])

    def _cut_journal(self, kept: dict[str, Any]) -> bool:
        """Drop what is about to be replayed. False: the rest is not what was written."""
        try:
            lines = self._journal.read_bytes()[: kept["bytes"]]
        except OSError:
            return False
        self._written, self._hash = len(lines), hashlib.sha256(lines)
        if self._hash.hexdigest() != kept["sha256"]:
            return False
        write_atomically(self._journal, lines)
        return True

    def save(self, at: _At) -> None:
        with self._journal.open("rb") as file:  # on the disk before the state that counts its bytes
            os.fsync(file.fileno())
        parts = {}
        if at.rounds:
            parts["learner"] = SavedLearner(at.rounds, self._learner.save)
        if at.best is not None:
            parts["best"] = SavedLearner(at.best_round, lambda place: self._learner.save(place, at.best))
        self._states.save(
            {
                "state": json.loads(at.state.model_dump_json()),
                "calls": at.calls,
                "rounds": at.rounds,
                "best_round": at.best_round,
                "meter": self._learner.meter.to_json(),
                "journal": {"bytes": self._written, "sha256": self._hash.hexdigest()},
            },
            parts,
        )

    def journal(self, call: int, entry: dict[str, Any]) -> None:
        line = (json.dumps({"call": call, **entry}, sort_keys=True) + "\n").encode()
        with self._journal.open("ab") as file:
            file.write(line)
        self._written += len(line)
        self._hash.update(line)
