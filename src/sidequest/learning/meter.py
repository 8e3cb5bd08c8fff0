"""The meter counts every batch, example, token, evaluation and second, and gives the cost in x.

Counts are exact and machine-independent; seconds are kept apart, because a recipe must not depend on them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from time import perf_counter

from sidequest.recipe import Cost

# A forward pass is about a third of a training step (forward, and a backward pass of twice its work).
EVALUATION_SHARE = 1 / 3


@dataclass
class Count:
    batches: int = 0
    examples: int = 0
    tokens: int = 0
    evaluations: int = 0
    evaluated_examples: int = 0
    seconds: float = 0.0

    @property
    def work(self) -> float:
        """Trained examples, with evaluated ones at their share of the price."""
        return self.examples + EVALUATION_SHARE * self.evaluated_examples


@dataclass
class Meter:
    """Counts per task, and whole training runs. A trial found in the cache is charged like one that was run: a method's cost is
    what it asks for. `trials_reused` says how many of them were found; it depends on what ran before, so no recipe has it."""

    tasks: dict[str, Count] = field(default_factory=dict)
    trials: int = 0
    trials_reused: int = 0

    def of(self, task: str) -> Count:
        return self.tasks.setdefault(task, Count())

    @contextmanager
    def timed(self, task: str) -> Iterator[Count]:
        count, start = self.of(task), perf_counter()
        try:
            yield count
        finally:
            count.seconds += perf_counter() - start

    def add(self, other: Meter) -> None:
        """Add another meter's counts, as of a trial that ran elsewhere."""
        for task, theirs in other.tasks.items():
            mine = self.of(task)
            for name, value in asdict(theirs).items():
                setattr(mine, name, getattr(mine, name) + value)
        self.trials += other.trials
        self.trials_reused += other.trials_reused

    @property
    def work(self) -> float:
        return sum(count.work for count in self.tasks.values())

    @property
    def seconds(self) -> float:
        return sum(count.seconds for count in self.tasks.values())

    def cost(self, single_run_work: float) -> Cost:
        """The cost, with `x` in units of one single-task training run of the primary."""

        def total(name: str) -> int:
            return sum(getattr(count, name) for count in self.tasks.values())

        return Cost(
            x=round(self.work / single_run_work, 4),
            batches=total("batches"),
            examples=total("examples"),
            tokens=total("tokens"),
            evaluations=total("evaluations"),
            evaluated_examples=total("evaluated_examples"),
            trials=self.trials,
        )

    def to_json(self) -> dict[str, object]:
        """Plain data for checkpoints and trial records."""
        return {
            "tasks": {name: asdict(count) for name, count in sorted(self.tasks.items())},
            "trials": self.trials,
            "trials_reused": self.trials_reused,
        }

    @classmethod
    def from_json(cls, data: dict) -> Meter:
        counts = {name: Count(**count) for name, count in data["tasks"].items()}
        return cls(counts, data["trials"], data["trials_reused"])
