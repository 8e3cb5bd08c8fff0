"""A complete method in one file: try each candidate once, keep those that beat the primary alone."""

from __future__ import annotations

from pydantic import Field

from sidequest.evidence import Bars
from sidequest.methods.base import Method, Plan, State
from sidequest.recipe import Phase, Recipe
from sidequest.settings import Settings


class LargestGainSettings(Settings):
    """least_gain: by how much a candidate must raise the primary's score on *select* to be kept."""

    least_gain: float = Field(default=0.0, ge=0)


class LargestGainState(State):
    """scores: by candidate; the primary alone has the empty name."""

    primary: str
    candidates: list[str]
    scores: dict[str, float] = {}


class LargestGain(Method[LargestGainSettings, LargestGainState]):
    """One training run alone and one with each candidate, 1:1; the candidates that gain are kept together."""

    name = "largest-gain"
    summary = "train once with each candidate and keep those that beat single-task training"
    cost = "1x, plus 2x per candidate"
    Settings = LargestGainSettings
    State = LargestGainState

    def start(self, pool, rng):
        return LargestGainState(primary=pool.primary, candidates=list(pool.candidates))

    def ask(self, state, n):
        left = [name for name in ["", *state.candidates] if name not in state.scores]
        return [Plan(phases=(self.mixture(state, [name]),), seed=self.seed, label=name) for name in left[:n]]

    def tell(self, state, plan, score):
        return state.model_copy(update={"scores": {**state.scores, plan.label: score}})

    def done(self, state):
        return len(state.scores) == len(state.candidates) + 1

    def recipe(self, state):
        gains = {name: state.scores[name] - state.scores[""] for name in state.candidates}
        kept = [name for name, gain in gains.items() if gain > self.settings.least_gain]
        figure = Bars(title="Gain of each candidate", groups={"gain on select": gains}) if gains else None
        evidence = {"alone": state.scores[""], "gains": gains, "figures": [figure] if figure else []}
        return Recipe(method=self.name, primary=state.primary, phases=(self.mixture(state, kept),), evidence=evidence)

    def mixture(self, state, auxiliaries):
        return Phase(order="cycle", shares=dict.fromkeys(filter(None, [state.primary, *auxiliaries]), 1))
