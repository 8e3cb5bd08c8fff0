"""Baselines without any search: what every comparison needs to mean something.

`single` and `all` stand in every paper; `uniform` and `size` are the fixed policies of Glover and Hokamp (2019), section 3;
`temperature` is the usual compromise between them; `random-subset` shows what choosing is worth.
"""

from __future__ import annotations

import numpy as np
from pydantic import Field

from sidequest.methods.base import Method, NoSettings, Pool, SettingsT, State
from sidequest.recipe import Phase, Recipe
from sidequest.settings import Settings


class FixedState(State):
    """A decision that needs no work."""

    primary: str
    phase: Phase
    evidence: dict[str, object] = {}


class Fixed(Method[SettingsT, FixedState]):
    """A method that decides at the start."""

    State = FixedState

    def start(self, pool: Pool, rng: np.random.Generator) -> FixedState:
        return FixedState(primary=pool.primary, phase=self.phase(pool, rng), evidence=self.evidence(pool))

    def phase(self, pool: Pool, rng: np.random.Generator) -> Phase:
        """What to train on."""
        raise TypeError(f"{type(self).__name__} decides nothing")

    def evidence(self, pool: Pool) -> dict[str, object]:
        return {}

    def done(self, state: FixedState) -> bool:
        return True

    def recipe(self, state: FixedState) -> Recipe:
        return Recipe(method=self.name, primary=state.primary, phases=(state.phase,), evidence=state.evidence)


class Single(Fixed[NoSettings]):
    """The primary alone."""

    name = "single"
    summary = "the primary task alone"
    returns = "nothing to add"

    def phase(self, pool: Pool, rng: np.random.Generator) -> Phase:
        return Phase(shares={pool.primary: 1})


class All(Fixed[NoSettings]):
    """Every task: all batches of all tasks, shuffled together each epoch, as MT-DNN trains and as NO-SEL in Ma et al. (2021)."""

    name = "all"
    summary = "all tasks, every row once per epoch of the primary"
    returns = "all tasks"

    def phase(self, pool: Pool, rng: np.random.Generator) -> Phase:
        return Phase(order="shuffle", shares={name: float(pool.cards[name].rows) for name in pool.names})


class Uniform(Fixed[NoSettings]):
    """Each batch's task is drawn uniformly."""

    name = "uniform"
    summary = "all tasks, drawn uniformly for each batch"
    paper = "Glover and Hokamp 2019"
    returns = "mixture"

    def phase(self, pool: Pool, rng: np.random.Generator) -> Phase:
        return Phase(order="sample", shares=dict.fromkeys(pool.names, 1.0))


class Size(Fixed[NoSettings]):
    """Each batch's task is drawn in proportion to its rows."""

    name = "size"
    summary = "all tasks, drawn in proportion to their rows"
    paper = "Glover and Hokamp 2019"
    returns = "mixture"

    def phase(self, pool: Pool, rng: np.random.Generator) -> Phase:
        return Phase(order="sample", shares={name: float(pool.cards[name].rows) for name in pool.names})


class TemperatureSettings(Settings):
    """temperature: 1 is `size`, large values approach `uniform`."""

    temperature: float = Field(2.0, ge=1)


class Temperature(Fixed[TemperatureSettings]):
    """Each batch's task is drawn in proportion to rows^(1/T)."""

    name = "temperature"
    summary = "all tasks, drawn in proportion to rows^(1/T)"
    returns = "mixture"
    Settings = TemperatureSettings

    def phase(self, pool: Pool, rng: np.random.Generator) -> Phase:
        power = 1 / self.settings.temperature
        return Phase(order="sample", shares={name: pool.cards[name].rows ** power for name in pool.names})


class RandomSubsetSettings(Settings):
    """size: how many candidates; None draws the number too, uniformly from 1 to all."""

    size: int | None = Field(None, ge=1)


class RandomSubset(Fixed[RandomSubsetSettings]):
    """A random set of candidates, one batch of each in turn with the primary: what a choice must beat."""

    name = "random-subset"
    summary = "a random set of candidates, 1:1 with the primary"
    returns = "tasks"
    Settings = RandomSubsetSettings

    def phase(self, pool: Pool, rng: np.random.Generator) -> Phase:
        if not pool.candidates:
            return Phase(shares={pool.primary: 1})
        size = self.settings.size or int(rng.integers(1, len(pool.candidates) + 1))
        chosen = rng.choice(len(pool.candidates), size=min(size, len(pool.candidates)), replace=False)
        return one_to_one(pool.primary, [pool.candidates[i] for i in sorted(chosen)])


def one_to_one(primary: str, auxiliaries: list[str]) -> Phase:
    """The common mixture of a chosen set: one batch of each task in turn."""
    return Phase(order="cycle", shares=dict.fromkeys([primary, *auxiliaries], 1))
