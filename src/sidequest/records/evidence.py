"""What the methods here leave in a recipe's evidence, typed: the page and the experiments read these, never the dictionary.

A recipe's evidence is plain data with names of the method's own choosing. A kind says which entries belong together and what is
in them: `find` gives it where the evidence has those entries, and one clear message where their content is of another shape.
A method of your own needs no kind here: it leaves those of `sidequest.evidence`, which are drawn for every method.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sidequest.errors import SettingsError


class _Plain(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True, protected_namespaces=())


class MethodEvidence(_Plain):
    """ENTRIES: what evidence of this kind has; the first of them is not empty."""

    ENTRIES: ClassVar[tuple[str, ...]]

    @classmethod
    def find(cls, evidence: Mapping[str, Any]) -> Self | None:
        """None where the evidence has none of this kind."""
        if not evidence.get(cls.ENTRIES[0]) or not all(name in evidence for name in cls.ENTRIES):
            return None
        return cls.of(evidence)

    @classmethod
    def of(cls, evidence: Any) -> Self:
        """The same where it must be there."""
        try:
            return cls.model_validate(evidence)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"])) or "content"
            raise SettingsError(f"evidence: {place}: {first['msg'].lower()}") from None


# AutoSeM


class Posterior(_Plain):
    """Beta distribution of one arm's utility, and its credible interval."""

    alpha: float
    beta: float
    mean: float
    low: float
    high: float


class BanditPriors(_Plain):
    """gamma: the decay of older rewards."""

    prior: tuple[float, float]
    primary_prior: tuple[float, float]
    gamma: float


class BanditStage(MethodEvidence):
    """AutoSeM's stage 1. arms: the primary first. pulled: the number of the arm in each round, with its reward."""

    ENTRIES = ("arms", "posterior", "pulled", "rewards")

    settings: BanditPriors
    arms: tuple[str, ...]
    posterior: dict[str, Posterior]
    pulled: tuple[int, ...]
    rewards: tuple[int, ...]


class MixtureTrial(_Plain):
    """mixture: whole-number shares, the primary's first. score: on *select*; not finite where training diverged."""

    mixture: tuple[int, ...]
    score: float


class MixtureBounds(_Plain):
    max_primary: int
    max_auxiliary: int


class FittedProcess(_Plain):
    """Hyper-parameters of the Gaussian process: signal and noise variance, a length scale for each auxiliary, Matérn's ν."""

    signal: float
    noise: float
    lengths: tuple[float, ...]
    nu: float


class MixtureStage(MethodEvidence):
    """AutoSeM's stage 2. tasks: the auxiliaries. best: the number of the chosen trial. process: None for a grid."""

    ENTRIES = ("trials", "tasks", "settings")

    settings: MixtureBounds
    tasks: tuple[str, ...]
    trials: tuple[MixtureTrial, ...]
    best: int = 0
    process: FittedProcess | None = None


# auto


class RoundArm(_Plain):
    """gain: over the primary alone in this round, with its standard error."""

    arm: str
    kind: str
    gain: float
    error: float


class AutoRound(MethodEvidence):
    """One round of short runs. length: in lengths of the primary. hold_out: rows of train that it was judged on too."""

    ENTRIES = ("arms", "stage")

    stage: str
    length: float
    hold_out: int = 0
    arms: tuple[RoundArm, ...]


# Policies


class PolicyCourse(_Plain):
    """policy: by task, the probability of drawing it at each of the steps."""

    step: tuple[int, ...]
    policy: dict[str, tuple[float, ...]]


class PolicyOverTime(MethodEvidence):
    """Exp3.S while it learned."""

    ENTRIES = ("policy_over_time",)

    policy_over_time: PolicyCourse


class TriedPolicy(_Plain):
    """score: on *select*; None where the policy was not tried."""

    iteration: int
    entropy_weight: float
    score: float | None


class TriedPolicies(MethodEvidence):
    """The policies that the counterfactual method learned from its log."""

    ENTRIES = ("candidates", "entropy_weight")

    candidates: tuple[TriedPolicy, ...]


class LearnedPolicy(MethodEvidence):
    """policy: the probability of drawing each task."""

    ENTRIES = ("policy",)

    policy: dict[str, float]


class MeanPolicy(MethodEvidence):
    """mean_policy: the same, as the mean over a run."""

    ENTRIES = ("mean_policy",)

    mean_policy: dict[str, float]


# αVIL and DIW


class WeightEpoch(_Plain):
    """weights, alphas: one for each task, after the epoch. alphas: αVIL's alone."""

    weights: tuple[float, ...]
    alphas: tuple[float, ...] | None = None


class WeightCourse(MethodEvidence):
    """Task weights epoch by epoch. best_epoch: the epoch whose model was kept."""

    ENTRIES = ("epochs", "tasks", "best_epoch")

    tasks: tuple[str, ...]
    epochs: tuple[WeightEpoch, ...]
    best_epoch: int


# GradTS


class HeadImportances(MethodEvidence):
    """heads: by task, the scaled importance of each attention head [layers, heads]."""

    ENTRIES = ("heads",)

    heads: dict[str, tuple[tuple[float, ...], ...]]


class NamedMatrix(_Plain):
    names: tuple[str, ...]
    values: tuple[tuple[float, ...], ...]


class HeadSimilarity(MethodEvidence):
    """tau_between: Kendall's τ between the head rankings of every two tasks, the primary first."""

    ENTRIES = ("tau_between",)

    tau_between: NamedMatrix


class RowAgreement(_Plain):
    """rows: how many the task has. share: of them, what was kept. histogram: counts of rows between the bins of τ."""

    rows: int
    share: float
    histogram: tuple[float, ...]


class KeptRows(MethodEvidence):
    """ranking: the candidates by τ. instances: what was kept of each chosen one; empty where tasks are taken whole."""

    ENTRIES = ("ranking",)

    ranking: tuple[str, ...]
    instances: dict[str, RowAgreement] = Field(default_factory=dict)


class RowTaus(MethodEvidence):
    """How τ of single rows with the primary's heads is spread. threshold: rows right of it are kept."""

    ENTRIES = ("instances", "bins")

    instances: dict[str, RowAgreement]
    bins: tuple[float, ...]
    threshold: float | None = None


# Similarity sampling


class RowTrial(_Plain):
    """select: the score on *select* with this many auxiliary rows."""

    rows: int
    select: float


class RowLadder(MethodEvidence):
    """Trainings with more and more rows."""

    ENTRIES = ("trials", "pool", "taken")

    trials: tuple[RowTrial, ...]


class RowsTaken(MethodEvidence):
    """By auxiliary, the rows that could be taken and those that were."""

    ENTRIES = ("pool", "taken")

    pool: dict[str, int]
    taken: dict[str, int]


class RankedRows(_Plain):
    """best, worst: (row id, score) of the ends. rows: how many the task has. histogram: counts of them between the bins."""

    rows: int = 0
    histogram: tuple[float, ...] = ()
    best: tuple[tuple[int, float | None], ...] = ()
    worst: tuple[tuple[int, float | None], ...] = ()


class RowRankings(MethodEvidence):
    """Rows of each task by their likeness to the primary's. threshold: the lowest score that was taken."""

    ENTRIES = ("ranked",)

    ranked: dict[str, RankedRows]
    bins: tuple[float, ...] = ()
    threshold: float | None = None


class RowFeatures(MethodEvidence):
    """features: by task, a few rows' features [rows, components]."""

    ENTRIES = ("features",)

    features: dict[str, tuple[tuple[float, ...], ...]]


# Greedy additions, as recipes of sidequest 0.1 have them; newer ones leave `sidequest.evidence.Additions`


class ScoredRanking(MethodEvidence):
    """select_scores[i]: with the first i candidates of the ranking."""

    ENTRIES = ("select_scores", "ranking")

    ranking: tuple[str, ...]
    select_scores: tuple[float, ...]


class GreedyTrial(_Plain):
    tasks: tuple[str, ...]
    select: float


class GreedyTrials(MethodEvidence):
    ENTRIES = ("trials", "tau")

    trials: tuple[GreedyTrial, ...]
