"""The contract of a method (`sidequest.methods.base`), as one function.

The method runs on a simulated learner, in milliseconds. A method that needs more of a learner (`requires`) brings its
own `make_learner`.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sidequest.learning.fit import fit, single_run_work
from sidequest.methods import get_method
from sidequest.methods.base import Method
from sidequest.methods.registry import checked
from sidequest.recipe import Recipe
from sidequest.runs.driver import run_method
from sidequest.search.trials import LocalTrials, TrialRunner
from sidequest.settings import TrainSettings, parse
from sidequest.simulation.learner import SimulatedLearner, Simulation, simulated_card
from sidequest.testing.any_order import trials_in_any_order

CANDIDATES = ("close", "far", "harmful", "near")
TRAIN = TrainSettings(epochs=2, patience=None)

MOST_CALLS = 10_000  # a method that makes more never ends
KILLED_EVERYWHERE = 12  # up to this many calls a run is killed after each of them, else here and there

MakeLearner = Callable[[Sequence[str], int], Any]  # (candidates in this order, seed) → a learner that has a `pool`


def simulated_learner(candidates: Sequence[str] = CANDIDATES, seed: int = 0) -> SimulatedLearner:
    """Four candidates: two that help, one that does nothing, one that harms; of different sizes, kinds and lengths."""
    cards = {
        "primary": simulated_card("primary", 320, kind="a", mean_words=10),
        "close": simulated_card("close", 640, kind="a", mean_words=12),
        "far": simulated_card("far", 480, kind="b", mean_words=30),
        "harmful": simulated_card("harmful", 800, kind="b", mean_words=20),
        "near": simulated_card("near", 960, kind="a", mean_words=9.5),
    }
    effect = {"primary": 0.4, "close": 0.3, "near": 0.15, "far": 0.0, "harmful": -0.2}
    names = ["primary", *candidates]
    transfer = np.diag(np.full(len(names), 0.5))
    transfer[0] = [effect[name] for name in names]
    ceilings = np.full(len(names), 0.95)
    return SimulatedLearner(
        Simulation(tuple(cards[name] for name in names), transfer, ceilings, noise=0.005), seed=seed
    )


def check_method(
    method: str | type[Method[Any, Any]],
    *,
    settings: dict[str, Any] | None = None,
    make_learner: MakeLearner = simulated_learner,
    budget_x: float | None = None,
    fresh_process: bool = True,
) -> Recipe:
    """Check that a method keeps the contract, and return the recipe that it gave.

    The recipe is valid, survives JSON and can be trained; *report* is refused; equal seeds give equal recipes, also in a fresh
    process; neither the order of the candidates, nor being killed and resumed, nor the number of workers and the order in which
    trials end changes them; settings stay as they are; the
    method does not make more calls than its `total` says, and no work if its `cost` is "0x"; one candidate or none will do.

    Args:
        method: Its name or class.
        settings: Small ones, so that the check is quick.
        make_learner: Makes a learner from candidates and a seed. A module-level function, so that a fresh process finds it.
        budget_x: What the method says that it costs at most, in x.
        fresh_process: Whether to compare with a run in a fresh process, which takes a second or two.

    Returns:
        The recipe of the first run.
    """
    cls = get_method(method) if isinstance(method, str) else checked(method, "method")
    parse(cls.Settings, settings or {}, cls.__name__)
    recipe = run(cls, settings, make_learner)
    _is_valid(recipe, cls)
    _can_be_trained(recipe, make_learner(CANDIDATES, 0))
    assert run(cls, settings, make_learner).to_json() == recipe.to_json(), "the same seed must give the same recipe"
    shuffled = run(cls, settings, make_learner, candidates=CANDIDATES[::-1])
    assert shuffled.to_json() == recipe.to_json(), "the recipe depends on the order of the candidates in the suite"
    for workers in (2, 5):
        many = run(cls, settings, make_learner, workers=workers)
        assert many.to_json() == recipe.to_json(), (
            f"with {workers} workers, whose results come in another order, the method gives another recipe: `ask` may name only "
            "plans that follow from the state whatever the scores of the plans before them, and never decide by `n`"
        )
    _resumes(cls, settings, make_learner, recipe)
    for few in ((), CANDIDATES[:1]):
        _is_valid(run(cls, settings, make_learner, candidates=few), cls, few)
    if cls.cost == "0x":
        assert not recipe.cost.batches, f"the method says that it costs 0x, but trained {recipe.cost.batches} batches"
    if budget_x is not None:
        assert recipe.cost.x <= budget_x, f"the method spent {recipe.cost.x}x of {budget_x}x"
    if fresh_process:
        _same_in_a_fresh_process(cls, settings, make_learner, recipe)
    return recipe


class _Killed(Exception):
    pass


def run(
    cls: type[Method[Any, Any]],
    settings: dict[str, Any] | None,
    make_learner: MakeLearner = simulated_learner,
    *,
    candidates: Sequence[str] = CANDIDATES,
    seed: int = 3,
    directory: Path | None = None,
    kill_after: int | None = None,
    workers: int = 1,
) -> Recipe:
    """Drive a method on a simulated learner; *report* is refused, states go through JSON, and it can be killed."""
    method = cls(parse(cls.Settings, settings or {}, cls.__name__), seed=seed)
    before = method.settings.model_dump_json()
    learner = make_learner(candidates, seed)
    pool = learner.pool(TRAIN)
    primary = pool.cards[pool.primary]

    def on_round(done: int, total: int | None, entry: dict[str, Any], meter: Any) -> None:
        json.dumps(entry)  # the journal must be plain
        assert total is None or done <= total, f"`total` says {total} rounds and trials, the method is at {done}"
        assert done < MOST_CALLS, (
            f"the method has made {done} calls and is not done: look at `done`, or check with less"
        )
        if kill_after is not None and done >= kill_after:
            raise _Killed

    recipe = run_method(
        method,
        learner,
        pool,
        _trials(learner, workers),
        single_run_work=single_run_work(primary.rows, primary.select_rows, TRAIN),
        directory=directory,
        checkpoint_seconds=0.0,
        on_round=on_round,
    )
    assert method.settings.model_dump_json() == before, "a method must not change its settings"
    return recipe


def _trials(learner: Any, workers: int) -> TrialRunner:
    local = LocalTrials(learner, TRAIN)
    return local if workers == 1 else trials_in_any_order(lambda plan: local.run([plan])[0], workers)


def _is_valid(recipe: Recipe, cls: type[Method[Any, Any]], candidates: Sequence[str] = CANDIDATES) -> None:
    assert recipe.method == cls.name, f"the recipe says it is by {recipe.method!r}, the method is {cls.name!r}"
    assert recipe.primary == "primary", f"the recipe's primary is {recipe.primary!r}, not 'primary'"
    unknown = set(recipe.tasks) - {"primary", *candidates}
    assert not unknown, f"the recipe trains on tasks that do not exist: {sorted(unknown)}"
    assert recipe.primary in recipe.tasks, "the recipe never trains on the primary"
    assert Recipe(**json.loads(recipe.to_json())).to_json() == recipe.to_json(), "the recipe does not survive JSON"


def _can_be_trained(recipe: Recipe, learner: Any) -> None:
    score = fit(learner, recipe.phases, TRAIN, seed=0).score
    assert np.isfinite(score), f"training the recipe ends with a score of {score}"


def _resumes(cls: type[Method[Any, Any]], settings: dict[str, Any] | None, make: MakeLearner, recipe: Recipe) -> None:
    """Kill after every call (of many: the first, the last and two between), and resume from the directory."""
    with tempfile.TemporaryDirectory() as place:
        whole = Path(place) / "whole"
        run(cls, settings, make, directory=whole)
        journal = whole / "journal.jsonl"
        calls = len(journal.read_text().splitlines()) if journal.exists() else 0
        few = {1, calls // 3, 2 * calls // 3, calls}
        for stop in sorted(few if calls > KILLED_EVERYWHERE else range(1, calls + 1)):
            directory = Path(place) / f"stop-{stop}"
            with contextlib.suppress(_Killed):
                run(cls, settings, make, directory=directory, kill_after=stop)
            resumed = run(cls, settings, make, directory=directory)
            assert resumed.to_json() == recipe.to_json(), (
                f"killed after call {stop} of {calls} and resumed, the method gives another recipe: "
                "is all of its state in `State`, and every random draw from the `rng` of its call?"
            )


def _same_in_a_fresh_process(
    cls: type[Method[Any, Any]], settings: dict[str, Any] | None, make: MakeLearner, recipe: Recipe
) -> None:
    request = {
        "method": [cls.__module__, cls.__qualname__],
        "make": [make.__module__, make.__qualname__],
        "settings": settings,
    }
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONHASHSEED": "random"}
    command = [sys.executable, "-m", "sidequest.testing.check_method"]
    done = subprocess.run(command, input=json.dumps(request), capture_output=True, text=True, env=environment)
    assert done.returncode == 0, f"the method fails in a fresh process:\n{done.stderr}"
    assert done.stdout == recipe.to_json(), (
        "a fresh process gives another recipe: does it depend on hashing or on global state?"
    )


def _answer_a_fresh_process() -> None:
    import importlib

    request = json.load(sys.stdin)
    cls, make = (
        getattr(importlib.import_module(module), name) for module, name in (request["method"], request["make"])
    )
    sys.stdout.write(run(cls, request["settings"], make).to_json())


if __name__ == "__main__":
    _answer_a_fresh_process()
