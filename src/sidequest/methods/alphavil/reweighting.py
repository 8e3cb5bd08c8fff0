"""What αVIL and DIW share: a weight per task that is learned epoch by epoch while the model trains, and the best model kept."""

from __future__ import annotations

import math
from typing import Any, ClassVar, TypeVar, cast

import numpy as np
from pydantic import Field

from sidequest.learning.protocol import Learner
from sidequest.methods.base import Method, PaperSettings, Pool, State
from sidequest.recipe import Phase, Recipe
from sidequest.settings import TrainSettings


class ReweightingSettings(PaperSettings):
    """
    epochs: epochs of the method, each of which ends with an evaluation on *select*. None: as many as show the primary's rows
        as often as `train.epochs` says.
    fraction: ρ, the part of every task's train rows that an epoch takes: the next batches of a shuffled pass, so that over
        1/ρ epochs every row is seen once.
    floor: weights never fall below it. The papers' value; a loss weight below zero makes the model worse without bound.
    negligible: an auxiliary task whose final contribution (its share of the weight times its batches) is a smaller part of all
        contributions than this is left out of the recipe.
    rescale: keep the sum of the weights at the number of tasks. Without it all weights can sink to the floor together, where
        their shares are equal again whatever was learned.
    """

    PUBLISHED: ClassVar[dict[str, Any]] = {"rescale": False}

    epochs: int | None = Field(None, ge=1)
    fraction: float = Field(1.0, gt=0, le=1)
    floor: float = Field(1e-6, gt=0)
    negligible: float = Field(0.01, ge=0, lt=1)
    rescale: bool = True


class ReweightingState(State):
    """names: the primary, then the candidates; all lists are in this order. objective: the tasks whose *select* counts.

    epochs: how many there will be. max_batches: the bound on the batches of all epochs together.
    loss_scale: the user's factor on each task's loss, on top of the learned weight.
    batches: of each task in an epoch, known when the first begins. history: one entry per epoch.
    diverged: why the run ended early, where losses were no longer finite.
    """

    names: list[str]
    objective: list[str]
    select_rows: dict[str, int]
    epochs: int
    max_batches: int | None
    loss_scale: list[float]
    weights: list[float]
    batches: list[int] = []
    score: float = -math.inf
    best: float = -math.inf
    best_epoch: int = 0
    history: list[dict[str, Any]] = []
    diverged: str = ""


SettingsT = TypeVar("SettingsT", bound=ReweightingSettings)
StateT = TypeVar("StateT", bound=ReweightingState)


class Reweighting(Method[SettingsT, StateT]):
    """Subclasses write `round`, which ends with `self.ended(...)`."""

    trains_model: ClassVar[bool] = True
    anytime: ClassVar[bool] = True
    returns: ClassVar[str] = "weights, model"

    def start(self, pool: Pool, rng: np.random.Generator) -> StateT:
        names = list(pool.names)
        objective = names if pool.goal == "average" else names[:1]
        epochs = self.settings.epochs or max(1, round(pool.train.epochs / self.settings.fraction))
        return cast(type[StateT], self.State)(
            names=names,
            objective=objective,
            select_rows={name: pool.cards[name].select_rows for name in objective},
            epochs=epochs,
            max_batches=pool.train.max_batches,
            loss_scale=[pool.train.loss_scale.get(name, 1.0) for name in names],
            weights=[1.0] * len(names),
            **self.decided(epochs, pool.train),
        )

    def decided(self, epochs: int, train: TrainSettings) -> dict[str, Any]:
        """Further fields of the state: settings that depend on how the model is trained."""
        return {}

    def epoch_batches(self, state: StateT, learner: Learner) -> list[int]:
        """Batches of each task in an epoch. Where all epochs would exceed `train.max_batches`, the auxiliaries' are cut."""
        primary, *others = (max(1, round(self.settings.fraction * learner.epoch_batches(task))) for task in state.names)
        room = math.inf if state.max_batches is None else state.max_batches / state.epochs - primary
        if others and sum(others) > room:
            others = [max(1, round(n * max(0.0, room) / sum(others))) for n in others]
        return [primary, *others]

    @staticmethod
    def score(state: ReweightingState, learner: Learner) -> float:
        return float(np.mean([learner.evaluate(task) for task in state.objective]))

    def bounded(self, weights: np.ndarray) -> np.ndarray:
        """Weights [K] above the floor and, with `rescale`, with the sum K."""
        weights = np.maximum(weights, self.settings.floor)
        return weights * (len(weights) / weights.sum()) if self.settings.rescale else weights

    def ended(self, state: StateT, weights: np.ndarray, score: float, entry: dict[str, Any]) -> StateT:
        """The state after an epoch with these new weights and this score on *select*."""
        better = score > state.best
        entry = {"weights": weights.tolist(), "score": score, **entry}
        return state.model_copy(
            update={
                "weights": weights.tolist(),
                "score": score,
                "best": max(score, state.best),
                "best_epoch": len(state.history) + 1 if better else state.best_epoch,
                "history": [*state.history, entry],
            }
        )

    def done(self, state: StateT) -> bool:
        return len(state.history) >= state.epochs or bool(state.diverged)

    def improved(self, state: StateT) -> bool:
        return bool(state.history) and state.best_epoch == len(state.history)

    def total(self, state: StateT) -> int:
        return state.epochs

    def journal(self, state: StateT) -> dict[str, Any]:
        if not state.history:
            return {"diverged": state.diverged}
        last = state.history[-1]
        shares = np.array(last["weights"]) / sum(last["weights"])
        return {"score": last["score"], "shares": dict(zip(state.names, shares.round(4).tolist(), strict=True))}

    def recipe(self, state: StateT) -> Recipe:
        """Training on Equation 1: an epoch's batches of every task, with its final share of the weight on the loss."""
        shares = np.array(state.weights) / sum(state.weights)
        # A weight says little by itself: a task with few batches moves the model little, so its weight hardly changes and its
        # share rises as the others' fall. What a task contributes to Equation 1 is its weight times its batches.
        batches = state.batches or [1] * len(shares)
        contributions = shares * batches / (shares * batches).sum()
        others = range(1, len(shares)) if state.history else ()  # before any epoch nothing is known of the auxiliaries
        kept = [0] + [i for i in others if contributions[i] >= self.settings.negligible]
        # The primary stays in the recipe even where training has driven its own weight down (it overfits by then).
        floor = max(self.settings.negligible, self.settings.floor)
        loss_weights = {state.names[i]: max(float(shares[i]), floor) for i in kept}
        phase = Phase(order="shuffle", shares={state.names[i]: batches[i] for i in kept}, weights=loss_weights)
        return Recipe(
            method=self.name,
            primary=state.names[0],
            phases=(phase,),
            evidence={
                "tasks": state.names,
                "weights": dict(zip(state.names, state.weights, strict=True)),
                "contributions": dict(zip(state.names, contributions.round(6).tolist(), strict=True)),
                "best_score": state.best,
                "best_epoch": state.best_epoch,
                "epochs": state.history,
            },
            verdict="; ".join(filter(None, [self._decided(state, contributions, kept), state.diverged])),
        )

    @staticmethod
    def _decided(state: ReweightingState, contributions: np.ndarray, kept: list[int]) -> str:
        return _verdict(state.names, contributions, kept) if state.history else "no weights were learned"


def _verdict(names: list[str], contributions: np.ndarray, kept: list[int]) -> str:
    if len(names) == 1:
        return "there are no candidates"
    if len(kept) == 1:
        return "no auxiliary helps: the weight of every candidate has gone to zero"
    order = sorted(kept[1:], key=lambda i: (-contributions[i], names[i]))
    parts = [f"{names[i]} ({contributions[i]:.0%} of the weighted batches)" for i in order]
    dropped = sorted(set(names) - {names[i] for i in kept})
    return f"train with {', '.join(parts)}" + (f"; leave out {', '.join(dropped)}" if dropped else "")
