"""Task modelling: a linear model of the primary's score over random subsets of candidates.

D. Li, H. L. Nguyen, H. R. Zhang. Identification of Negative Transfers in Multitask Learning Using Surrogate Models. TMLR 2023.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from pydantic import Field

from sidequest.formatting import signed
from sidequest.methods.base import Method, Plan, Pool, State
from sidequest.methods.baselines import one_to_one
from sidequest.recipe import Recipe
from sidequest.settings import Settings


class TaskModellingSettings(Settings):
    """subsets: how many are trained, besides the primary alone; None: two more than there are candidates.
    size: candidates in each; None: half of them.
    threshold: the coefficient that a candidate must exceed.
    ridge: the penalty on coefficients, relative to the number of subsets.
    """

    subsets: int | None = Field(None, ge=1)
    size: int | None = Field(None, ge=1)
    threshold: float = 0.0
    ridge: float = Field(0.01, ge=0)


class TaskModellingState(State):
    """subsets: what is trained, the first is the primary alone. scores: of each on *select*."""

    primary: str
    candidates: list[str]
    subsets: list[list[str]]
    scores: list[float | None]


class TaskModelling(Method[TaskModellingSettings, TaskModellingState]):
    """f(S) ≈ θ₀ + Σ_{i∈S} θᵢ: least squares over subsets S drawn uniformly at one size; candidates with θᵢ above a threshold are
    kept (Algorithm 1).

    Departures: f is the primary's metric on *select*, higher is better, where the paper takes the loss. The primary alone is one
    of the subsets, so that a positive coefficient means better than nothing added. Each candidate is in some subset: the draw
    goes through shuffled candidates until all are used as often as it allows, which is uniform over each subset by itself.
    """

    name = "task-modelling"
    summary = "a linear model of the score over random subsets; keeps candidates with a positive coefficient"
    paper = "Li, Nguyen & Zhang 2023, Identification of Negative Transfers (task modelling)"
    cost = "candidates + 3 training runs, each with half of the candidates"
    anytime = True
    Settings = TaskModellingSettings
    State = TaskModellingState

    def start(self, pool: Pool, rng: np.random.Generator) -> TaskModellingState:
        names = sorted(pool.candidates)
        subsets = [[], *self._drawn(names, rng)] if names else []
        return TaskModellingState(primary=pool.primary, candidates=names, subsets=subsets, scores=[None] * len(subsets))

    def _drawn(self, names: list[str], rng: np.random.Generator) -> list[list[str]]:
        """Different subsets, as many as wanted or as there are."""
        size = min(self.settings.size or math.ceil(len(names) / 2), len(names))
        wanted = min(self.settings.subsets or len(names) + 2, math.comb(len(names), size))
        waiting: list[str] = []
        found: dict[tuple[str, ...], None] = {}
        while len(found) < wanted:
            taken: list[str] = []
            while len(taken) < size:
                if not waiting:
                    waiting = [str(name) for name in rng.permutation(names)]
                name = next((name for name in waiting if name not in taken), None)
                if name is None:
                    waiting = []
                else:
                    waiting.remove(name)
                    taken.append(name)
            found[tuple(sorted(taken))] = None
        return [list(subset) for subset in found]

    def ask(self, state: TaskModellingState, n: int) -> list[Plan]:
        pending = [index for index, score in enumerate(state.scores) if score is None][:n]
        return [
            Plan(
                phases=(one_to_one(state.primary, state.subsets[index]),),
                seed=self.seed,
                label=f"task-modelling: {', '.join(state.subsets[index]) or 'the primary alone'}",
                note={"subset": index},
            )
            for index in pending
        ]

    def tell(self, state: TaskModellingState, plan: Plan, score: float) -> TaskModellingState:
        scores = list(state.scores)
        scores[plan.note["subset"]] = score
        return state.model_copy(update={"scores": scores})

    def done(self, state: TaskModellingState) -> bool:
        return all(score is not None for score in state.scores)

    def total(self, state: TaskModellingState) -> int:
        return len(state.subsets)

    def journal(self, state: TaskModellingState) -> dict[str, Any]:
        return {"trained": sum(score is not None for score in state.scores), "of": len(state.scores)}

    def recipe(self, state: TaskModellingState) -> Recipe:
        trained = [
            (subset, score) for subset, score in zip(state.subsets, state.scores, strict=True) if score is not None
        ]
        found = coefficients([s for s, _ in trained], [f for _, f in trained], state.candidates, self.settings.ridge)
        kept = [name for name, value in found.items() if value > self.settings.threshold]
        said = ", ".join(f"{name} {signed(value, 4)}" for name, value in sorted(found.items(), key=lambda one: -one[1]))
        return Recipe(
            method=self.name,
            primary=state.primary,
            phases=(one_to_one(state.primary, kept),),
            evidence={
                "coefficients": found,
                "subsets": [{"tasks": subset, "select": score} for subset, score in trained],
            },
            verdict=f"coefficients of a linear model over {len(trained)} subsets on select: {said}" if found else "",
        )


def coefficients(
    subsets: list[list[str]], scores: list[float], candidates: list[str], ridge: float
) -> dict[str, float]:
    """θ of each candidate: ridge regression with a free intercept, which is the mean left over."""
    if not subsets or not candidates:
        return {}
    design = np.array([[float(name in subset) for name in candidates] for subset in subsets])
    target = np.array(scores, dtype=np.float64)
    centred, rest = design - design.mean(axis=0), target - target.mean()
    penalty = max(ridge * len(subsets), 1e-9) * np.eye(len(candidates))
    theta = np.linalg.solve(centred.T @ centred + penalty, centred.T @ rest)
    return dict(zip(candidates, theta.tolist(), strict=True))
