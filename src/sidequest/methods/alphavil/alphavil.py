"""αVIL: weights learned from the model updates that each task really makes.

R. Kourdis, G. Gordon-Hall, P. J. Gorinski. αVIL: Learning to Leverage Auxiliary Tasks for Multitask Learning. 2020.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from sidequest.learning.protocol import Delta, Deltas, Learner
from sidequest.methods.alphavil.reweighting import Reweighting, ReweightingSettings, ReweightingState
from sidequest.settings import TrainSettings


class AlphaVILSettings(ReweightingSettings):
    """
    alpha_steps: s of Algorithm 1. 0: the changes are taken as they are, and every weight stays 1.
    alpha_rate: of the SGD that tunes α. The paper has 0.005 for 100 epochs of images, 0.001 for text. `auto`: the more the fewer
        epochs there are to move the weights in, 0.5 / epochs, between 0.005 and 0.05.
    alpha_momentum: of the same SGD; the paper has 0.5.
    tuning_rows: an α-step looks at all of *select* if it has at most this many rows, otherwise at this many of a fresh shuffle.
    optimizer_state: `kept`: each task's optimiser goes on from epoch to epoch; `fresh`: it starts again in each.
    weight_on: `loss`: a task's share of the weight multiplies its loss, as in the paper; `rate`: its learning rate. For SGD they
        are the same; AdamW takes equal steps whatever the loss is multiplied by, so that only `rate` makes its steps smaller.
        `auto`: `rate` for AdamW, `loss` for SGD.
    """

    PUBLISHED: ClassVar[dict[str, Any]] = {"alpha_rate": 0.005, "weight_on": "loss"}

    alpha_steps: int = Field(10, ge=0)
    alpha_rate: Literal["auto"] | Annotated[float, Field(gt=0, allow_inf_nan=False)] = "auto"
    alpha_momentum: float = Field(0.5, ge=0, lt=1)
    tuning_rows: int = Field(1024, ge=1)
    optimizer_state: Literal["kept", "fresh"] = "kept"
    weight_on: Literal["auto", "loss", "rate"] = "auto"


class AlphaVILState(ReweightingState):
    """alpha_rate, weight_on: the settings, with `auto` decided."""

    alpha_rate: float
    weight_on: Literal["loss", "rate"]


class AlphaVIL(Reweighting[AlphaVILSettings, AlphaVILState]):
    """Algorithm 1. An epoch collects, from the same θ, what training on each task would change; finds a mixture of these changes
    that is better for the primary's *select* loss; takes it; and moves each task's weight by what its change was scaled with.

    **What the paper leaves open.** α starts at 1 in each epoch (line 11 implies it), and so does its momentum at 0. The tasks'
    optimiser states are kept between epochs. Which development rows an α-step sees: see `tuning_rows`. Dropout is off while α is
    tuned. Statistics of batch-norm are averaged over the tasks by weight, not extrapolated by α.

    **Departures.** An epoch's rows are the next part of a shuffled pass, not an independent draw, so that all rows are seen
    equally often. With the goal `average` the loss is the mean over all tasks. Weights are rescaled to their old sum after each
    epoch (`rescale`), their rate depends on the number of epochs, and under AdamW they act on the learning rate. An epoch whose
    losses are not finite is not taken, and ends the run.
    """

    name: ClassVar[str] = "alphavil"
    summary: ClassVar[str] = "learns task weights by tuning a mixture of the tasks' own model updates"
    paper: ClassVar[str] = "Kourdis et al. 2020"
    cost: ClassVar[str] = "1 pass over all tasks per epoch"
    requires: ClassVar[tuple[type, ...]] = (Deltas,)
    Settings = AlphaVILSettings
    State = AlphaVILState

    def decided(self, epochs: int, train: TrainSettings) -> dict[str, Any]:
        rate, on = self.settings.alpha_rate, self.settings.weight_on
        return {
            "alpha_rate": scaled_rate(epochs) if rate == "auto" else rate,
            "weight_on": ("rate" if train.optimizer == "adamw" else "loss") if on == "auto" else on,
        }

    def round(self, state: AlphaVILState, learner: Learner, rng: np.random.Generator) -> AlphaVILState:
        power, settings = learner[Deltas], self.settings
        if not state.history:
            state = state.model_copy(update={"batches": self.epoch_batches(state, learner)})
            totals = [state.epochs * n for n in state.batches]
            power.begin_deltas(dict(zip(state.names, totals, strict=True)))
        weights = np.array(state.weights)
        deltas = [
            power.collect_delta(
                state.names[i],
                state.batches[i],
                weight=state.loss_scale[i] * (share if state.weight_on == "loss" else 1.0),
                rate=share if state.weight_on == "rate" else 1.0,
                keep_optimizer=settings.optimizer_state == "kept",
            )
            for i, share in enumerate((weights / weights.sum()).tolist())  # lines 3 to 6
        ]
        alphas, losses = self._tune(state, power, deltas, rng)
        if not np.isfinite([*alphas, *losses]).all():
            why = f"ended in epoch {len(state.history) + 1}, where the loss on select was no longer finite"
            return state.model_copy(update={"diverged": why})
        power.apply_deltas(deltas, alphas)  # line 10
        weights = self.bounded(weights + (alphas - 1))  # line 11
        entry = {"alphas": alphas.tolist(), "losses": losses}
        return self.ended(state, weights, self.score(state, learner), entry)

    def _tune(
        self, state: AlphaVILState, learner: Deltas, deltas: list[Delta], rng: np.random.Generator
    ) -> tuple[np.ndarray, list[float]]:
        """Lines 8 and 9: α after s steps of SGD with momentum, and the *select* loss before each step.

        Without steps there is still one look, since it tells whether the changes are finite.
        """
        settings = self.settings
        alphas, velocity = np.ones(len(deltas)), np.zeros(len(deltas))
        rows = {task: _row_batches(state.select_rows[task], settings, rng) for task in state.objective}
        losses = []
        for step in range(_looks(settings)):
            found = [learner.merged_loss(task, deltas, alphas, rows[task][step]) for task in state.objective]
            losses.append(float(np.mean([loss for loss, _ in found])))
            if settings.alpha_steps:
                velocity = settings.alpha_momentum * velocity + np.mean([gradient for _, gradient in found], axis=0)
                alphas = alphas - state.alpha_rate * velocity
        return alphas, losses


def scaled_rate(epochs: int) -> float:
    """A rate of α with which its weight can move as far in few epochs as the paper's in 100, within bounds."""
    return min(0.05, max(0.005, 0.5 / epochs))


def _looks(settings: AlphaVILSettings) -> int:
    """At *select* in an epoch, one before each α-step."""
    return max(1, settings.alpha_steps)


def _row_batches(rows: int, settings: AlphaVILSettings, rng: np.random.Generator) -> list[np.ndarray | None]:
    """The *select* rows of each look; None: all of them."""
    looks = _looks(settings)
    if rows <= settings.tuning_rows:
        return [None] * looks
    per_pass = rows // settings.tuning_rows
    batches: list[np.ndarray | None] = []
    while len(batches) < looks:
        order = rng.permutation(rows)[: per_pass * settings.tuning_rows]
        batches += np.split(order, per_pass)
    return batches[:looks]
