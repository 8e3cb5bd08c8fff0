"""The MTL bandit (Glover & Hokamp 2019, Sec. 4.1): a learner without a model, for which a good mixture of tasks is known.

Each arm is a task with a score. Training on an arm raises its score by a learning increment; every step lowers all scores by a
forgetting increment. How often each arm wants to be drawn is the *oracle* policy, from which the increments are made.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sidequest.errors import unknown
from sidequest.files import read_json, write_json
from sidequest.learning.meter import Meter
from sidequest.learning.protocol import OwnPowers
from sidequest.recipe import Subset
from sidequest.settings import TrainSettings
from sidequest.tasks.pool import Pool
from sidequest.tasks.task import Form, Objective, TaskCard

# A score is the probability of a right answer and its loss is −log; a score of 0 has the loss of this score instead of ∞.
SMALLEST_PROBABILITY = 1e-6
# The paper's bandit has no dataset sizes. Ours are drawn over the range of GLUE's, independent of what the arms need.
SMALLEST_SIZE, LARGEST_SIZE = 2_500, 400_000


@dataclass(frozen=True)
class BanditEnvironment:
    """What is fixed over all runs: all arrays are [N].

    oracle: π_oracle ~ Dirichlet(α). ceilings: MaxP, uniform in [0.5, 1]. learns: LI = MaxP / (T π_oracle). forgets: FI =
    U[0, 0.01] · LI. sizes: rows of a pretended dataset, for policies that look at sizes.
    """

    steps: int
    oracle: np.ndarray
    ceilings: np.ndarray
    learns: np.ndarray
    forgets: np.ndarray
    sizes: np.ndarray

    @classmethod
    def draw(
        cls, rng: np.random.Generator, *, arms: int = 8, steps: int = 2000, concentration: float = 2.0
    ) -> BanditEnvironment:
        """A random environment; `steps` is T, the length of a run for which the oracle is made."""
        oracle = rng.dirichlet(np.full(arms, concentration))
        ceilings = rng.uniform(0.5, 1.0, arms)
        learns = ceilings / (steps * oracle)
        forgets = rng.uniform(0.0, 0.01, arms) * learns
        sizes = np.exp(rng.uniform(np.log(SMALLEST_SIZE), np.log(LARGEST_SIZE), arms)).astype(np.int64)
        return cls(steps, oracle, ceilings, learns, forgets, sizes)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"arm-{index + 1}" for index in range(len(self.oracle)))

    def expected_scores(self, policy: np.ndarray) -> np.ndarray:
        """Scores [N] after T steps of a fixed policy [N] if every arm got exactly its share of each step."""
        return np.clip(self.steps * (policy * self.learns - self.forgets), 0.0, self.ceilings)

    def best_policy(self) -> np.ndarray:
        """The fixed policy [N] with the highest mean of `expected_scores`: exact, over all 2^N sets of arms worth training.

        An arm gives nothing up to the share u = FI/LI that only makes up for forgetting, then MaxP/π_oracle per unit of share
        until its ceiling at u + π_oracle. Given the arms, the best is to fill them in order of that rate. The oracle ignores
        forgetting, so it is not this policy, and where some π_oracle is small it is far from it.
        """
        upkeep, rate = self.forgets / self.learns, self.ceilings / self.oracle
        best, best_value = self.oracle, float(self.expected_scores(self.oracle).sum())
        for chosen in itertools.product((False, True), repeat=len(self.oracle)):
            shares = np.where(chosen, upkeep, 0.0)
            left = 1.0 - shares.sum()
            for arm in sorted(np.flatnonzero(chosen), key=lambda arm: -rate[arm]):
                filled = min(left, self.oracle[arm])
                shares[arm] += filled
                left -= filled
            value = float(self.expected_scores(shares).sum())
            if value > best_value:
                best, best_value = shares, value
        return np.asarray(best / best.sum())


class MTLBandit(OwnPowers):
    """Implements `sidequest.learning.protocol.Learner` and `PredictionGain`. A batch is one step, and has one example.

    Nothing in it is random: a run is a function of the order in which arms are trained.
    """

    def __init__(
        self, environment: BanditEnvironment, *, primary: str | None = None, meter: Meter | None = None
    ) -> None:
        self.environment = environment
        self.meter = meter if meter is not None else Meter()
        names = environment.names
        self._arms = {name: arm for arm, name in enumerate(names)}
        self._primary = primary if primary is not None else names[0]
        self._arm(self._primary)
        self.scores = np.zeros(len(names))

    @property
    def tasks(self) -> tuple[str, ...]:
        return (self._primary, *(name for name in self._arms if name != self._primary))

    @property
    def primary(self) -> str:
        return self._primary

    @property
    def sizes(self) -> Mapping[str, int]:
        return {name: int(self.environment.sizes[arm]) for name, arm in self._arms.items()}

    def pool(self, train: TrainSettings | None = None, goal: str = "average") -> Pool:
        """What a method is shown of the arms."""
        cards = {
            name: TaskCard(name, Objective.CLASSIFICATION, Form.TEXT, "bandit", rows, 0.0, 2)
            for name, rows in self.sizes.items()
        }
        return Pool(self.primary, cards, goal) if train is None else Pool(self.primary, cards, goal, train)

    def epoch_batches(self, task: str, subset: Subset | None = None) -> int:
        return self.sizes[task] if subset is None else len(subset.ids)

    def begin(self, total_batches: int | None, *, rate: float = 1.0, keep_optimizer: bool = False) -> None:
        """A bandit has no schedule."""

    def train(self, task: str, n_batches: int, *, weight: float = 1.0, subset: Subset | None = None) -> list[float]:
        """Draw an arm; `weight` scales what is learned."""
        arm, environment = self._arm(task), self.environment
        losses = []
        with self.meter.timed(task) as count:
            for _ in range(n_batches):
                losses.append(_loss(self.scores[arm]))
                learned = self.scores[arm] + weight * environment.learns[arm]
                self.scores[arm] = min(learned, environment.ceilings[arm])
                self.scores -= environment.forgets
                np.maximum(self.scores, 0.0, out=self.scores)
            count.batches += n_batches
            count.examples += n_batches
        return losses

    def train_with_gain(self, task: str, *, target: str | None = None) -> tuple[float, float]:
        measured = self._arm(task if target is None else target)
        before = _loss(self.scores[measured])
        self.train(task, 1)
        return before, _loss(self.scores[measured])

    def evaluate(self, task: str, split: str = "select") -> float:
        self.meter.of(task).evaluations += 1
        return float(self.scores[self._arm(task)])

    def evaluate_all(self, task: str, split: str = "select") -> dict[str, float]:
        return {"score": self.evaluate(task, split)}

    def snapshot(self, *, weights_only: bool = False) -> np.ndarray:
        return self.scores.copy()

    def restore(self, snapshot: np.ndarray) -> None:
        self.scores = snapshot.copy()

    def fresh(self, seed: int) -> MTLBandit:
        return MTLBandit(self.environment, primary=self._primary, meter=self.meter)

    def save(self, directory: Path, snapshot: np.ndarray | None = None) -> None:
        write_json(directory / "scores.json", (self.scores if snapshot is None else snapshot).tolist())

    def load(self, directory: Path) -> None:
        self.scores = np.array(read_json(directory / "scores.json"))

    def _arm(self, task: str) -> int:
        if task not in self._arms:
            raise unknown("task", task, self._arms)
        return self._arms[task]


def replay(environments: Sequence[BanditEnvironment], arms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Many runs at once, without learners: column m draws arms [T, M] in `environments[m]`.

    Returns the score of each drawn arm before its step [T, M], and the mean score over all arms after each step [T, M].
    """
    learns, forgets, ceilings = (
        np.array([getattr(environment, name) for environment in environments])
        for name in ("learns", "forgets", "ceilings")
    )
    runs, scores = np.arange(len(environments)), np.zeros(learns.shape)
    before, means = np.empty(arms.shape), np.empty(arms.shape)
    for step, drawn in enumerate(arms):
        before[step] = scores[runs, drawn]
        scores[runs, drawn] = np.minimum(before[step] + learns[runs, drawn], ceilings[runs, drawn])
        scores -= forgets
        np.maximum(scores, 0.0, out=scores)
        means[step] = scores.mean(axis=1)
    return before, means


def losses_of(scores: np.ndarray) -> np.ndarray:
    """The loss of scores of any shape."""
    return -np.log(np.maximum(scores, SMALLEST_PROBABILITY))


def _loss(score: float) -> float:
    return -math.log(max(score, SMALLEST_PROBABILITY))
