"""Merge-to-Mix: merged updates as a stand-in for training on a mixture.

Z. M. Tao, K. Mason, S. Kulkarni, X. Boix. Merge to Mix: Mixing Datasets via Model Merging. 2025 (arXiv 2505.16066).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from pydantic import Field

from sidequest.formatting import fixed
from sidequest.learning.protocol import Deltas, Learner
from sidequest.methods.base import Method, Pool, State
from sidequest.methods.baselines import one_to_one
from sidequest.recipe import Recipe
from sidequest.settings import Settings

Loss = Callable[[tuple[str, ...]], float]


class MergeToMixSettings(Settings):
    """warmup: the part of the primary's training that comes before the updates are collected, for a shared start that can be
        merged around.
    scale: the factor on the merged auxiliary updates.
    exhaustive: up to this many candidates every subset is evaluated; beyond that the best one is added as long as the loss falls.
    """

    warmup: float = Field(0.3, ge=0, lt=1)
    scale: float = Field(0.5, gt=0)
    exhaustive: int = Field(6, ge=0, le=12)


class MergeToMixState(State):
    """losses: (auxiliaries, the primary's loss on *select* with their updates merged in)."""

    primary: str
    candidates: list[str]
    epochs: float
    losses: list[tuple[list[str], float]] = []
    finished: bool = False


class MergeToMix(Method[MergeToMixSettings, MergeToMixState]):
    """Every source is trained once from a shared start; the model that a mixture would give is stood in for by the merged
    updates, so every subset costs one evaluation on *select*.

    Departures: the paper averages whole models. Here only the primary's update moves the primary's head, so an average would take
    away from it with every auxiliary; the primary's update is taken whole and the *mean* of the auxiliaries' updates is added,
    times `scale`. The start is the primary's own warm-up, because a model without pretraining has no start that can be merged
    around. All in one round: updates are not plain data, so that a killed run starts again.
    """

    name = "merge-to-mix"
    summary = "trains each source once and merges the updates as a stand-in for mixtures; keeps the best on select"
    paper = "Tao et al. 2025, Merge to Mix: Mixing Datasets via Model Merging"
    cost = "1x for each task, and a look at select for each subset"
    requires = (Deltas,)
    Settings = MergeToMixSettings
    State = MergeToMixState

    def start(self, pool: Pool, rng: np.random.Generator) -> MergeToMixState:
        names = sorted(pool.candidates)
        return MergeToMixState(primary=pool.primary, candidates=names, epochs=pool.train.epochs, finished=not names)

    def round(self, state: MergeToMixState, learner: Learner, rng: np.random.Generator) -> MergeToMixState:
        whole = max(2, round(state.epochs * learner.epoch_batches(state.primary)))
        before = min(whole - 1, round(whole * self.settings.warmup))
        learner.begin(whole)
        if before:
            learner.train(state.primary, before)
        power, names = learner[Deltas], [state.primary, *state.candidates]
        power.begin_deltas(dict.fromkeys(names, whole - before))
        deltas = [power.collect_delta(name, whole - before) for name in names]
        losses: dict[tuple[str, ...], float] = {}

        def loss(chosen: tuple[str, ...]) -> float:
            if chosen not in losses:
                alphas = merged_alphas(state.candidates, chosen, self.settings.scale)
                losses[chosen] = power.merged_loss(state.primary, deltas, alphas)[0]
            return losses[chosen]

        if len(state.candidates) <= self.settings.exhaustive:
            for size in range(len(state.candidates) + 1):
                for chosen in itertools.combinations(state.candidates, size):
                    loss(chosen)
        else:
            grow(state.candidates, loss)
        return state.model_copy(
            update={"losses": [(list(chosen), value) for chosen, value in losses.items()], "finished": True}
        )

    def done(self, state: MergeToMixState) -> bool:
        return state.finished

    def total(self, state: MergeToMixState) -> int:
        return int(bool(state.candidates))

    def journal(self, state: MergeToMixState) -> dict[str, Any]:
        return {"subsets": len(state.losses)}

    def recipe(self, state: MergeToMixState) -> Recipe:
        best, lowest = min(state.losses, key=lambda one: (one[1], len(one[0]), one[0]), default=([], math.nan))
        alone = next((value for chosen, value in state.losses if not chosen), math.nan)
        said = f"loss on select {fixed(lowest, 4)} with the updates of {', '.join(best)} merged in, {fixed(alone, 4)} without"
        return Recipe(
            method=self.name,
            primary=state.primary,
            phases=(one_to_one(state.primary, best),),
            evidence={"merged": [{"tasks": chosen, "loss": value} for chosen, value in state.losses]},
            verdict=said if best else "no merged update lowers the loss on select",
        )


def merged_alphas(candidates: list[str], chosen: tuple[str, ...], scale: float) -> np.ndarray:
    """Of the primary's update 1, of each chosen auxiliary's an equal part of `scale`, of the others' 0."""
    each = scale / len(chosen) if chosen else 0.0
    return np.array([1.0, *(each if name in chosen else 0.0 for name in candidates)])


def grow(candidates: list[str], loss: Loss) -> None:
    """Look at nothing, then add the best candidate again and again until the loss no longer falls."""
    chosen: tuple[str, ...] = ()
    lowest = loss(chosen)
    while len(chosen) < len(candidates):
        wider = [tuple(sorted((*chosen, name))) for name in candidates if name not in chosen]
        best = min(wider, key=lambda one: (loss(one), one))
        if loss(best) >= lowest:
            return
        chosen, lowest = best, loss(best)
