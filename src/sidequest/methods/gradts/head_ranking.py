"""Ranking tasks by their important attention heads: what the three settings of GradTS share (see `gradts`).

Matrices belong to tasks, not to primaries: with the learner's cache, a new candidate or another primary costs only what is new.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal, TypeVar, cast

import numpy as np
from pydantic import Field

from sidequest.errors import SettingsError, SidequestError
from sidequest.learning.protocol import HeadImportance, HeadMatrix, Learner, Piece, Warmup
from sidequest.methods.base import Method, PaperSettings, Pool, State
from sidequest.numerics.kendall import kendall_matrix, kendall_tau
from sidequest.recipe import Phase, Recipe, Subset

Norm = Literal["l2", "sum"]


class RankingSettings(PaperSettings):
    """How tasks are ranked, and mixed once they are chosen.

    warmup_epochs: single-task training before heads are evaluated; 3 to 7 give much the same (section 3.1, footnote 5).
    warmup_batches: an upper bound on that training, for large tasks.
    norm: what each layer of a matrix is divided by.
    cap: an auxiliary's rows per epoch of the primary, at most this many times the primary's; null: all.
    """

    PUBLISHED: ClassVar[dict[str, Any]] = {"cap": None}

    warmup_epochs: float = Field(3.0, ge=0)
    warmup_batches: int | None = Field(None, ge=0)
    norm: Norm = "l2"
    cap: float | None = Field(1.0, gt=0)


class RankingState(State):
    """importance: per task, the importances as the learner gave them, [layers][heads]. rows: train rows per task."""

    primary: str
    candidates: list[str]
    rows: dict[str, int]
    importance: dict[str, list[list[float]]] = {}

    @property
    def names(self) -> list[str]:
        return [self.primary, *self.candidates]

    @property
    def ranked(self) -> bool:
        return len(self.importance) == len(self.names)


def scale_importance(importance: np.ndarray, norm: Norm) -> np.ndarray:
    """Step 4 of section 3.1: divide each layer by its norm, then stretch the matrix to [0, 1].

    importance: [..., layers, heads], at least 0. A layer or a matrix without any differences becomes 0.
    """
    values = np.asarray(importance, dtype=np.float64)
    size = np.sqrt((values**2).sum(-1, keepdims=True)) if norm == "l2" else values.sum(-1, keepdims=True)
    values = np.divide(values, size, out=np.zeros_like(values), where=size > 0)
    low = values.min((-2, -1), keepdims=True)
    spread = values.max((-2, -1), keepdims=True) - low
    return np.divide(values - low, spread, out=np.zeros_like(values), where=spread > 0)


SettingsT = TypeVar("SettingsT", bound=RankingSettings)
StateT = TypeVar("StateT", bound=RankingState)


class GradTS(Method[SettingsT, StateT]):
    """What the three settings share: one round per task, then a ranking."""

    paper = "Ma et al. 2021"
    requires = (HeadImportance,)

    def start(self, pool: Pool, rng: np.random.Generator) -> StateT:
        if pool.goal != "primary":
            raise SettingsError(
                f"method {self.name!r} ranks candidates for one primary task; the suite's goal is {pool.goal!r}"
            )
        rows = {name: pool.cards[name].rows for name in pool.names}
        state = cast(type[StateT], self.State)
        return state(primary=pool.primary, candidates=list(pool.candidates), rows=rows)

    def round(self, state: StateT, learner: Learner, rng: np.random.Generator) -> StateT:
        """The importances of the next task."""
        task = state.names[len(state.importance)]
        found = learner[HeadImportance].head_importance(task, self._warmup)
        if not np.isfinite(found).all():
            raise SidequestError(
                f"method {self.name!r}: the importances of {task!r}'s heads are not finite: its warm-up has diverged. "
                "Lower train.learning_rate."
            )
        return state.model_copy(update={"importance": {**state.importance, task: found.tolist()}})

    def ahead(self, state: StateT) -> Sequence[Piece]:
        return [HeadMatrix(task, self._warmup) for task in state.names if task not in state.importance]

    def total(self, state: StateT) -> int:
        return len(state.names)

    def journal(self, state: StateT) -> dict[str, Any]:
        task = list(state.importance)[-1]
        tau = 1.0 if task == state.primary else self._taus(state)[task]
        return {"heads": task, "tau": tau}

    @property
    def _warmup(self) -> Warmup:
        return Warmup(self.settings.warmup_epochs, self.settings.warmup_batches, self.seed)

    def _matrix(self, state: StateT, task: str) -> np.ndarray:
        """A task's scaled matrix, flat: [layers · heads]."""
        return scale_importance(np.array(state.importance[task]), self.settings.norm).ravel()

    def _taus(self, state: StateT) -> dict[str, float]:
        """Kendall's τ of each candidate scored so far; −1 where there is none, since heads all alike rank nothing."""
        names = [name for name in state.candidates if name in state.importance]
        if not names:
            return {}
        found = kendall_tau(np.stack([self._matrix(state, n) for n in names]), self._matrix(state, state.primary))
        return dict(zip(names, np.nan_to_num(found, nan=-1.0).tolist(), strict=True))

    def _ranking(self, state: StateT) -> list[str]:
        """Candidates, the most correlated first; equal ones by name."""
        taus = self._taus(state)
        return sorted(taus, key=lambda name: (-taus[name], name))

    def _phase(self, state: StateT, auxiliaries: list[str], kept: dict[str, list[int]] | None = None) -> Phase:
        """The chosen tasks' batches, shuffled together; with `kept`, only those rows of them."""
        if not auxiliaries:
            return Phase(shares={state.primary: 1})
        rows = {name: len(kept[name]) if kept else state.rows[name] for name in auxiliaries}
        shares = {name: count / state.rows[state.primary] for name, count in rows.items()}
        if self.settings.cap is not None:
            shares = {name: min(share, self.settings.cap) for name, share in shares.items()}
        subsets = {name: Subset(ids=kept[name]) for name in auxiliaries} if kept else {}
        return Phase(order="shuffle", shares={state.primary: 1.0, **shares}, subsets=subsets)

    def _recipe(self, state: StateT, phase: Phase, verdict: str, **evidence: Any) -> Recipe:
        matrices = {
            name: scale_importance(np.array(state.importance[name]), self.settings.norm) for name in state.names
        }
        between = kendall_matrix(np.stack([matrix.ravel() for matrix in matrices.values()]))
        shown = {
            "heads": {name: matrix.tolist() for name, matrix in matrices.items()},
            "tau": self._taus(state),
            "tau_between": {"names": state.names, "values": np.nan_to_num(between, nan=-1.0).tolist()},
            "ranking": self._ranking(state),
            **evidence,
        }
        return Recipe(method=self.name, primary=state.primary, phases=(phase,), evidence=shown, verdict=verdict)
