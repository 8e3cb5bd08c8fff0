"""The driver runs a method round by round: it saves, resumes, meters and shows progress, so that methods need not.

A checkpoint is one JSON file with the method's state, the meter and the name of a directory with the learner's state. The
learner is saved by time, not after every round; what came after the last checkpoint is replayed, and because a round is a
function of (state, learner, seed, number of the round), the replay gives the same bytes. For a method that trains the model
itself the best weights so far are kept and saved in the same way.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sidequest.errors import SettingsError
from sidequest.files import read_json, write_atomically, write_json
from sidequest.learning.guard import guard
from sidequest.learning.meter import Meter
from sidequest.learning.protocol import Learner, Snapshot
from sidequest.methods.base import Method, Pool, State
from sidequest.recipe import Phase, Recipe
from sidequest.search.trials import TrialRunner

TRAINED = "trained"  # the weights of a method that trains the model itself, in its run directory

OnRound = Callable[[int, int | None, dict[str, Any], Meter], None]  # (calls done, calls in all, journal entry, meter)


@dataclass
class _At:
    """Where a run stands. `calls` counts rounds and tells; `rounds` only those that moved the learner.

    best: the weights that a method which trains the model wants kept, of round `best_round`.
    """

    state: State
    calls: int = 0
    rounds: int = 0
    learner_saved: str | None = None
    best: Snapshot | None = None
    best_round: int = 0
    best_saved: str | None = None


def run_method(
    method: Method[Any, Any],
    learner: Learner,
    pool: Pool,
    trials: TrialRunner,
    *,
    single_run_work: float,
    provenance: dict[str, Any] | None = None,
    directory: Path | None = None,
    parallel: int = 1,
    budget: float | None = None,
    checkpoint_seconds: float = 60.0,
    on_round: OnRound | None = None,
) -> Recipe:
    """Run a method to its end and return its recipe; with a directory, continue what was begun there.

    If the method trains the model itself, the learner ends with its best weights, saved in `directory/trained`.
    budget: stop when the selection has cost this much, in x. A method that can decide at any time then decides by what it has
        seen; any other has no decision, and its recipe is the primary alone. The recipe's provenance says so.
    """
    check_requirements(method, learner)
    guarded = guard(learner)
    checkpoints = None if directory is None else _Checkpoints(directory, learner, method)
    at = checkpoints.load() if checkpoints is not None else None
    if at is None:
        learner.meter = Meter()
        at = _At(method.start(pool, _rng(method.seed, 0)))
    saved = time.monotonic()
    stopped = False
    while not method.done(at.state):
        if budget is not None and learner.meter.cost(single_run_work).x >= budget:
            stopped = True
            break
        plans = method.ask(at.state, parallel)
        if plans:
            for plan, result in zip(plans, trials.run(plans), strict=True):
                at.state = method.tell_rows(at.state, plan, result.score, result.truth)
                learner.meter.add(result.meter)
                learner.meter.trials_reused += result.reused
        else:
            at.state = method.round(at.state, guarded, _rng(method.seed, at.calls + 1))
            at.rounds += 1
            if method.trains_model and method.improved(at.state):
                at.best, at.best_round = learner.snapshot(weights_only=True), at.rounds
        at.calls += max(1, len(plans))
        entry = method.journal(at.state)
        if on_round is not None:
            on_round(at.calls, method.total(at.state), entry, learner.meter)
        if checkpoints is not None:
            checkpoints.journal(at.calls, entry)
            # Trials are kept in their cache, so a state without a learner is cheap to save each time.
            if not at.rounds or plans or time.monotonic() - saved >= checkpoint_seconds:
                checkpoints.save(at)
                saved = time.monotonic()
    if at.best is not None:
        learner.restore(at.best)
        if directory is not None:
            learner.save(directory / TRAINED, at.best)
    if directory is not None:
        for name, data in method.artifacts(at.state).items():
            write_atomically(directory / name, data)
    if stopped and not (method.anytime and at.calls):
        recipe = Recipe(method=method.name, primary=pool.primary, phases=(Phase(shares={pool.primary: 1}),))
    else:
        recipe = method.recipe(at.state)
    noted = {"stopped_by_budget": budget} if stopped else {}
    changes = {"cost": learner.meter.cost(single_run_work), "provenance": {**(provenance or {}), **noted}}
    return Recipe(**{**recipe.model_dump(), **changes})


def check_requirements(method: Method[Any, Any], learner: Learner) -> None:
    """Refuse a method whose needs the model cannot meet, before any work starts."""
    for power in method.requires:
        try:
            learner[power]
        except SettingsError as error:
            raise SettingsError(f"method {method.name!r}: {error}") from None


def _rng(seed: int, call: int) -> np.random.Generator:
    return np.random.default_rng([seed, call])


class _Checkpoints:
    """`checkpoints/` and `journal.jsonl` of a run directory."""

    def __init__(self, directory: Path, learner: Learner, method: Method[Any, Any]) -> None:
        self._journal = directory / "journal.jsonl"
        self._directory = directory / "checkpoints"
        self._learner = learner
        self._method = method
        self._saved_rounds = 0

    def load(self) -> _At | None:
        path = self._directory / "state.json"
        data = read_json(path) if path.exists() else None
        done = 0 if data is None else data["calls"]
        if self._journal.exists():  # drop what is about to be replayed
            lines = self._journal.read_text(encoding="utf-8").splitlines(keepends=True)
            kept = [line for line in lines if line.endswith("\n") and json.loads(line)["call"] <= done]
            self._journal.write_text("".join(kept), encoding="utf-8")
        if data is None:
            return None
        best = None
        if data["best"] is not None:
            self._learner.load(self._directory / data["best"])
            best = self._learner.snapshot(weights_only=True)
        if data["learner"] is not None:
            self._learner.load(self._directory / data["learner"])
        self._learner.meter = Meter.from_json(data["meter"])
        self._saved_rounds = data["rounds"]
        state = self._method.State.model_validate(data["state"])
        return _At(state, data["calls"], data["rounds"], data["learner"], best, int(data["best_round"]), data["best"])

    def save(self, at: _At) -> None:
        if at.rounds > self._saved_rounds:
            at.learner_saved = f"learner-{at.rounds}"
            self._learner.save(self._directory / at.learner_saved)
            self._saved_rounds = at.rounds
        if at.best is not None and at.best_saved != (name := f"best-{at.best_round}"):
            self._learner.save(self._directory / name, at.best)
            at.best_saved = name
        write_json(
            self._directory / "state.json",
            {
                "state": json.loads(at.state.model_dump_json()),
                "calls": at.calls,
                "rounds": at.rounds,
                "learner": at.learner_saved,
                "best": at.best_saved,
                "best_round": at.best_round,
                "meter": self._learner.meter.to_json(),
            },
        )
        for old in self._directory.iterdir():  # only after the new ones are complete and named
            if old.name.startswith(("learner-", "best-")) and old.name not in (at.learner_saved, at.best_saved):
                shutil.rmtree(old)

    def journal(self, call: int, entry: dict[str, Any]) -> None:
        self._journal.parent.mkdir(parents=True, exist_ok=True)
        with self._journal.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"call": call, **entry}, sort_keys=True) + "\n")
