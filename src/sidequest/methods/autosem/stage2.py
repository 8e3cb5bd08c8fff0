"""Stage 2 of AutoSeM: how much of each selected task, by search over integer ratios (Guo et al. 2019, Sec. 3.4)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from sidequest.formatting import signed
from sidequest.methods.base import PaperSettings, Plan
from sidequest.numerics.gp_hedge import HedgeSearch
from sidequest.numerics.mixture_search import GridSearch, History, MixtureSearch, Observation, Suggestion
from sidequest.numerics.mixtures import Mixture, MixtureSpace
from sidequest.recipe import Phase


class MixingSettings(PaperSettings):
    """trials: mixtures to try, each by a full training (the paper: 15 or 20).
    runs: trainings per mixture, whose mean counts.
    max_primary: the primary's ratio is 1 to this.
    max_auxiliary: an auxiliary's ratio is 0 to this.
    """

    trials: int = Field(default=20, ge=1)
    runs: int = Field(default=1, ge=1)
    max_primary: int = Field(default=20, ge=1)
    max_auxiliary: int = Field(default=5, ge=1)


class HedgeSettings(MixingSettings):
    """initial: how many of the trials come first, whatever they score.
    design: how these are placed: `spread` fills the space and begins with the primary alone, `random` draws them.
    choose: the mixture with the highest posterior `mean`, or with the highest `score`.
    matern: smoothness of the kernel.
    xi: the improvement that PI and EI ask for, in standard deviations of the scores.
    kappa: how many posterior standard deviations UCB adds to the mean.
    eta: how sharply the portfolio follows its gains.
    pending: trainings that may be under way at once after the design. Each mixture is decided without the scores of the
        `pending` - 1 before it, with one worker too: more workers find the same, sooner. docs/scaling.md says what it costs.
    """

    PUBLISHED: ClassVar[dict[str, Any]] = {"initial": 10, "design": "random", "choose": "score"}

    initial: int = Field(default=6, ge=2)
    design: Literal["spread", "random"] = "spread"
    choose: Literal["mean", "score"] = "mean"
    matern: Literal["5/2", "3/2"] = "5/2"
    xi: float = Field(default=0.01, ge=0)
    kappa: float = Field(default=1.96, ge=0)
    eta: float = Field(default=1.0, ge=0)
    pending: int = Field(default=1, ge=1)


class Trial(BaseModel):
    """A mixture that was tried: as it was suggested, and a score for each of its runs."""

    model_config = ConfigDict(extra="forbid")

    suggestion: Suggestion
    scores: list[float]

    @property
    def mixture(self) -> Mixture:
        """The primary's ratio first, then the auxiliaries' in name order."""
        return self.suggestion.mixture

    @property
    def score(self) -> float:
        return float(np.mean(self.scores))


@dataclass(frozen=True)
class Mixing(ABC):
    """A way to find a mixture: `Grid` or `Hedge`."""

    settings: MixingSettings

    @property
    def pending(self) -> int:
        """How many trainings may be under way at once without a score of theirs being known."""
        return 1

    @abstractmethod
    def search(self, n_auxiliaries: int, seed: int) -> MixtureSearch: ...

    def space(self, n_auxiliaries: int) -> MixtureSpace:
        return MixtureSpace(n_auxiliaries, self.settings.max_primary, self.settings.max_auxiliary)


@dataclass(frozen=True)
class Grid(Mixing):
    """A grid of ratios, whatever its points score (Table 2, "w/o Stage-2")."""

    def search(self, n_auxiliaries: int, seed: int) -> MixtureSearch:
        return GridSearch(self.space(n_auxiliaries), self.settings.trials, seed)


@dataclass(frozen=True)
class Hedge(Mixing):
    """A Gaussian process, and a portfolio of acquisition functions that chooses the next mixture by it (Sec. 3.4)."""

    settings: HedgeSettings

    @property
    def pending(self) -> int:
        return self.settings.pending

    def search(self, n_auxiliaries: int, seed: int) -> MixtureSearch:
        given = self.settings
        return HedgeSearch(
            self.space(n_auxiliaries),
            given.trials,
            seed,
            initial=given.initial,
            design=given.design,
            choose=given.choose,
            nu={"5/2": 2.5, "3/2": 1.5}[given.matern],
            xi=given.xi,
            kappa=given.kappa,
            eta=given.eta,
        )


def decided(trials: Sequence[Trial], runs: int) -> list[Trial]:
    """The trials that a decision may rest on: those with all their runs; where a budget ended the search before any had them,
    those with some."""
    return [trial for trial in trials if len(trial.scores) == runs] or list(trials)


def history_of(trials: Sequence[Trial], runs: int) -> History:
    """Mixtures with all their runs, in the order in which they were asked for: what the search learns from."""
    return observations([trial for trial in trials if len(trial.scores) == runs])


def observations(trials: Sequence[Trial]) -> History:
    """Trials as a process sees them.

    A training that diverged may score minus infinity, of which a process can make nothing: it counts as the lowest score.
    """
    lowest = min((trial.score for trial in trials if np.isfinite(trial.score)), default=0.0)
    return tuple(Observation(t.mixture, t.score if np.isfinite(t.score) else lowest) for t in trials)


def plans(
    primary: str,
    auxiliaries: Sequence[str],
    trials: Sequence[Trial],
    search: MixtureSearch,
    mixing: Mixing,
    n: int,
) -> list[Plan]:
    """Up to n training runs to do now: first the runs that a mixture still lacks, then new mixtures."""
    runs = mixing.settings.runs
    seeds = run_seeds(search.seed, runs)
    unfinished = [trial for trial in trials if len(trial.scores) < runs]
    wanted = [(t.suggestion, seed) for t in unfinished for seed in seeds[len(t.scores) :]]
    ahead = list(upcoming(trials, search, mixing, -(-(n - len(wanted)) // runs))) if len(wanted) < n else []
    wanted += [(suggestion, seed) for suggestion in ahead for seed in seeds]
    return [_plan(primary, auxiliaries, suggestion, seed) for suggestion, seed in wanted[:n]]


def upcoming(trials: Sequence[Trial], search: MixtureSearch, mixing: Mixing, n: int) -> Iterator[Suggestion]:
    """Up to n new mixtures that follow from the scores so far.

    Mixture number k is decided by the scores of all but the `pending` - 1 mixtures before it, whether the others are known by
    then or not: so it is the same mixture with one worker and with many.
    """
    runs = mixing.settings.runs
    known = len(history_of(trials, runs))
    mixtures = [trial.mixture for trial in trials]
    for _ in range(n):
        number = len(mixtures)
        seen = search.seen(number, mixing.pending)
        if seen > known:
            return
        # The history of these trials alone: what a diverged one counts as depends on the others.
        found = search.suggest(history_of(trials[:seen], runs), 1, mixtures[seen:])
        if not found:
            return
        mixtures.append(found[0].mixture)
        yield found[0]


def run_seeds(seed: int, runs: int) -> list[int]:
    """The seeds of a mixture's runs, the same for every mixture: what differs between two trials is then the mixture
    and not the first weights or the order of the rows. The first is the seed of the final training, which is thereby
    found in the cache."""
    return [seed, *np.random.default_rng([seed, 2]).integers(2**31, size=runs - 1).tolist()]


def _plan(primary: str, auxiliaries: Sequence[str], suggestion: Suggestion, seed: int) -> Plan:
    return Plan(
        phases=(phase_of(primary, auxiliaries, suggestion.mixture),),
        seed=seed,
        label=f"{':'.join(map(str, suggestion.mixture))} ({suggestion.source})",
        note={"suggestion": _plain(suggestion)},
    )


def _plain(suggestion: Suggestion) -> dict[str, Any]:
    """As JSON has it."""
    return asdict(suggestion) | {"mixture": list(suggestion.mixture)}


def phase_of(primary: str, auxiliaries: Sequence[str], mixture: Mixture) -> Phase:
    """Blocks of η_i mini-batches of each task in turn (Sec. 3.2). A task with ratio 0 is left out, so that the same
    training has the same key whatever it was compared with."""
    named = zip([primary, *auxiliaries], mixture, strict=True)
    return Phase(order="cycle", shares={name: float(ratio) for name, ratio in named if ratio})


def told(trials: Sequence[Trial], plan: Plan, score: float) -> list[Trial]:
    """The trials after a run's score is known."""
    first = Trial(suggestion=plan.note["suggestion"], scores=[score])
    for index, trial in enumerate(trials):
        if trial.mixture == first.mixture:
            more = trial.model_copy(update={"scores": [*trial.scores, score]})
            return [*trials[:index], more, *trials[index + 1 :]]
    return [*trials, first]


def done(trials: Sequence[Trial], search: MixtureSearch, runs: int) -> bool:
    return len(history_of(trials, runs)) >= search.budget


def evidence(
    auxiliaries: Sequence[str], trials: Sequence[Trial], mixing: Mixing, search: MixtureSearch
) -> dict[str, Any]:
    """Every trial that the decision rests on with what the process expected before and expects after all, and its
    hyper-parameters: the whole surface can be drawn from this."""
    rows = [_plain(trial.suggestion) | {"scores": trial.scores, "score": trial.score} for trial in trials]
    out: dict[str, Any] = {
        "settings": mixing.settings.model_dump(
            mode="json", include={*MixingSettings.model_fields, *HedgeSettings.model_fields}
        ),
        "tasks": list(auxiliaries),
        "trials": rows,
    }
    history = observations(trials)
    if isinstance(search, HedgeSearch) and len(history) >= 2:
        means, deviations = search.expected(history)
        for row, mean, deviation in zip(rows, means.tolist(), deviations.tolist(), strict=True):
            row["expected"], row["expected_deviation"] = round(mean, 6), round(deviation, 6)
        process = search.process(history)
        out["process"] = {
            "nu": process.nu,
            "signal": process.hyper.signal,
            "noise": process.hyper.noise,
            "lengths": list(process.hyper.lengths),
            "noise_deviation": round(process.scale * process.hyper.noise**0.5, 6),
        }
    return out


def verdict(primary: str, evidence: dict[str, Any]) -> str:
    """What stage 2 found, against the primary alone, on *select*: the posterior mean where there is a process, else the
    score."""
    trials = evidence["trials"]
    best = trials[evidence["best"]]
    ratio = ":".join(map(str, best["mixture"]))
    shown = "expected" if "process" in evidence else "score"
    if not any(best["mixture"][1:]):
        return f"no auxiliary helps: {primary} alone is best of {len(trials)} mixtures ({shown} {best[shown]:.4f} on select)"
    names = ", ".join(name for name, part in zip(evidence["tasks"], best["mixture"][1:], strict=True) if part)
    text = f"{names} with {primary} at {ratio} ({primary}:{':'.join(evidence['tasks'])}), {shown} {best[shown]:.4f} on select"
    alone = next((trial for trial in trials if not any(trial["mixture"][1:])), None)
    if alone is None:
        return text
    gain = best[shown] - alone[shown]
    text += f", {signed(gain, 4)} against {primary} alone"
    if "process" in evidence and gain < evidence["process"]["noise_deviation"]:
        text += f", which is within the noise of one training ({evidence['process']['noise_deviation']:.4f})"
    return text
