"""Counterfactual estimation: learn a better fixed policy from the log of an earlier one (Glover & Hokamp 2019, Sec. 3.3)."""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import BeforeValidator, Field, field_validator

from sidequest.learning.protocol import Learner, PredictionGain
from sidequest.methods.base import Method, PaperSettings, Plan, Pool, State
from sidequest.methods.policies.log import PolicyLog, read_logs, unpack
from sidequest.methods.policies.logged_runs import LoggedRun, log_steps, sums_of, with_improvement
from sidequest.methods.policies.task_policy import policy_by_task, policy_phase, run_steps
from sidequest.numerics.off_policy import ESTIMATORS, LogSums, effective_sample_size, entropy, improve_policy
from sidequest.recipe import Phase, Recipe


def _numbers(value: Any) -> Any:
    """`entropy_weights=0.2` and `entropy_weights=0.1,0.2` mean what lists do."""
    if isinstance(value, str):
        return value.split(",")
    return (value,) if isinstance(value, int | float) else value


EntropyWeights = Annotated[tuple[float, ...], BeforeValidator(_numbers), Field(min_length=1)]


class CounterfactualSettings(PaperSettings):
    """log: run directories or files with logs to learn from instead of a first logging run.
    iterations: improvements; each but the first is preceded by a logging run of the best policy so far, the first by one of the
        uniform policy unless there is a `log`. None: 2, or 1 with a `log`, which then pays for no logging run.
    entropy_weights: λ of Eq. 14; each gives a policy, a training run on *select* chooses. One value needs no such runs.
    keep_logs: learn from `all` logs, or from the `latest` alone.
    estimator: `wis` (Eq. 11), `is` (Eq. 10), or `dr`, doubly robust.
    cma_iterations: iterations of CMA-ES, which looks for the best policy and starts at the uniform one.
    cma_population: policies that CMA-ES tries in each iteration.
    cma_sigma: the standard deviation of its first steps.
    least_effective_steps: fewer effective records than this give a warning. 100 bound the standard error of a reward in
        [0, 1] by 0.05.
    steps: batches of a run; None: `train.epochs` passes (see `task_policy.run_steps`).
    round_steps: batches per round.
    least_primary_share: the primary's least share in the recipe, when the goal is `primary`.
    """

    PUBLISHED: ClassVar[dict[str, Any]] = {"entropy_weights": (0.1, 0.15, 0.2, 0.25), "keep_logs": "latest"}

    log: str | tuple[str, ...] | None = None
    iterations: int | None = Field(None, ge=1)
    entropy_weights: EntropyWeights = (0.1, 0.15, 0.2, 0.25, 0.35, 0.5, 0.7, 1.0)
    keep_logs: Literal["all", "latest"] = "all"
    estimator: Literal["wis", "is", "dr"] = "wis"
    cma_iterations: int = Field(50, ge=1)
    cma_population: int = Field(64, ge=4)
    cma_sigma: float = Field(1.0, gt=0)
    least_effective_steps: float = Field(100.0, ge=0)
    steps: int | None = Field(None, ge=1)
    round_steps: int = Field(50, ge=1)
    least_primary_share: float = Field(0.05, gt=0, lt=1)

    @field_validator("entropy_weights")
    @classmethod
    def _usable(cls, values: tuple[float, ...]) -> tuple[float, ...]:
        if not all(0 <= value < np.inf for value in values):
            raise ValueError("every λ is a finite number of at least 0")
        if len({f"{value:g}" for value in values}) < len(values):
            raise ValueError("two λ are the same to six digits")
        return values


class Candidate(State):
    """A policy learned with one λ: its estimate V (without the entropy term), and its score on *select* once tried."""

    iteration: int
    entropy_weight: float
    policy: list[float]
    value: float
    entropy: float
    effective_steps: float
    score: float | None = None

    @property
    def label(self) -> str:
        return f"improvement {self.iteration}, λ = {self.entropy_weight:g}"


class CounterfactualState(State):
    """given: sums of the logs that were given (`LogSums` as plain data). runs: this method's own logging runs, of which the last
    may be under way. candidates: of all improvements so far."""

    tasks: list[str]
    goal: str
    steps: int
    iterations: int
    given: dict[str, list[float]] | None = None
    given_digests: list[str] = []
    runs: list[LoggedRun] = []
    candidates: list[Candidate] = []

    @property
    def improvements(self) -> int:
        """How many improvements have been computed."""
        return max((candidate.iteration for candidate in self.candidates), default=0)

    @property
    def finished_runs(self) -> list[LoggedRun]:
        return [run for run in self.runs if run.logged == self.steps]


class Counterfactual(Method[CounterfactualSettings, CounterfactualState]):
    """Log a run of the uniform policy. From the log alone, estimate what any other fixed policy would have earned (Eq. 10, 11),
    and search by CMA-ES for the softmax policy (Eq. 12) with the best estimate plus λ times its entropy (Eq. 14). Repeat from
    a run of the new policy. The reward (Eq. 16) asks for time on tasks that are still bad, as long as they get better.

    Departures from the paper:
    - λ is chosen at every improvement, by one training run on *select* for each value, and the result is the policy with the
      best such score over all improvements. The grid reaches to 1.0 (the paper's ends at 0.25) and all logs are
      kept: with the latest log alone the paper's values of λ do worse than a uniform policy in most simulated environments.
    - CMA-ES starts at the uniform policy with a step size of 1 (neither is in the paper); the best policy that it saw is taken.
    - A first visit to a task has no predecessor and earns 0.
    - The paper's goal is the mean over all tasks. With the goal `primary` Eq. 16 is asked of the primary: a step on any task
      earns 1 − exp(−L) if it lowered the loss L of a probe batch of the primary, and 0 otherwise.
    - Regression's loss is half the squared error in standardised units: a Gaussian's without its constant, so that exp(−L) is
      in [0, 1].
    - Beyond the paper: the doubly robust estimator, and a warning where the log does not cover the policy.
    """

    name = "counterfactual"
    summary = "learns a fixed policy from a logged run by weighted importance sampling with an entropy term"
    paper = "Glover & Hokamp 2019, Task Selection Policies for Multitask Learning, Sec. 3.3"
    cost = "per improvement one logging run (none from a log) and one run for each λ"
    returns = "mixture"
    anytime = True
    requires = (PredictionGain,)  # for the goal `primary`
    Settings = CounterfactualSettings
    State = CounterfactualState

    def start(self, pool: Pool, rng: np.random.Generator) -> CounterfactualState:
        settings, names = self.settings, list(pool.names)
        places = (settings.log,) if isinstance(settings.log, str) else settings.log or ()
        state = CounterfactualState(
            tasks=names,
            goal=pool.goal,
            steps=settings.steps or run_steps(pool),
            iterations=settings.iterations or (1 if places else 2),
        )
        if not places:
            uniform = LoggedRun(policy=[1 / len(names)] * len(names))
            return state.model_copy(update={"runs": [uniform]})
        logs = read_logs(places, names, pool.goal)
        if settings.keep_logs == "latest":
            logs = logs[-1:]
        sums = reduce(add, [sums_of(with_improvement(log), len(names)) for log in logs])
        given = {name: values.tolist() for name, values in vars(sums).items()}
        digests = [log.digest for log in logs]
        return self._improve(state.model_copy(update={"given": given, "given_digests": digests}), rng)

    def round(self, state: CounterfactualState, learner: Learner, rng: np.random.Generator) -> CounterfactualState:
        *finished, run = state.runs
        if run.logged == 0:
            if finished:  # every logging run trains a new model
                learner.restore(learner.fresh(self.seed + len(finished)).snapshot())
            learner.begin(state.steps)
        n_steps = min(self.settings.round_steps, state.steps - run.logged)
        run = log_steps(run, n_steps, state.tasks, state.goal, learner, rng)
        state = state.model_copy(update={"runs": [*finished, run]})
        return state if run.logged < state.steps else self._improve(state, rng)

    def ask(self, state: CounterfactualState, n: int) -> list[Plan]:
        return [
            Plan(phases=(self._phase(state, candidate),), seed=self.seed, label=candidate.label)
            for candidate in self._untried(state)[:n]
        ]

    def tell(self, state: CounterfactualState, plan: Plan, score: float) -> CounterfactualState:
        told = [
            each.model_copy(update={"score": score}) if each.label == plan.label else each for each in state.candidates
        ]
        return self._next(state.model_copy(update={"candidates": told}))

    def done(self, state: CounterfactualState) -> bool:
        return state.improvements >= state.iterations and not self._untried(state)

    def _improve(self, state: CounterfactualState, rng: np.random.Generator) -> CounterfactualState:
        """A candidate policy for each λ, from the logs."""
        settings, sums = self.settings, self._sums(state)
        seed = int(rng.integers(2**31))
        found = []
        for entropy_weight in settings.entropy_weights:
            policy = improve_policy(
                sums,
                entropy_weight,
                seed=seed,
                estimator=settings.estimator,
                iterations=settings.cma_iterations,
                population=settings.cma_population,
                sigma=settings.cma_sigma,
            )
            found.append(
                Candidate(
                    iteration=state.improvements + 1,
                    entropy_weight=entropy_weight,
                    policy=policy.tolist(),
                    value=float(ESTIMATORS[settings.estimator](policy, sums)),
                    entropy=float(entropy(policy)),
                    effective_steps=float(effective_sample_size(policy, sums)),
                )
            )
        return self._next(state.model_copy(update={"candidates": [*state.candidates, *found]}))

    def _next(self, state: CounterfactualState) -> CounterfactualState:
        """Begin the next logging run once this improvement is settled, if another is wanted."""
        if self._untried(state) or state.improvements >= state.iterations:
            return state
        best = _best([each for each in state.candidates if each.iteration == state.improvements])
        return state.model_copy(update={"runs": [*state.runs, LoggedRun(policy=best.policy)]})

    def _untried(self, state: CounterfactualState) -> list[Candidate]:
        """What *select* must still choose from; a single λ leaves no choice."""
        if len(self.settings.entropy_weights) == 1:
            return []
        return [candidate for candidate in state.candidates if candidate.score is None]

    def _phase(self, state: CounterfactualState, candidate: Candidate) -> Phase:
        return policy_phase(
            state.tasks,
            np.array(candidate.policy),
            goal=state.goal,
            steps=state.steps,
            least_primary_share=self.settings.least_primary_share,
        )

    def _sums(self, state: CounterfactualState) -> LogSums:
        """What improvements learn from: all logs, or the latest."""
        sums = [run.sums for run in state.finished_runs]
        if state.given is not None:
            sums.insert(0, LogSums(**{name: np.array(values) for name, values in state.given.items()}))
        return reduce(add, sums if self.settings.keep_logs == "all" else sums[-1:])

    # What is shown and kept

    def total(self, state: CounterfactualState) -> int:
        rounds = -(-state.steps // self.settings.round_steps)
        values = len(self.settings.entropy_weights)
        return (state.iterations - (state.given is not None)) * rounds + state.iterations * (
            values if values > 1 else 0
        )

    def journal(self, state: CounterfactualState) -> dict[str, object]:
        if state.runs and state.runs[-1].logged < state.steps:
            return {"logging": len(state.runs), "step": state.runs[-1].logged}
        tried = [candidate for candidate in state.candidates if candidate.score is not None]
        return {"tried": tried[-1].label, "score": tried[-1].score} if tried else {"improvement": state.improvements}

    def recipe(self, state: CounterfactualState) -> Recipe:
        if not state.candidates:  # a budget ended the first logging run
            return self._undecided(state)
        best, sums = _best(state.candidates), self._sums(state)
        warnings = self._warnings(state.tasks, best, sums)
        origin = (
            f"λ = {best.entropy_weight:g} at improvement {best.iteration}, "
            f"from {int(sums.steps):,} logged steps, {len(state.finished_runs) * state.steps:,} of them new"
        )
        candidates = [
            each.model_dump(exclude={"policy"}) | {"policy": policy_by_task(state.tasks, each.policy)}
            for each in state.candidates
        ]
        return Recipe(
            method=self.name,
            primary=state.tasks[0],
            phases=(self._phase(state, best),),
            evidence={
                "goal": state.goal,
                "steps": state.steps,
                "policy": policy_by_task(state.tasks, best.policy),
                "entropy_weight": best.entropy_weight,
                "iteration": best.iteration,
                "mean_reward": policy_by_task(state.tasks, sums.mean_rewards),
                "logged": dict(zip(state.tasks, sums.counts.astype(int).tolist(), strict=True)),
                "logging_policies": [policy_by_task(state.tasks, run.policy) for run in state.runs],
                "given_logs": state.given_digests,
                "candidates": candidates,
                "warnings": warnings,
            },
            verdict="; ".join([origin, *warnings]),
        )

    def _undecided(self, state: CounterfactualState) -> Recipe:
        """Before any policy is learned: the primary alone, or for the goal `average` the policy that was being logged."""
        run = state.runs[-1]
        alone = Phase(shares={state.tasks[0]: 1})
        uniform = policy_phase(state.tasks, np.array(run.policy), goal=state.goal, steps=state.steps)
        return Recipe(
            method=self.name,
            primary=state.tasks[0],
            phases=(alone if state.goal == "primary" else uniform,),
            evidence={"goal": state.goal, "steps": state.steps, "logged_steps": run.logged},
            verdict=f"no policy was learned: the budget ended after {run.logged:,} of {state.steps:,} steps of the first "
            "logging run",
        )

    def artifacts(self, state: CounterfactualState) -> dict[str, bytes]:
        files = {}
        for number, run in enumerate(state.finished_runs, start=1):
            about = {
                "method": self.name,
                "policy": dict(zip(state.tasks, run.policy, strict=True)),
                "settings": self.settings.model_dump(mode="json", exclude={"log"}),
            }
            log = PolicyLog(tuple(state.tasks), unpack(run.blocks), state.goal, "improvement", about)
            files[f"logs/logging-{number}.parquet"] = log.to_parquet()
        return files

    def _warnings(self, tasks: list[str], best: Candidate, sums: LogSums) -> list[str]:
        found = []
        unseen = [name for name, count in zip(tasks, sums.counts, strict=True) if count == 0]
        if unseen:
            found.append(f"the log has no step on {', '.join(unseen)}: their shares are not learned")
        if best.effective_steps < self.settings.least_effective_steps:
            found.append(
                f"the log is worth only {best.effective_steps:.0f} steps of the chosen policy: its estimate is unsure"
            )
        return found


def _best(candidates: list[Candidate]) -> Candidate:
    """The best on *select*, of equals the latest and then the smoothest; untried ones (a single λ) count as equal."""

    def rank(candidate: Candidate) -> tuple[float, int, float]:
        score = -np.inf if candidate.score is None else candidate.score
        return score, candidate.iteration, candidate.entropy_weight

    return max(candidates, key=rank)
