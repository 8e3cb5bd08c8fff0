"""What a method chooses from: the cards of the primary and of its candidates."""

from __future__ import annotations

from dataclasses import dataclass, field

from sidequest.settings import TrainSettings
from sidequest.tasks.task import TaskCard


@dataclass(frozen=True)
class Pool:
    """What there is to choose from. `cards[name]` for every task, the primary included.

    train: how a recipe will be trained, for methods whose own runs are as long as that.
    fine_tunes: whether that changes a whole encoder, or a network of which nothing is known. Then a short run is no small copy of
        a long one.
    """

    primary: str
    cards: dict[str, TaskCard]
    goal: str = "primary"
    train: TrainSettings = field(default_factory=TrainSettings)
    fine_tunes: bool = False

    @property
    def candidates(self) -> tuple[str, ...]:
        """Auxiliary candidates in name order, so that no choice depends on the order in a file."""
        return tuple(sorted(name for name in self.cards if name != self.primary))

    @property
    def names(self) -> tuple[str, ...]:
        """The primary, then the candidates."""
        return (self.primary, *self.candidates)
