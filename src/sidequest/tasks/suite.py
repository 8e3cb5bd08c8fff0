"""A suite: one primary task and its candidates, or an `average` objective over all tasks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from sidequest.errors import SettingsError, unknown
from sidequest.tasks.task import Task

Goal = Literal["primary", "average"]


@dataclass(frozen=True, repr=False)
class Suite:
    """Tasks read from disk or built in Python; the primary comes first, candidates follow in name order.

    goal: `primary` asks for the best primary score, `average` for the best mean score over all tasks.
    defaults: the `model:` and `train:` sections of the suite file, as plain dicts.
    """

    name: str
    tasks: dict[str, Task]
    primary: str
    goal: Goal = "primary"
    seed: int = 0
    defaults: dict[str, dict[str, object]] | None = None
    path: Path | None = None

    @classmethod
    def of(
        cls,
        primary: Task,
        candidates: Iterable[Task] = (),
        *,
        name: str = "suite",
        goal: Goal = "primary",
        seed: int = 0,
        defaults: dict[str, dict[str, object]] | None = None,
        path: Path | None = None,
    ) -> Suite:
        """A suite from tasks built in Python."""
        tasks = {primary.name: primary}
        for task in sorted(candidates, key=lambda task: task.name):
            if task.name in tasks:
                raise SettingsError(f"suite {name!r}: two tasks are called {task.name!r}; names must differ")
            tasks[task.name] = task
        return cls(name, tasks, primary.name, goal, seed, defaults, path)

    def __repr__(self) -> str:
        others = len(self.candidates)
        return f"Suite {self.name!r}: {self.primary} + {others} candidate{'s' * (others != 1)}"

    @property
    def candidates(self) -> tuple[str, ...]:
        return tuple(name for name in self.tasks if name != self.primary)

    def __getitem__(self, name: str) -> Task:
        if name not in self.tasks:
            raise unknown("task", name, self.tasks)
        return self.tasks[name]

    def subset(self, names: Iterable[str]) -> Suite:
        """The same suite with the primary and only the named candidates."""
        chosen = sorted({name for name in names if name != self.primary})
        return replace(self, tasks={name: self[name] for name in (self.primary, *chosen)})

    def with_primary(self, name: str) -> Suite:
        """The same tasks with another primary."""
        primary = self[name]
        others = sorted(other for other in self.tasks if other != name)
        return replace(self, tasks={name: primary, **{other: self.tasks[other] for other in others}}, primary=name)
