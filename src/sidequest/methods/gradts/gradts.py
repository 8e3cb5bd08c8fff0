"""GradTS: choose tasks, and rows of them, whose important attention heads are the primary's. Ma et al. (2021).

1. *Head ranking* (section 3.1). A model is warmed up on each task alone; one more pass without updates adds up the absolute
   gradient at each head. Each layer is normalised, and the matrix is scaled to [0, 1].
2. *Task ranking* (section 3.2). A candidate's correlation is Kendall's τ of its matrix with the primary's.
3. *Selection* (section 3.3 and appendix B). `gradts-thres`: all candidates with τ of at least a threshold. `gradts-trial`: from
   the most correlated on, add candidates while *select* does not fall. `gradts-fg`: of the tasks that the trials chose, the rows
   whose own matrix correlates with the primary's.

Steps 1 and 2 are in `head_ranking`.

Departures
----------
- The gradient is Michel et al.'s (2019), which the paper cites: of a factor on each head's output, in evaluation mode, absolute
  per row. The released code cuts weight gradients of keys and values into slices that are not heads.
- A layer is divided by its L2 norm (Michel et al.); `norm=sum` is the released code's way.
- Rows are compared with the matrix of the *primary*. The paper says "of each candidate auxiliary task", which could not serve
  the primary.
- Rows are scored in the pass that ranks the tasks; the paper makes another one.
- The trials begin with the primary alone, and of equally good sets the smallest is taken: a candidate must help to be chosen.
- The thresholds 0.47 and 0.42 were tuned for bert-base-cased on GLUE and mean little elsewhere: τ depends on the encoder, its
  number of heads and the size of the data. `quantile` sets the threshold from the τ at hand instead.
- An auxiliary gives at most `cap` times as many batches as the primary (1 by default); MT-DNN, the paper's trainer, passes over
  all rows of all tasks in each epoch, whatever their number: `cap=null`.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from pydantic import Field

from sidequest.evidence import Additions
from sidequest.learning.protocol import HeadImportance, Learner
from sidequest.methods.base import Plan, State
from sidequest.methods.gradts.head_ranking import GradTS, RankingSettings, RankingState, scale_importance
from sidequest.methods.gradts.heuristics import fell
from sidequest.numerics.kendall import kendall_tau
from sidequest.recipe import Recipe

BINS = np.linspace(-1, 1, 41)  # of the histograms of rows' τ in the evidence


class ThresSettings(RankingSettings):
    """threshold: the least τ of a candidate that is chosen.
    quantile: take the threshold at this quantile of the candidates' τ instead (0.5: the upper half).
    """

    threshold: float = Field(0.47, ge=-1, le=1)
    quantile: float | None = Field(None, ge=0, le=1)


class TrialSettings(RankingSettings):
    """patience: how many falls of *select* in a row end the trials; null: every set along the ranking is tried."""

    patience: int | None = Field(1, ge=1)


class FgSettings(TrialSettings):
    """threshold: the least τ of a row that is kept.
    quantile: take the threshold at this quantile of the τ of all rows of the chosen tasks instead.
    """

    threshold: float = Field(0.42, ge=-1, le=1)
    quantile: float | None = Field(None, ge=0, le=1)


class TrialState(RankingState):
    """scores: on *select*, with the first 0, 1, 2, … candidates of the ranking."""

    scores: list[float] = []


class RowScores(State):
    """kept: ids of the rows with τ of at least the threshold. histogram: rows per bin of τ. unranked: rows without any order."""

    rows: int
    kept: list[int]
    mean: float
    histogram: list[int]
    unranked: int


class FgState(TrialState):
    threshold: float | None = None
    instances: dict[str, RowScores] = {}


class GradTSThres(GradTS[ThresSettings, RankingState]):
    """Appendix B: every candidate whose τ reaches a threshold. No trials."""

    name = "gradts-thres"
    summary = "candidates whose important attention heads are the primary's (Kendall's τ above a threshold)"
    cost = "(warm-up + 1) epochs of every task"
    returns = "tasks"
    Settings = ThresSettings
    State = RankingState

    def done(self, state: RankingState) -> bool:
        return state.ranked

    def recipe(self, state: RankingState) -> Recipe:
        taus = self._taus(state)
        threshold = self.settings.threshold
        if self.settings.quantile is not None and taus:
            threshold = float(np.quantile(list(taus.values()), self.settings.quantile))
        chosen = [name for name in self._ranking(state) if taus[name] >= threshold]
        best = max(taus.values(), default=-1.0)
        verdict = f"{len(chosen)} of {len(taus)} candidates reach τ {threshold:.2f}; the highest is {best:.2f}"
        return self._recipe(state, self._phase(state, chosen), verdict, threshold=threshold)


TrialSettingsT = TypeVar("TrialSettingsT", bound=TrialSettings)
TrialStateT = TypeVar("TrialStateT", bound=TrialState)


class GradTSTrials(GradTS[TrialSettingsT, TrialStateT]):
    """Greedy trials along the ranking, for `gradts-trial` and `gradts-fg`."""

    def ask(self, state: TrialStateT, n: int) -> list[Plan]:
        if not state.ranked or self._tried(state):
            return []
        # The primary alone and the first candidate are needed in any case; after that each trial depends on the last.
        wanted = 2 if n > 1 and not state.scores and state.candidates else 1
        ranking, tried = self._ranking(state), len(state.scores)
        return [self._plan(state, ranking[:size]) for size in range(tried, tried + wanted)]

    def _plan(self, state: TrialStateT, auxiliaries: list[str]) -> Plan:
        label = f"{self.name}: {' + '.join([state.primary, *auxiliaries])}"
        return Plan(phases=(self._phase(state, auxiliaries),), seed=self.seed, label=label)

    def tell(self, state: TrialStateT, plan: Plan, score: float) -> TrialStateT:
        return state.model_copy(update={"scores": [*state.scores, score]})

    def _tried(self, state: TrialStateT) -> bool:
        """Whether every set was tried, or *select* fell too often in a row."""
        return len(state.scores) > len(state.candidates) or fell(state.scores, self.settings.patience)

    def _chosen(self, state: TrialStateT) -> list[str]:
        """The smallest of the best sets."""
        return self._ranking(state)[: int(np.argmax(state.scores))]

    def total(self, state: TrialStateT) -> int:
        return len(state.names) + (len(state.scores) if self._tried(state) else len(state.candidates) + 1)

    def journal(self, state: TrialStateT) -> dict[str, Any]:
        if not state.scores:
            return super().journal(state)
        tasks = [state.primary, *self._ranking(state)[: len(state.scores) - 1]]
        return {"tasks": " + ".join(tasks), "select": state.scores[-1]}

    def _trial_evidence(self, state: TrialStateT) -> dict[str, Any]:
        ranking = self._ranking(state)
        trials = [{"tasks": ranking[:size], "select": score} for size, score in enumerate(state.scores)]
        return {"trials": trials, "figures": [Additions(steps=ranking, scores=state.scores)]}

    def _trial_verdict(self, state: TrialStateT) -> str:
        chosen, alone = self._chosen(state), state.scores[0]
        if not chosen:
            return f"no candidate raised select above {alone:.3f} of the primary alone"
        return f"{', '.join(chosen)} raised select from {alone:.3f} to {max(state.scores):.3f}"


class GradTSTrial(GradTSTrials[TrialSettings, TrialState]):
    """Section 3.3, task-level: add the next most correlated candidate while *select* does not fall."""

    name = "gradts-trial"
    summary = "add the candidates with the most similar important heads while select does not fall"
    cost = "(warm-up + 1) epochs of every task, plus a trial per candidate added and two more"
    returns = "tasks"
    Settings = TrialSettings
    State = TrialState

    def done(self, state: TrialState) -> bool:
        return state.ranked and self._tried(state)

    def recipe(self, state: TrialState) -> Recipe:
        phase = self._phase(state, self._chosen(state))
        return self._recipe(state, phase, self._trial_verdict(state), **self._trial_evidence(state))


class GradTSFg(GradTSTrials[FgSettings, FgState]):
    """Section 3.3, instance-level: of the tasks that the trials chose, the rows whose τ with the primary's matrix is high."""

    name = "gradts-fg"
    summary = "as gradts-trial, then only the rows whose own heads agree with the primary's"
    cost = "as gradts-trial"
    returns = "rows of tasks"
    Settings = FgSettings
    State = FgState

    def round(self, state: FgState, learner: Learner, rng: np.random.Generator) -> FgState:
        if not state.ranked:
            return super().round(state, learner, rng)
        # One round for all chosen tasks: a quantile needs the τ of all their rows.
        scored = {name: self._row_taus(state, learner[HeadImportance], name) for name in self._chosen(state)}
        threshold = self.settings.threshold
        if self.settings.quantile is not None:
            known = np.concatenate([taus[np.isfinite(taus)] for _, taus in scored.values()])
            if len(known):  # without any order in any row the fixed threshold stands, and keeps none
                threshold = float(np.quantile(known, self.settings.quantile))
        instances = {name: _row_scores(ids, taus, threshold) for name, (ids, taus) in scored.items()}
        return state.model_copy(update={"threshold": threshold, "instances": instances})

    def _row_taus(self, state: FgState, learner: HeadImportance, task: str) -> tuple[np.ndarray, np.ndarray]:
        """Ids and τ of a task's train rows. Rows come in chunks; 12 bytes are kept of each."""
        reference, ids, taus = self._matrix(state, state.primary), [], []
        for chunk, values in learner.instance_importance(task, self._warmup):
            scaled = scale_importance(values, self.settings.norm)
            ids.append(chunk)
            taus.append(kendall_tau(scaled.reshape(len(scaled), -1), reference).astype(np.float32))
        return np.concatenate(ids), np.concatenate(taus)

    def done(self, state: FgState) -> bool:
        if not state.ranked or not self._tried(state):
            return False
        return not self._chosen(state) or state.threshold is not None

    def total(self, state: FgState) -> int:
        return super().total(state) + 1

    def journal(self, state: FgState) -> dict[str, Any]:
        if state.threshold is None:
            return super().journal(state)
        return {"rows": {name: f"{len(found.kept)} of {found.rows}" for name, found in state.instances.items()}}

    def recipe(self, state: FgState) -> Recipe:
        kept = {name: found.kept for name, found in state.instances.items() if found.kept}
        shown = {
            name: {
                "rows": found.rows,
                "kept": len(found.kept),
                "share": len(found.kept) / found.rows,
                "tau_mean": found.mean,
                "histogram": found.histogram,
                "unranked": found.unranked,
            }
            for name, found in state.instances.items()
        }
        verdict = self._trial_verdict(state)
        if shown:
            counts = ", ".join(f"{name} {entry['kept']} of {entry['rows']}" for name, entry in shown.items())
            verdict += f"; rows with τ of at least {state.threshold:.2f}: {counts}"
        evidence = self._trial_evidence(state) | {
            "instances": shown,
            "bins": BINS.tolist(),
            "threshold": state.threshold,
        }
        return self._recipe(state, self._phase(state, list(kept), kept), verdict, **evidence)


def _row_scores(ids: np.ndarray, taus: np.ndarray, threshold: float) -> RowScores:
    known = np.isfinite(taus)
    reach = known & (np.nan_to_num(taus, nan=-2.0) >= np.float32(threshold))
    return RowScores(
        rows=len(ids),
        kept=np.sort(ids[reach]).tolist(),
        mean=float(taus[known].mean()) if known.any() else -1.0,
        histogram=np.histogram(taus[known], BINS)[0].tolist(),
        unranked=int((~known).sum()),
    )
