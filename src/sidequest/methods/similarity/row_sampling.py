"""Taking N rows of all auxiliaries together: what similarity sampling and its baseline `random-data` share (see `similarity`).

A method draws rows in an order of preference; N of them are taken. The recipe has two phases: the primary with those rows, each
task in proportion to its rows, so that an epoch is one pass over all of them; then the primary alone.
"""

from __future__ import annotations

import base64
from typing import Any, ClassVar, TypeVar, cast

import numpy as np
from pydantic import Field, model_validator

from sidequest.errors import SettingsError
from sidequest.learning.protocol import Discrimination, Learner, TaskDiscriminator
from sidequest.methods.base import Method, PaperSettings, Plan, Pool, State
from sidequest.recipe import Phase, Recipe, Subset

COUNT = 10_000  # the paper's N where it studies one (sections 4.5 and 5.1)


TOGETHER = 3 / 8  # of the primary's epochs: the paper's 3, before 5 of fine-tuning


class SamplingSettings(PaperSettings):
    """How many rows, and how they are trained on.

    rows: of each task, set aside for a discriminator: they are never taken.
    count: N as a number; 10,000 if none of count, share and ladder is given.
    share: N as a share of the rows that can be taken.
    ladder: N is the best on *select* of 0, `first`, 2·`first`, 4·`first`, … and all.
    first: the smallest number of rows of a ladder above 0.
    epochs: over the primary and the N rows. None: with `finetune_epochs`, `train.epochs` in all, in the paper's proportion of 3
        to 5, so that the primary is seen as often as without auxiliaries.
    finetune_epochs: over the primary alone, after that. None: as for `epochs`.
    """

    PUBLISHED: ClassVar[dict[str, Any]] = {"epochs": 3.0, "finetune_epochs": 5.0}

    rows: int = Field(500, ge=0)
    count: int | None = Field(None, ge=0)
    share: float | None = Field(None, gt=0, le=1)
    ladder: bool = False
    first: int = Field(500, ge=1)
    epochs: float | None = Field(None, gt=0)
    finetune_epochs: float | None = Field(None, gt=0)

    @model_validator(mode="after")
    def _one_way(self) -> SamplingSettings:
        ways = {"count": self.count is not None, "share": self.share is not None, "ladder": self.ladder}
        given = [name for name, is_given in ways.items() if is_given]
        if len(given) > 1:
            raise ValueError(f"N is given by one of count, share and ladder, not by {' and '.join(given)}")
        return self


class SamplingState(State):
    """rows: of each task's train split. pool: of each candidate, the rows that can be taken. lengths: epochs of the two phases.

    drawn: of the rows in order of preference, the task (its place among the candidates, int32) and the id (int64), packed; None
        before they are drawn. scores: on *select*, of the rungs of the ladder tried so far.
    """

    primary: str
    rows: dict[str, int]
    pool: dict[str, int]
    lengths: tuple[float, float]
    drawn: tuple[str, str] | None = None
    notes: list[str] = []
    evidence: dict[str, Any] = {}
    scores: list[float] = []

    @property
    def candidates(self) -> list[str]:
        return list(self.pool)


def pack(values: np.ndarray) -> str:
    """Whole numbers as text: a state is written often, and a list of a million numbers takes seconds in JSON."""
    return base64.b64encode(np.ascontiguousarray(values).tobytes()).decode("ascii")


def unpack(text: str, dtype: type[np.integer[Any]]) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), dtype=dtype)


def random_order(sizes: list[int], count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """`count` of all rows of tasks of these sizes in random order: the task of each, and its place within the task."""
    chosen = rng.permutation(sum(sizes))[:count]
    ends = np.cumsum(sizes)
    task = np.searchsorted(ends, chosen, side="right")
    return task, chosen - (ends - sizes)[task]


SettingsT = TypeVar("SettingsT", bound=SamplingSettings)
StateT = TypeVar("StateT", bound=SamplingState)


class RowSampling(Method[SettingsT, StateT]):
    """What the methods share: how many rows to take, trials of the ladder, the recipe. A subclass draws the rows."""

    paper = "Kung et al. 2021"
    returns = "rows of tasks"
    requires = (TaskDiscriminator,)

    def start(self, pool: Pool, rng: np.random.Generator) -> StateT:
        if pool.goal != "primary":
            raise SettingsError(
                f"method {self.name!r} takes rows for one primary task; the suite's goal is {pool.goal!r}"
            )
        rows = {name: pool.cards[name].rows for name in pool.names}
        left = {name: max(0, rows[name] - self.settings.rows) for name in pool.candidates}
        state = cast(type[StateT], self.State)(
            primary=pool.primary,
            rows=rows,
            pool=left,
            lengths=(
                self.settings.epochs or TOGETHER * pool.train.epochs,
                self.settings.finetune_epochs or (1 - TOGETHER) * pool.train.epochs,
            ),
            notes=self._first_notes(rows),
        )
        # Nothing to take: no work.
        return self._with_drawn(state, np.zeros(0), np.zeros(0)) if not self._wanted(state) else state

    def _first_notes(self, rows: dict[str, int]) -> list[str]:
        return [
            f"{name!r} has {count:,} train rows, all of them set aside for the discriminator (rows={self.settings.rows}): "
            "none of them can be taken"
            for name, count in list(rows.items())[1:]
            if count <= self.settings.rows
        ]

    def _wanted(self, state: StateT) -> int:
        """How many rows to draw: N, or all that there are for a ladder."""
        there = sum(state.pool.values())
        if self.settings.ladder:
            return there
        if self.settings.share is not None:
            return round(self.settings.share * there)
        return min(there, self._count)

    @property
    def _count(self) -> int:
        return COUNT if self.settings.count is None else self.settings.count

    def _with_drawn(self, state: StateT, task: np.ndarray, ids: np.ndarray, **changes: Any) -> StateT:
        notes = [*state.notes, *changes.pop("notes", [])]
        if self.settings.share is None and not self.settings.ladder and self._count > len(ids):
            notes.append(f"{self._count:,} rows were asked for, {len(ids):,} can be taken: all of them are")
        drawn = pack(task.astype(np.int32)), pack(ids.astype(np.int64))
        return state.model_copy(update={"drawn": drawn, "notes": notes, **changes})

    # Trials of the ladder

    def _rungs(self, state: StateT) -> list[int]:
        """N = 0, first, 2·first, … and all."""
        there = sum(state.pool.values()) if state.drawn is None else len(self._drawn(state)[1])
        rungs, rung = [0], self.settings.first
        while rung < there:
            rungs.append(rung)
            rung *= 2
        return [*rungs, there] if there else rungs

    def ask(self, state: StateT, n: int) -> list[Plan]:
        if state.drawn is None or not self.settings.ladder:
            return []
        rungs = self._rungs(state)[len(state.scores) :][:n]
        return [
            Plan(phases=self._phases(state, rung), seed=self.seed, label=f"{self.name}: {rung:,} rows")
            for rung in rungs
        ]

    def tell(self, state: StateT, plan: Plan, score: float) -> StateT:
        return state.model_copy(update={"scores": [*state.scores, score]})

    def done(self, state: StateT) -> bool:
        tried = not self.settings.ladder or len(state.scores) == len(self._rungs(state))
        return state.drawn is not None and tried

    def total(self, state: StateT) -> int:
        trials = len(self._rungs(state)) if self.settings.ladder else 0
        return self._rounds(state) + trials

    def _rounds(self, state: StateT) -> int:
        """Rounds until rows are drawn."""
        return 1 if self._wanted(state) else 0

    def journal(self, state: StateT) -> dict[str, Any]:
        if state.scores:
            return {"rows": self._rungs(state)[len(state.scores) - 1], "select": state.scores[-1]}
        return {"drawn": len(self._drawn(state)[1])}

    # The recipe

    def _drawn(self, state: StateT) -> tuple[np.ndarray, np.ndarray]:
        """In order of preference: the candidate's place int32 [n], and the row's id int64 [n]."""
        assert state.drawn is not None
        return unpack(state.drawn[0], np.int32), unpack(state.drawn[1], np.int64)

    def _taken(self, state: StateT, count: int) -> dict[str, np.ndarray]:
        """Ids of the first `count` rows by candidate, in order of id; candidates without any are left out."""
        task, ids = (values[:count] for values in self._drawn(state))
        found = {name: np.sort(ids[task == place]) for place, name in enumerate(state.candidates)}
        return {name: rows for name, rows in found.items() if len(rows)}

    def _phases(self, state: StateT, count: int) -> tuple[Phase, Phase]:
        taken = self._taken(state, count)
        epochs, finetune_epochs = state.lengths
        alone = Phase(shares={state.primary: 1}, epochs=finetune_epochs)
        if not taken:
            return Phase(shares={state.primary: 1}, epochs=epochs, stop_early=False), alone
        shares = {state.primary: state.rows[state.primary], **{name: len(rows) for name, rows in taken.items()}}
        subsets = {name: Subset(ids=rows) for name, rows in taken.items()}
        together = Phase(
            order="shuffle",
            shares={name: float(rows) for name, rows in shares.items()},
            subsets=subsets,
            epochs=epochs,
            stop_early=False,  # the paper trains all of its epochs and fine-tunes from there
        )
        return together, alone

    def recipe(self, state: StateT) -> Recipe:
        there, rungs = len(self._drawn(state)[1]), self._rungs(state)
        # Of equally good rungs the smallest: rows must help to be taken.
        count = rungs[int(np.argmax(state.scores))] if self.settings.ladder else there
        taken = {name: len(rows) for name, rows in self._taken(state, count).items()}
        shown = ", ".join(
            f"{name} {rows:,}" for name, rows in sorted(taken.items(), key=lambda item: (-item[1], item[0]))
        )
        verdict = f"{count:,} of {sum(state.pool.values()):,} auxiliary rows" + (f": {shown}" if shown else "")
        evidence: dict[str, Any] = {"count": count, "pool": state.pool, "taken": taken, "notes": state.notes}
        if self.settings.ladder:
            evidence["trials"] = [{"rows": n, "select": s} for n, s in zip(rungs, state.scores, strict=True)]
            verdict += f"; select {max(state.scores):.3f}, {state.scores[0]:.3f} without any"
        return Recipe(
            method=self.name,
            primary=state.primary,
            phases=self._phases(state, count),
            evidence=evidence | self._more_evidence(state, count),
            verdict=verdict,
        )

    def _more_evidence(self, state: StateT, count: int) -> dict[str, Any]:
        return state.evidence


class RandomData(RowSampling[SamplingSettings, SamplingState]):
    """N rows of all auxiliaries at random, each row with the same chance: the paper's baseline (section 4.3).

    Its pool is that of `similarity` with the same seed: rows that a discriminator would learn from are set aside, as in the
    released code. `rows=0` sets none aside.
    """

    name = "random-data"
    summary = "N random rows of all auxiliaries together, then the primary alone"
    cost = "0x; with ladder, a trial per rung"
    Settings = SamplingSettings
    State = SamplingState

    def round(self, state: SamplingState, learner: Learner, rng: np.random.Generator) -> SamplingState:
        aside = Discrimination(rows=self.settings.rows, seed=self.seed)
        ids = [learner[TaskDiscriminator].rows_to_rank(name, aside) for name in state.candidates]
        task, place = random_order([len(rows) for rows in ids], self._wanted(state), rng)
        starts = np.cumsum([0, *(len(rows) for rows in ids)])
        return self._with_drawn(state, task, np.concatenate(ids)[starts[task] + place])
