"""AutoSeM: select auxiliary tasks with a bandit, then learn their mixing ratio with a Gaussian process.

Guo, Pasunuru and Bansal 2019, AutoSeM: Automatic Task Selection and Mixing in Multi-Task Learning. Stage 1 is
`stage1.py`, stage 2 is `stage2.py`; here they are put together, in the paper's way and without one or the other stage
(Sec. 6.1).

Departures from the paper

- γ is not given there; the released code has 0.3, with which an arm remembers three rounds and its utility cannot
  exceed 0.81. The default here is 0.05, and it decides which arm is drawn only: tasks are *selected* by the posterior of
  all rounds. By the decayed one, both helpful tasks of a simulation with eight are found about half as often
  (docs/log); `utility=decayed` is the paper's.
- "Slightly stronger prior" of the primary is Beta(2, 1) to start with; like every arm it then forgets towards (α₀, β₀).
- The first round has no predecessor: the untrained model is evaluated once.
- Ratios that reduce to the same fraction are one mixture and are tried once; the bounds (20 and 5) are not in the paper
  and fit all ratios that it reports.
- The initial mixtures are a space-filling design of 6 that begins with the primary alone, instead of scikit-optimize's
  10 random points. Inputs of the process are logarithms of ratios. PI and EI look for an improvement on τ, the best
  observed score, as in the paper.
- Gains of the portfolio are counted in standardised scores. In raw accuracies η = 1 could not tell the functions apart.
- The mixture returned has the highest *posterior mean* among those tried, not the highest score: the maximum of noisy scores is
  partly luck. The grid, which has no process, returns its highest score.
- One run per mixture by default; the paper tunes on the mean of two (footnote 8): `runs=2`.
- A training is a number of epochs *of the primary*, whatever is mixed in between, so a mixture such as 1:5:5 costs up to
  11x and not the paper's x. `train.max_batches` bounds it.
"""

from __future__ import annotations

import functools
from abc import abstractmethod
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from pydantic import BeforeValidator, Field

from sidequest.errors import SettingsError, unknown
from sidequest.learning.protocol import Learner
from sidequest.methods.autosem import stage1, stage2
from sidequest.methods.base import Method, Plan, Pool, SettingsT, State
from sidequest.numerics.mixture_search import MixtureSearch
from sidequest.recipe import Recipe
from sidequest.settings import Settings


def _names(value: Any) -> Any:
    """`tasks=qqp,mnli` means what `tasks=[qqp, mnli]` does."""
    return [name.strip() for name in value.split(",")] if isinstance(value, str) else value


TaskNames = Annotated[tuple[str, ...], BeforeValidator(_names), Field(min_length=1)]


class GivenTasks(Settings):
    """tasks: auxiliaries that stage 2 is to mix, instead of those that stage 1 would select (the paper's educated guess)."""

    tasks: TaskNames | None = None


class AutoSeMState(State):
    """selected: the auxiliaries of stage 2, None until stage 1 has ended. trials: what stage 2 has tried."""

    primary: str
    bandit: stage1.BanditState
    selected: list[str] | None = None
    trials: list[stage2.Trial] = []


@dataclass(frozen=True)
class Stages:
    """What a variant of AutoSeM is made of.

    select: stage 1; None: every candidate is selected, or `tasks`, which win over it. mix: stage 2; None: equal parts.
    """

    select: stage1.BanditSettings | None = None
    mix: stage2.Mixing | None = None
    tasks: tuple[str, ...] | None = None


class _AutoSeM(Method[SettingsT, AutoSeMState]):
    """The stages that a variant names, one after the other."""

    paper = "Guo, Pasunuru and Bansal 2019, AutoSeM"
    returns = "mixture"
    anytime = True  # in stage 2, by its trials so far; in stage 1 nothing is selected yet
    State = AutoSeMState

    @abstractmethod
    def _make_stages(self) -> Stages: ...

    @functools.cached_property
    def stages(self) -> Stages:
        return self._make_stages()

    def _search(self, state: AutoSeMState) -> MixtureSearch | None:
        if self.stages.mix is None or state.selected is None:
            return None
        number = len(state.selected)
        if number not in self._searches:
            self._searches[number] = self.stages.mix.search(number, self.seed)
        return self._searches[number]

    @functools.cached_property
    def _searches(self) -> dict[int, MixtureSearch]:
        """By the number of auxiliaries. A search depends on settings and seed alone; it remembers fits that it has made."""
        return {}

    def start(self, pool: Pool, rng: np.random.Generator) -> AutoSeMState:
        arms = stage1.start(pool, self.stages.select or stage1.BanditSettings())
        return AutoSeMState(primary=pool.primary, bandit=arms, selected=self._given(pool))

    def _given(self, pool: Pool) -> list[str] | None:
        """Auxiliaries for which no bandit is needed; None: stage 1 is to select them."""
        tasks = self.stages.tasks
        if tasks is None:
            return None if self.stages.select is not None and pool.candidates else list(pool.candidates)
        for name in tasks:
            if name == pool.primary:
                raise SettingsError(f"method {self.name!r}: tasks: {name!r} is the primary; name auxiliaries only")
            if name not in pool.candidates:
                raise unknown(f"auxiliary in `tasks` of method {self.name!r}:", name, pool.candidates)
        return sorted(set(tasks))

    def round(self, state: AutoSeMState, learner: Learner, rng: np.random.Generator) -> AutoSeMState:
        settings = self.stages.select
        assert settings is not None  # without stage 1, `start` has selected
        arms = stage1.play(state.bandit, learner, rng, settings)
        selected = stage1.select(arms, settings) if len(arms.pulled) >= settings.rounds else None
        return state.model_copy(update={"bandit": arms, "selected": selected})

    def ask(self, state: AutoSeMState, n: int) -> list[Plan]:
        search, mix = self._search(state), self.stages.mix
        if search is None or mix is None or state.selected is None:
            return []
        return stage2.plans(state.primary, state.selected, state.trials, search, mix, n)

    def tell(self, state: AutoSeMState, plan: Plan, score: float) -> AutoSeMState:
        return state.model_copy(update={"trials": stage2.told(state.trials, plan, score)})

    def done(self, state: AutoSeMState) -> bool:
        search, mix = self._search(state), self.stages.mix
        if search is None or mix is None:
            return state.selected is not None
        return stage2.done(state.trials, search, mix.settings.runs)

    def total(self, state: AutoSeMState) -> int:
        select, mix = self.stages.select, self.stages.mix
        rounds = select.rounds if select is not None else 0
        return rounds + (mix.settings.trials * mix.settings.runs if mix is not None else 0)

    def journal(self, state: AutoSeMState) -> dict[str, Any]:
        if state.trials:
            last = state.trials[-1]
            return {"mixture": ":".join(map(str, last.mixture)), "score": last.score, "source": last.suggestion.source}
        if not state.bandit.pulled:
            return {}
        arms = state.bandit
        return {"arm": arms.arms[arms.pulled[-1]], "reward": arms.rewards[-1], "score": arms.scores[-1]}

    def recipe(self, state: AutoSeMState) -> Recipe:
        selected, search, mix = state.selected or [], self._search(state), self.stages.mix
        evidence: dict[str, Any] = {"selected": selected}
        if self.stages.select is not None and state.bandit.pulled:
            evidence["stage1"] = stage1.evidence(state.bandit, self.stages.select)
        mixture, verdict = (1,) * (1 + len(selected)), f"selected {', '.join(selected) or 'no auxiliary'}"
        if state.selected is None:
            verdict = "stopped in stage 1, where nothing is selected yet"
        note = stage1.ties_note(state.bandit)
        if search is not None and mix is not None and state.trials:
            trials = stage2.decided(state.trials, mix.settings.runs)
            best = search.best(stage2.observations(trials))
            mixture = trials[best].mixture
            evidence["stage2"] = stage2.evidence(selected, trials, mix, search) | {"best": best}
            verdict = stage2.verdict(state.primary, evidence["stage2"])
        phase = stage2.phase_of(state.primary, selected, mixture)
        verdict = f"{verdict}; {note}" if note else verdict
        return Recipe(method=self.name, primary=state.primary, phases=(phase,), evidence=evidence, verdict=verdict)


class AutoSeMP1(_AutoSeM[stage1.BanditSettings]):
    """Stage 1 alone: the selected auxiliaries, mixed in equal parts."""

    name = "autosem-p1"
    summary = "a bandit selects auxiliaries by how often training on them does not lower the primary's score"
    cost = "200 rounds of 10 batches, each with a look at select"
    returns = "tasks"
    Settings = stage1.BanditSettings

    def _make_stages(self) -> Stages:
        return Stages(select=self.settings)


class AutoSeMSettings(stage1.BanditSettings, stage2.HedgeSettings, GivenTasks):
    pass


class AutoSeM(_AutoSeM[AutoSeMSettings]):
    """The whole method: stage 1 selects, stage 2 mixes."""

    name = "autosem"
    summary = "a bandit selects auxiliaries, then a Gaussian process finds their mixing ratio in 20 trainings"
    cost = "stage 1, and 20 trainings"
    Settings = AutoSeMSettings

    def _make_stages(self) -> Stages:
        return Stages(select=self.settings, mix=stage2.Hedge(self.settings), tasks=self.settings.tasks)


class AutoSeMNoStage1Settings(stage2.HedgeSettings, GivenTasks):
    pass


class AutoSeMNoStage1(_AutoSeM[AutoSeMNoStage1Settings]):
    """Stage 2 over all candidates (Table 2, "w/o Stage-1"), or over `tasks` (Sec. 6.4, educated guess)."""

    name = "autosem-no-stage1"
    summary = "the Gaussian process over all candidates, or over tasks that you name"
    cost = "20 trainings"
    Settings = AutoSeMNoStage1Settings

    def _make_stages(self) -> Stages:
        return Stages(mix=stage2.Hedge(self.settings), tasks=self.settings.tasks)


class AutoSeMGridSettings(stage1.BanditSettings, stage2.MixingSettings, GivenTasks):
    pass


class AutoSeMGrid(_AutoSeM[AutoSeMGridSettings]):
    """Stage 1, then a grid of ratios with the same number of trainings (Table 2, "w/o Stage-2")."""

    name = "autosem-grid"
    summary = "the bandit's auxiliaries with a grid of mixing ratios instead of the Gaussian process"
    cost = "stage 1, and up to 20 trainings"
    Settings = AutoSeMGridSettings

    def _make_stages(self) -> Stages:
        return Stages(select=self.settings, mix=stage2.Grid(self.settings), tasks=self.settings.tasks)
