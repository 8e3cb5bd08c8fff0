"""Stage 2 of AutoSeM: how much of each selected task, by search over integer ratios (Guo et al. 2019, Sec. 3.4)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
    """trials: mixtures to try, each by a full training (the paper: 15 or 20). runs: trainings per mixture, whose mean counts.
    max_primary, max_auxiliary: the primary's ratio is 1 to the first, an auxiliary's 0 to the second.
    """

    trials: int = Field(default=20, ge=1)
    runs: int = Field(default=1, ge=1)
    max_primary: int = Field(default=20, ge=1)
    max_auxiliary: int = Field(default=5, ge=1)


class HedgeSettings(MixingSettings):
    """initial: how many of the trials come first, whatever they score. design: how these are placed: `spread` fills the space and
        begins with the primary alone, `random` draws them.
    choose: the mixture with the highest posterior `mean`, or with the highest `score`.
    matern: smoothness of the kernel.
    xi, kappa: of PI and EI, and of UCB, in deviations of the scores. eta: how sharply the portfolio follows its gains.
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
    """A mixture that was tried: the primary's ratio first, then the auxiliaries' in name order.

    scores: one per run. source: `design`, `grid` or an acquisition function. mean, deviation: what the process expected
    of it before.
    """

    model_config = ConfigDict(extra="forbid")

    mixture: tuple[int, ...]
    scores: list[float]
    source: str
    mean: float | None = None
    deviation: float | None = None
    probabilities: dict[str, float] | None = None

    @property
    def score(self) -> float:
        return float(np.mean(self.scores))


def make_search(n_auxiliaries: int, settings: MixingSettings, seed: int) -> MixtureSearch:
    """GP-Hedge if there are settings for it, else a grid with the same number of trials."""
    space = MixtureSpace(n_auxiliaries, settings.max_primary, settings.max_auxiliary)
    if not isinstance(settings, HedgeSettings):
        return GridSearch(space, settings.trials, seed)
    return HedgeSearch(
        space,
        settings.trials,
        seed,
        initial=settings.initial,
        design=settings.design,
        choose=settings.choose,
        nu={"5/2": 2.5, "3/2": 1.5}[settings.matern],
        xi=settings.xi,
        kappa=settings.kappa,
        eta=settings.eta,
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
    settings: MixingSettings,
    n: int,
) -> list[Plan]:
    """Up to n training runs to do now: first the runs that a mixture still lacks, then new mixtures."""
    runs = settings.runs
    seeds = run_seeds(search.seed, runs)
    unfinished = [trial for trial in trials if len(trial.scores) < runs]
    wanted = [(Suggestion(t.mixture, t.source), seed) for t in unfinished for seed in seeds[len(t.scores) :]]
    ahead = list(upcoming(trials, search, settings, -(-(n - len(wanted)) // runs))) if len(wanted) < n else []
    wanted += [(suggestion, seed) for suggestion in ahead for seed in seeds]
    return [_plan(primary, auxiliaries, suggestion, seed) for suggestion, seed in wanted[:n]]


def upcoming(trials: Sequence[Trial], search: MixtureSearch, settings: MixingSettings, n: int) -> Iterator[Suggestion]:
    """Up to n new mixtures that follow from the scores so far.

    Mixture number k is decided by the scores of all but the `pending` - 1 mixtures before it, whether the others are known by
    then or not: so it is the same mixture with one worker and with many.
    """
    known = len(history_of(trials, settings.runs))
    mixtures = [trial.mixture for trial in trials]
    pending = settings.pending if isinstance(settings, HedgeSettings) else 1
    for _ in range(n):
        number = len(mixtures)
        seen = search.seen(number, pending)
        if seen > known:
            return
        # The history of these trials alone: what a diverged one counts as depends on the others.
        found = search.suggest(history_of(trials[:seen], settings.runs), 1, mixtures[seen:])
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
        note={
            "mixture": list(suggestion.mixture),
            "source": suggestion.source,
            "mean": suggestion.mean,
            "deviation": suggestion.deviation,
            "probabilities": suggestion.probabilities,
        },
    )


def phase_of(primary: str, auxiliaries: Sequence[str], mixture: Mixture) -> Phase:
    """Blocks of η_i mini-batches of each task in turn (Sec. 3.2). A task with ratio 0 is left out, so that the same
    training has the same key whatever it was compared with."""
    named = zip([primary, *auxiliaries], mixture, strict=True)
    return Phase(order="cycle", shares={name: float(ratio) for name, ratio in named if ratio})


def told(trials: Sequence[Trial], plan: Plan, score: float) -> list[Trial]:
    """The trials after a run's score is known."""
    mixture = tuple(plan.note["mixture"])
    for index, trial in enumerate(trials):
        if trial.mixture == mixture:
            more = trial.model_copy(update={"scores": [*trial.scores, score]})
            return [*trials[:index], more, *trials[index + 1 :]]
    return [*trials, Trial(**{**plan.note, "mixture": mixture}, scores=[score])]


def done(trials: Sequence[Trial], search: MixtureSearch, runs: int) -> bool:
    return len(history_of(trials, runs)) >= search.budget


def evidence(
    auxiliaries: Sequence[str], trials: Sequence[Trial], settings: MixingSettings, search: MixtureSearch
) -> dict[str, Any]:
    """Every trial that the decision rests on with what the process expected before and expects after all, and its
    hyper-parameters: the whole surface can be drawn from this."""
    rows = [trial.model_dump(mode="json") | {"score": trial.score} for trial in trials]
    out: dict[str, Any] = {
        "settings": settings.model_dump(
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
