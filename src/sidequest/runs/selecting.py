"""Run a method on a suite: from settings to a recipe, in a directory or in memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from sidequest.files import write_json
from sidequest.methods import get_method
from sidequest.methods.base import Method
from sidequest.recipe import Recipe
from sidequest.runs.directory import open_run
from sidequest.runs.driver import OnRound, run_method
from sidequest.runs.setup import Setup
from sidequest.search.evidence_cache import EvidenceCache
from sidequest.search.trials import LocalTrials
from sidequest.settings import parse


def make_method(name: str, settings: dict[str, Any] | None = None, seed: int = 0) -> Method[Any, Any]:
    """A method by name, its settings checked."""
    cls = get_method(name)
    return cls(parse(cls.Settings, settings or {}, f"method {name!r}"), seed=seed)


def select(
    setup: Setup,
    method: str,
    *,
    settings: dict[str, Any] | None = None,
    seed: int = 0,
    directory: Path | None = None,
    on_round: OnRound | None = None,
    on_batches: Callable[[str, int, int, float | None], None] | None = None,
) -> Recipe:
    """The method's recipe for the suite. A directory keeps the run: the same call continues or finds it."""
    chosen = make_method(method, settings, seed)
    plain = chosen.settings.model_dump(mode="json")
    if directory is not None and open_run(directory, setup, method, plain, seed):
        done = directory / "recipe.json"
        if done.exists():
            return Recipe.read(done)
    learner = setup.learner(seed)
    learner.head_cache = heads = EvidenceCache(setup.facts_alone)
    trials = LocalTrials(learner, setup.train, goal=setup.suite.goal, facts=setup.facts, on_batches=on_batches)
    recipe = run_method(
        chosen,
        learner,
        setup.pool,
        trials,
        single_run_work=setup.single_run_work,
        provenance=setup.provenance(method, plain, seed),
        directory=directory,
        on_round=on_round,
    )
    if directory is not None:
        recipe.write(directory / "recipe.json")
        # What was reused depends on what ran before: it stands here, not in the recipe.
        found = {"heads": heads.summary()} if heads.summary() else {}
        write_json(directory / "selection.json", {"meter": learner.meter.to_json(), **found})
    return recipe
