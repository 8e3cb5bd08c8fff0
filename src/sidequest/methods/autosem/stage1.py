"""Stage 1 of AutoSeM: which auxiliaries are worth having, by a Beta-Bernoulli bandit (Guo et al. 2019, Sec. 3.3,
Algorithm 1)."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import BeforeValidator, Field, field_validator

from sidequest.learning.protocol import Learner
from sidequest.methods.base import PaperSettings, Pool, State
from sidequest.numerics import beta_bernoulli as bb

Rule = Literal["top-plus", "top", "mean", "credible"]


def _two_numbers(value: Any) -> Any:
    """`prior=2,1` means what `prior=[2, 1]` does."""
    return value.split(",") if isinstance(value, str) else value


Prior = Annotated[tuple[float, float], BeforeValidator(_two_numbers)]
# Above this share of rounds without any change of the score, rewards say little: see `ties_note`.
MANY_TIES = 0.5


class BanditSettings(PaperSettings):
    """gamma: how much every arm forgets in a round (Eq. 7); 0: nothing. The released code has 0.3.
    prior: (α₀, β₀) of every arm, to which it also forgets. primary_prior: where the primary's arm starts instead.
    rounds: how often an arm is drawn.
    batches: mini-batches of a round.
    learning_rate: a factor on the learning rate of training, constant over all rounds. A rate that decays makes late rounds tie
        with their predecessors, and ties are rewarded. None: the schedule of training, stretched over the rounds.
    rule: which auxiliaries are selected. `top-plus`: the best `top` by expected utility and all others above
        `threshold`; `top`: the best `top`; `mean`: all above `threshold`; `credible`: all whose lower credible bound is
        above it. The last two may select none.
    top: how many auxiliaries the rules `top` and `top-plus` always select.
    threshold: the expected utility above which the rules `top-plus`, `mean` and `credible` select.
    utility: the posterior that is selected by. `all`: every round counts the same; `decayed`: the one that arms are drawn
        from, as in the paper, which remembers the last 1/γ rounds.
    level: probability of the credible interval.
    """

    PUBLISHED: ClassVar[dict[str, Any]] = {"gamma": 0.3, "utility": "decayed", "learning_rate": None}

    gamma: float = Field(default=0.05, ge=0, le=1)
    prior: Prior = (1.0, 1.0)
    primary_prior: Prior = (2.0, 1.0)
    rounds: int = Field(default=200, ge=1)
    batches: int = Field(default=10, ge=1)
    learning_rate: float | None = Field(default=0.5, gt=0)
    rule: Rule = "top-plus"
    top: int = Field(default=2, ge=1)
    threshold: float = Field(default=0.5, ge=0, le=1)
    utility: Literal["all", "decayed"] = "all"
    level: float = Field(default=0.9, gt=0, lt=1)

    @field_validator("prior", "primary_prior")
    @classmethod
    def _positive(cls, value: tuple[float, float]) -> tuple[float, float]:
        if not all(0 < number < np.inf for number in value):
            raise ValueError("both numbers of a Beta prior are above 0")
        return value


class BanditState(State):
    """arms: the primary, then the candidates. alpha, beta: the posterior of each. pulled, rewards: one entry per round.
    scores: R_0 before the first round, then R_t after each."""

    arms: list[str]
    goal: str
    alpha: list[float]
    beta: list[float]
    pulled: list[int] = []
    rewards: list[int] = []
    scores: list[float] = []


def start(pool: Pool, settings: BanditSettings) -> BanditState:
    priors = [settings.primary_prior, *[settings.prior] * len(pool.candidates)]
    return BanditState(arms=list(pool.names), goal=pool.goal, alpha=[a for a, _ in priors], beta=[b for _, b in priors])


def play(state: BanditState, learner: Learner, rng: np.random.Generator, settings: BanditSettings) -> BanditState:
    """One round: pull an arm by Thompson sampling, train its batches, reward it if the score did not fall (Eq. 3)."""
    scores = state.scores
    if not scores:  # the first round needs a predecessor
        if settings.learning_rate is None:
            learner.begin(settings.rounds * settings.batches)
        else:
            learner.begin(None, rate=settings.learning_rate)
        scores = [_score(learner, state.goal)]
    alpha, beta = np.array(state.alpha), np.array(state.beta)
    arm = bb.thompson(alpha, beta, rng)
    learner.train(state.arms[arm], settings.batches)
    score = _score(learner, state.goal)
    reward = int(score >= scores[-1])
    alpha, beta = bb.update(alpha, beta, arm, reward, gamma=settings.gamma, prior=settings.prior)
    return state.model_copy(
        update={
            "alpha": alpha.tolist(),
            "beta": beta.tolist(),
            "pulled": [*state.pulled, arm],
            "rewards": [*state.rewards, reward],
            "scores": [*scores, score],
        }
    )


def _score(learner: Learner, goal: str) -> float:
    if goal == "average":
        return float(np.mean([learner.evaluate(task) for task in learner.tasks]))
    return learner.evaluate(learner.primary)


def utility_posterior(state: BanditState, settings: BanditSettings) -> tuple[np.ndarray, np.ndarray]:
    """α and β [arms] of the utility that tasks are selected by (Eq. 6).

    Which arm to draw next is a question about now, and forgetting is right for it. What a task was good for over the whole of
    training is another question: with γ = 0.05 the decayed posterior has forgotten nine tenths of 200 rounds.
    """
    if settings.utility == "decayed":
        return np.array(state.alpha), np.array(state.beta)
    pulls, wins = _counts(state)
    return settings.prior[0] + wins, settings.prior[1] + pulls - wins


def _counts(state: BanditState) -> tuple[np.ndarray, np.ndarray]:
    """Pulls and rewards of every arm."""
    arms = len(state.arms)
    pulls = np.bincount(state.pulled, minlength=arms)
    return pulls, np.bincount(state.pulled, weights=state.rewards, minlength=arms)


def select(state: BanditState, settings: BanditSettings) -> list[str]:
    """The auxiliaries that the rule takes, in name order. Equal utilities are ordered by name."""
    alpha, beta = utility_posterior(state, settings)
    utility = dict(zip(state.arms, bb.mean(alpha, beta).tolist(), strict=True))
    bound = dict(zip(state.arms, bb.credible_bounds(alpha, beta, settings.level)[0].tolist(), strict=True))
    ranked = sorted(state.arms[1:], key=lambda name: (-utility[name], name))
    above = {name for name in ranked if utility[name] > settings.threshold}
    chosen = {
        "top-plus": {*ranked[: settings.top], *above},
        "top": set(ranked[: settings.top]),
        "mean": above,
        "credible": {name for name in ranked if bound[name] > settings.threshold},
    }[settings.rule]
    return sorted(chosen)


def ties(state: BanditState) -> float:
    """The share of rounds after which the score was exactly what it was before; Eq. 3 rewards them."""
    scores = np.array(state.scores)
    return float(np.mean(scores[1:] == scores[:-1])) if len(scores) > 1 else 0.0


def ties_note(state: BanditState) -> str:
    """A warning for the verdict; empty where there is nothing to warn of."""
    share = ties(state)
    if share <= MANY_TIES:
        return ""
    return f"{share:.0%} of the rounds left the score on select unchanged and count as wins: the choice says little"


def evidence(state: BanditState, settings: BanditSettings) -> dict[str, Any]:
    """Posteriors, and pulls, rewards and scores round by round: with the settings, all that the figures need."""
    alpha, beta = utility_posterior(state, settings)
    utility, (low, high) = bb.mean(alpha, beta), bb.credible_bounds(alpha, beta, settings.level)
    pulls, wins = _counts(state)
    posterior = {
        name: {
            "alpha": float(alpha[k]),
            "beta": float(beta[k]),
            "mean": round(float(utility[k]), 6),
            "low": round(float(low[k]), 6),
            "high": round(float(high[k]), 6),
            "decayed": {"alpha": state.alpha[k], "beta": state.beta[k]},
            "pulls": int(pulls[k]),
            "wins": int(wins[k]),
        }
        for k, name in enumerate(state.arms)
    }
    return {
        "settings": settings.model_dump(mode="json", include=set(BanditSettings.model_fields)),
        "arms": state.arms,
        "posterior": posterior,
        "pulled": state.pulled,
        "rewards": state.rewards,
        "scores": state.scores,
        "ties": round(ties(state), 6),
    }
