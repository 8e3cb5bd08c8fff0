"""DIW: weights moved by what each task alone does for the primary's score.

S. Sivasankaran, E. Vincent, I. Illina. Discriminative Importance Weighting of Augmented Training Data for Acoustic Model
Training. ICASSP 2017; here as described in the αVIL paper (Kourdis et al. 2020, section 4.1), which compares with it.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from pydantic import Field

from sidequest.learning.protocol import Learner
from sidequest.methods.alphavil.reweighting import Reweighting, ReweightingSettings, ReweightingState

PERFECT = 1.0  # the highest value of accuracies, F1 scores and correlations


class DIWSettings(ReweightingSettings):
    """
    rate: the step of a weight per difference in score (scores are between 0 and 1, not per cent).
    patience: how many times an epoch is trained at most before one without improvement is taken. A score that cannot rise ends
        the trials of an epoch at once.
    """

    rate: float = Field(0.1, gt=0)
    patience: int = Field(10, ge=1)


class DIW(Reweighting[DIWSettings, ReweightingState]):
    """An epoch trains every task alone from the same model and scores each result on the primary's *select*; then trains all
    together with their weights. A task that alone did better than all together gains weight, one that did worse loses some. If
    the primary is no better than after the epoch before, the model goes back and the epoch is trained again with the new weights.

    **What the paper leaves open.** The rule: w ← max(w + rate · (score alone − score together), floor), after each joint
    training, also the last of an epoch. After `patience` trainings without improvement the last one is taken. All trainings of
    an epoch see the same rows in the same order.

    **Departures.** A joint training goes through the tasks' batches in random order, one task per batch, with a loss weight of
    w/Σw (Equation 1); where tasks share their inputs the paper sums both losses on one batch.
    """

    name: ClassVar[str] = "diw"
    summary: ClassVar[str] = "retrains each epoch with new task weights until the primary's score improves"
    paper: ClassVar[str] = "Sivasankaran et al. 2017"
    cost: ClassVar[str] = "2 to 1 + patience passes over all tasks per epoch"
    Settings = DIWSettings
    State = ReweightingState

    def round(self, state: ReweightingState, learner: Learner, rng: np.random.Generator) -> ReweightingState:
        settings = self.settings
        before = state.score
        if not state.history:
            state = state.model_copy(update={"batches": self.epoch_batches(state, learner)})
            learner.begin(state.epochs * sum(state.batches))
            before = self.score(state, learner)
        start = learner.snapshot()
        alone = np.empty(len(state.names))
        for i, task in enumerate(state.names):
            learner.train(task, state.batches[i], weight=state.loss_scale[i])
            alone[i] = self.score(state, learner)
            learner.restore(start)
        order = rng.permutation(np.repeat(np.arange(len(state.names)), state.batches))
        weights, attempts = np.array(state.weights), []
        while True:
            shares = weights / weights.sum() * state.loss_scale
            for pick in order:
                learner.train(state.names[pick], 1, weight=float(shares[pick]))
            together = self.score(state, learner)
            attempts.append(together)
            weights = self.bounded(weights + settings.rate * (alone - together))
            if together > before or together >= PERFECT or len(attempts) >= settings.patience:
                break
            learner.restore(start)
        entry = {"alone": alone.tolist(), "attempts": attempts}
        return self.ended(state, weights, together, entry)
