"""SimulatedLearner: a learner without a model, whose best mixture is known in closed form.

For tests of methods, of the driver and of bandits, in microseconds and without torch. A task's *skill* grows with the
batches of every task that transfers to it, with diminishing returns::

    skill_k = Σ_j T[k, j] · log(1 + e_j / τ)                  e_j: batches seen of task j, each times its loss weight
    score_k = ceiling_k · (1 − exp(−max(skill_k, 0))) + noise
    loss_k  = exp(−skill_k) + noise

T[k, j] > 0: task j helps task k; T[k, j] < 0: it hurts. Row subsets change how long an epoch is, nothing else.

Noise is a function of (seed, task, what was trained so far), not a stream: looking twice gives the same number, and a look
changes nothing that comes after it.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np

from sidequest.errors import RunMismatch, SettingsError, unknown
from sidequest.files import digest, read_json, write_json
from sidequest.learning.meter import Count, Meter
from sidequest.learning.protocol import OwnPowers
from sidequest.recipe import Subset
from sidequest.settings import TrainSettings
from sidequest.tasks.pool import Pool
from sidequest.tasks.task import SPLITS, Form, Objective, TaskCard

SELECT_ROWS = 100  # what an evaluation is charged as
WORDS_PER_ROW = 10


@dataclass(frozen=True)
class Simulation:
    """The fixed facts of a simulated suite. `cards[0]` is the primary.

    transfer: T, float [K, K]: row k says what each task does for task k. ceilings: [K], the best scores. tau: τ, the number of
    batches after which returns begin to diminish. noise: the deviation of scores and losses.
    """

    cards: tuple[TaskCard, ...]
    transfer: np.ndarray
    ceilings: np.ndarray
    tau: float = 20.0
    noise: float = 0.0
    batch_size: int = 32

    def __post_init__(self) -> None:
        k = len(self.cards)
        if self.transfer.shape != (k, k) or self.ceilings.shape != (k,):
            raise SettingsError(
                f"{k} simulated tasks need a transfer matrix [{k}, {k}] and ceilings [{k}], "
                f"found {self.transfer.shape} and {self.ceilings.shape}"
            )
        if not self.transfer[0, 0] > 0:
            raise SettingsError(f"the primary must learn from itself: transfer[0, 0] > 0, found {self.transfer[0, 0]}")

    @functools.cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(card.name for card in self.cards)

    @functools.cached_property
    def fingerprint(self) -> str:
        facts = [
            list(self.names),
            self.transfer.tolist(),
            self.ceilings.tolist(),
            self.tau,
            self.noise,
            self.batch_size,
        ]
        return digest([*facts, [card.rows for card in self.cards]])[:16]

    def skills(self, exposures: np.ndarray) -> np.ndarray:
        """skill [K] after exposures e [K]."""
        return self.transfer @ np.log1p(exposures / self.tau)

    def scores(self, exposures: np.ndarray) -> np.ndarray:
        """Noise-free scores [K] after exposures e [K]."""
        return self.ceilings * -np.expm1(-np.maximum(self.skills(exposures), 0.0))

    def best_mixture(self, total_batches: float) -> np.ndarray:
        """The exposures e [K], adding up to `total_batches`, with the highest primary score: water-filling.

        Maximise Σ_j T_j log(1 + e_j/τ) with Σ e_j = B, e ≥ 0. At the optimum all tasks in use gain equally from one more batch,
        T_j / (τ + e_j) = ν, so e_j = T_j/ν − τ; over the m most useful tasks ν = Σ T_j / (B + mτ), and a task belongs to them
        as long as T_j / τ > ν.
        """
        gains = self.transfer[0]
        order = np.argsort(-gains, kind="stable")
        used, level = 1, gains[order[0]] / (total_batches + self.tau)
        while used < len(order) and gains[order[used]] > level * self.tau:
            used += 1
            level = gains[order[:used]].sum() / (total_batches + used * self.tau)
        exposures = np.zeros(len(gains))
        exposures[order[:used]] = gains[order[:used]] / level - self.tau
        return exposures

    def subset(self, names: Sequence[str]) -> Simulation:
        """The same simulation with the primary and only the named candidates."""
        for name in names:
            if name not in self.names:
                raise unknown("simulated task", name, self.names)
        keep = [0, *(self.names.index(name) for name in dict.fromkeys(names) if name != self.names[0])]
        return Simulation(
            tuple(self.cards[i] for i in keep),
            self.transfer[np.ix_(keep, keep)],
            self.ceilings[keep],
            self.tau,
            self.noise,
            self.batch_size,
        )


def simulated_card(
    name: str, rows: int = 1000, *, kind: str = "simulated", mean_words: float = WORDS_PER_ROW
) -> TaskCard:
    """A card of a classification task that exists only as numbers."""
    return TaskCard(name, Objective.CLASSIFICATION, Form.TEXT, kind, rows, mean_words, 2, SELECT_ROWS)


def helpful(
    n_helpful: int = 2,
    n_arms: int = 8,
    *,
    gain: float = 0.5,
    harm: float = 0.25,
    primary_gain: float = 0.4,
    rows: int = 320,
    noise: float = 0.01,
    tau: float = 20.0,
) -> Simulation:
    """A primary and `n_arms` candidates `arm-1` … of which the first `n_helpful` help it and the others hurt.

    gain, harm: T of a helpful and, negated, of a harmful candidate. With `n_helpful=0` single-task training is best.
    """
    if not 0 <= n_helpful <= n_arms:
        raise SettingsError(f"n_helpful lies between 0 and n_arms = {n_arms}, found {n_helpful}")
    names = ["primary", *(f"arm-{i + 1}" for i in range(n_arms))]
    transfer = np.diag(np.full(n_arms + 1, primary_gain))
    transfer[0, 1:] = np.where(np.arange(n_arms) < n_helpful, gain, -harm)
    return Simulation(
        tuple(simulated_card(name, rows) for name in names), transfer, np.full(n_arms + 1, 0.95), tau, noise
    )


@dataclass
class _Progress:
    """All that changes. exposures: weighted batches per task; positions: batches taken per (task, subset)."""

    exposures: dict[str, float] = field(default_factory=dict)
    positions: dict[str, int] = field(default_factory=dict)
    steps: int = 0
    total: int | None = None

    def copy(self) -> _Progress:
        return _Progress(dict(self.exposures), dict(self.positions), self.steps, self.total)


class SimulatedLearner(OwnPowers):
    """Implements `sidequest.learning.protocol.Learner` over a `Simulation`."""

    def __init__(self, simulation: Simulation, *, seed: int = 0, meter: Meter | None = None) -> None:
        self.simulation = simulation
        self.seed = seed
        self.meter = meter if meter is not None else Meter()
        self._at = _Progress()

    @property
    def tasks(self) -> tuple[str, ...]:
        return self.simulation.names

    @property
    def primary(self) -> str:
        return self.simulation.names[0]

    @property
    def sizes(self) -> Mapping[str, int]:
        return {card.name: card.rows for card in self.simulation.cards}

    def pool(self, train: TrainSettings | None = None) -> Pool:
        """What a method is shown of this learner's tasks."""
        cards = {card.name: card for card in self.simulation.cards}
        return Pool(self.primary, cards) if train is None else Pool(self.primary, cards, train=train)

    def epoch_batches(self, task: str, subset: Subset | None = None) -> int:
        return -(-self._rows(task, subset) // self.simulation.batch_size)

    def begin(self, total_batches: int | None, *, rate: float = 1.0, keep_optimizer: bool = False) -> None:
        self._at.steps, self._at.total = 0, total_batches

    def train(self, task: str, n_batches: int, *, weight: float = 1.0, subset: Subset | None = None) -> list[float]:
        rows, size = self._rows(task, subset), self.simulation.batch_size
        epoch = self.epoch_batches(task, subset)
        key = task if subset is None else f"{task}\t{subset.key}"
        start = self._at.positions.get(key, 0)
        losses = []
        with self.meter.timed(task) as count:
            for position in range(start, start + n_batches):
                losses.append(math.exp(-self._skill(task)) + self._noise("loss", key, position))
                self._at.exposures[task] = self._at.exposures.get(task, 0.0) + weight
                _count(count, min(size, rows - position % epoch * size))
        self._at.positions[key] = start + n_batches
        self._at.steps += n_batches
        return losses

    def evaluate(self, task: str, split: str = "select") -> float:
        if split not in SPLITS:
            raise unknown("split", split, SPLITS)
        skill = max(self._skill(task), 0.0)
        with self.meter.timed(task) as count:
            count.evaluations += 1
            count.evaluated_examples += SELECT_ROWS
        seen = sorted(self._at.exposures.items())
        score = float(self.simulation.ceilings[self._index(task)]) * -math.expm1(-skill)
        return score + self._noise(split, task, seen)

    def truth(self, task: str, learned_from: Subset | None = None) -> np.ndarray:
        """The score and its noise, around a difficulty of each row that is the same in every run, and noise of each row that is
        not: as large in their mean as the score's."""
        split = "select"
        score = self.evaluate(task, split)
        difficulty = np.array([self._row_offset(task, split, row) for row in range(SELECT_ROWS)])
        seen = sorted(self._at.exposures.items())
        noise = np.array([self._noise(split, task, seen, row) for row in range(SELECT_ROWS)]) * SELECT_ROWS**0.5
        return np.clip(score + difficulty - difficulty.mean() + noise - noise.mean(), 0.0, 1.0)

    def all_but(self, task: str, rows: int) -> Subset | None:
        return Subset(ids=np.arange(rows, self._rows(task, None)))

    def read_out_truth(self, task: str) -> np.ndarray | None:
        return None

    def with_permuted(self, tasks: Mapping[str, int]) -> Self:
        transfer = self.simulation.transfer.copy()
        for name in tasks:
            index = self._index(name)
            transfer[:, index] = np.where(np.arange(len(transfer)) == index, transfer[:, index], 0.0)
        simulation = dataclasses.replace(self.simulation, transfer=transfer)
        return type(self)(simulation, seed=self.seed, meter=self.meter)

    def label_relatedness(self, task: str) -> float:
        """The transfer to the primary, seen through noise ten times that of a score."""
        return float(self.simulation.transfer[0, self._index(task)]) + 10 * self._noise("related", task)

    def evaluate_all(self, task: str, split: str = "select") -> dict[str, float]:
        return {"score": self.evaluate(task, split)}

    def snapshot(self, *, weights_only: bool = False) -> dict[str, Any]:
        progress = self._at.copy()
        return {"exposures": progress.exposures} if weights_only else {**vars(progress), "seed": self.seed}

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        if "positions" not in snapshot:  # of what was learned only
            self._at.exposures = dict(snapshot["exposures"])
            return
        self.seed = snapshot["seed"]
        self._at = _Progress(**{key: value for key, value in snapshot.items() if key != "seed"}).copy()

    def fresh(self, seed: int) -> Self:
        return type(self)(self.simulation, seed=seed, meter=self.meter)

    def save(self, directory: Path, snapshot: Mapping[str, Any] | None = None) -> None:
        state = self.snapshot() if snapshot is None else snapshot
        write_json(directory / "simulated.json", {"simulation": self.simulation.fingerprint, "state": state})

    def load(self, directory: Path) -> None:
        data = read_json(directory / "simulated.json")
        if data["simulation"] != self.simulation.fingerprint:
            raise RunMismatch(f"{directory}: the learner saved there is of another simulation")
        self.restore(data["state"])

    def _index(self, task: str) -> int:
        if task not in self.simulation.names:
            raise unknown("task", task, self.simulation.names)
        return self.simulation.names.index(task)

    def _rows(self, task: str, subset: Subset | None) -> int:
        rows = self.simulation.cards[self._index(task)].rows
        if subset is None:
            return rows
        outside = subset.ids[subset.ids >= rows].tolist()
        if outside or not len(subset.ids):
            raise SettingsError(
                f"a subset of {task!r} has rows 0 to {rows - 1}, at least one; found {outside or 'none'}"
            )
        return len(subset.ids)

    def _skill(self, task: str) -> float:
        """Summed over the tasks trained on, in name order: others, of any number, do not change the last bit."""
        row = self.simulation.transfer[self._index(task)]
        seen = sorted(self._at.exposures.items())
        return math.fsum(float(row[self._index(name)]) * math.log1p(e / self.simulation.tau) for name, e in seen)

    def _row_offset(self, *key: object) -> float:
        hashed = hashlib.blake2b(json.dumps(key).encode(), digest_size=8).digest()
        return 0.1 * (int.from_bytes(hashed, "little") / 2**64 - 0.5)

    def _noise(self, *key: object) -> float:
        """A normal number that is a function of the seed and the key (Box–Muller over a hash)."""
        if self.simulation.noise == 0:
            return 0.0
        hashed = hashlib.blake2b(json.dumps([self.seed, *key]).encode(), digest_size=16).digest()
        first, second = int.from_bytes(hashed[:8], "little"), int.from_bytes(hashed[8:], "little")
        radius = math.sqrt(-2 * math.log((first + 1) / 2**64))
        return self.simulation.noise * radius * math.cos(2 * math.pi * second / 2**64)


def _count(count: Count, examples: int) -> None:
    count.batches += 1
    count.examples += examples
    count.tokens += WORDS_PER_ROW * examples
