"""Choosing by what a dataset looks like: Ma et al. (2021), section 5.3, Tables 6 and 7.

HEU-Size and HEU-Len start from the most appropriate candidate (the largest; the one whose mean length is nearest to the
primary's) and keep adding tasks greedily. HEU-Type takes the candidates of the primary's task type.

Departures
----------
- The paper adds tasks to the end and reports the best score, on the data that it reports. Here a set grows until *select* falls
  (`patience=null`: to the end) and the smallest of the best sets on *select* is returned, against single-task training as the
  start: the first task must help, too.
- Mixtures are one batch of each task in turn; the paper's trainer (MT-DNN) shuffles all batches.
- Length is the mean number of words per row over all its texts; the paper gives the mean per sentence.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from sidequest.evidence import Additions
from sidequest.formatting import signed
from sidequest.methods.base import Method, NoSettings, PaperSettings, Plan, Pool, State
from sidequest.methods.baselines import Fixed, one_to_one
from sidequest.recipe import Phase, Recipe


class GreedySettings(PaperSettings):
    """patience: how many falls of *select* in a row end the search; null: every set along the order is tried, as in the paper."""

    PUBLISHED: ClassVar[dict[str, Any]] = {"patience": None}

    patience: int | None = Field(1, ge=1)


def fell(scores: Sequence[float], patience: int | None) -> bool:
    """Whether the scores along a ranking fell this many times in a row at any point. A tie is no fall: the next task may help."""
    falls = 0
    for before, after in pairwise(scores):
        falls = falls + 1 if after < before else 0
        if patience is not None and falls >= patience:
            return True
    return False


class GreedyState(State):
    """ranking: candidates, the most appropriate first. scores: on *select*, of the first 0, 1, 2, … of them."""

    primary: str
    ranking: list[str]
    criterion: dict[str, float]
    scores: list[float] = []


class Greedy(Method[GreedySettings, GreedyState]):
    """Add candidates in the order of a criterion while *select* does not fall."""

    Settings = GreedySettings
    State = GreedyState
    paper = "Ma et al. 2021, section 5.3"
    cost = "1x per task added, plus 1x"

    @abstractmethod
    def criterion(self, pool: Pool, name: str) -> float:
        """How appropriate a candidate is; higher is better."""

    def start(self, pool: Pool, rng: np.random.Generator) -> GreedyState:
        criterion = {name: self.criterion(pool, name) for name in pool.candidates}
        ranking = sorted(criterion, key=lambda name: (-criterion[name], name))
        return GreedyState(primary=pool.primary, ranking=ranking, criterion=criterion)

    def ask(self, state: GreedyState, n: int) -> list[Plan]:
        chosen = state.ranking[: len(state.scores)]
        label = f"{self.name}: {' + '.join([state.primary, *chosen])}"
        return [Plan(phases=(one_to_one(state.primary, chosen),), seed=self.seed, label=label)]

    def tell(self, state: GreedyState, plan: Plan, score: float) -> GreedyState:
        return state.model_copy(update={"scores": [*state.scores, score]})

    def done(self, state: GreedyState) -> bool:
        return len(state.scores) > len(state.ranking) or fell(state.scores, self.settings.patience)

    def recipe(self, state: GreedyState) -> Recipe:
        chosen = state.ranking[: int(np.argmax(state.scores))]
        return Recipe(
            method=self.name,
            primary=state.primary,
            phases=(one_to_one(state.primary, chosen),),
            evidence={
                "ranking": state.ranking,
                "criterion": state.criterion,
                "select_scores": state.scores,
                "figures": [Additions(steps=state.ranking, scores=state.scores)] if state.scores else [],
            },
            verdict=self._verdict(state, chosen),
        )

    def _verdict(self, state: GreedyState, chosen: list[str]) -> str:
        if not state.ranking:
            return "there are no candidates"
        if not chosen:
            tried = state.ranking[: len(state.scores) - 1]
            return f"no auxiliary helps: {', then '.join(tried)} did not raise the score on select"
        gain = max(state.scores) - state.scores[0]
        return f"{' + '.join(chosen)}: {signed(gain, 4)} on select against the primary alone"

    def total(self, state: GreedyState) -> int:
        return len(state.ranking) + 1

    def journal(self, state: GreedyState) -> dict[str, object]:
        tasks = [state.primary, *state.ranking[: len(state.scores) - 1]]
        return {"tasks": " + ".join(tasks), "select": state.scores[-1]}


class HeuSize(Greedy):
    """The largest candidates first."""

    name = "heu-size"
    summary = "add the largest candidates while select does not fall"

    def criterion(self, pool: Pool, name: str) -> float:
        return float(pool.cards[name].rows)


class HeuLen(Greedy):
    """The candidates whose texts are about as long as the primary's first."""

    name = "heu-len"
    summary = "add the candidates of the most similar length while select does not fall"

    def criterion(self, pool: Pool, name: str) -> float:
        return -abs(pool.cards[name].mean_words - pool.cards[pool.primary].mean_words)


class HeuType(Fixed[NoSettings]):
    """All candidates of the primary's task type."""

    name = "heu-type"
    summary = "all candidates of the primary's task type"
    paper = "Ma et al. 2021, section 5.3"
    returns = "tasks"

    def phase(self, pool: Pool, rng: np.random.Generator) -> Phase:
        return one_to_one(pool.primary, self._same(pool))

    def evidence(self, pool: Pool) -> dict[str, object]:
        kinds = {name: pool.cards[name].kind for name in pool.names}
        note = (
            ""
            if self._same(pool)
            else f"no candidate has the primary's kind {kinds[pool.primary]!r}: the primary alone"
        )
        return {"kinds": kinds, "note": note}

    def _same(self, pool: Pool) -> list[str]:
        kind = pool.cards[pool.primary].kind
        return [name for name in pool.candidates if kind and pool.cards[name].kind == kind]
