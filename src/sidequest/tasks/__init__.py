"""Tasks: from data files to a `Suite` of `Task`s, and the metrics that score them.

What belongs here: reading files (`readers/`), the suite file (`spec`, `loading`), columns and targets (`columns`, `targets`,
`building`), splits, the catalog of benchmarks, metrics, the check of a suite, guesses for a new one, and embedded suites.
What does not: models, batches, training. May import `errors`, `settings` and `files`; never torch or transformers.

The names below are imported when they are first used, so that importing a small part costs little.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sidequest.tasks.check import check_suite
    from sidequest.tasks.check_report import CheckReport
    from sidequest.tasks.examples import Examples
    from sidequest.tasks.guessing import guess_suite
    from sidequest.tasks.loading import load_suite, load_task
    from sidequest.tasks.memory import make_task, rows_to_examples
    from sidequest.tasks.metrics import compute
    from sidequest.tasks.rows import read_rows
    from sidequest.tasks.suite import Suite
    from sidequest.tasks.task import Form, Objective, Task

__all__ = [
    "CheckReport",
    "Examples",
    "Form",
    "Objective",
    "Suite",
    "Task",
    "check_suite",
    "compute",
    "guess_suite",
    "load_suite",
    "load_task",
    "make_task",
    "read_rows",
    "rows_to_examples",
]

_HOMES = {
    "check": ("check_suite",),
    "check_report": ("CheckReport",),
    "examples": ("Examples",),
    "guessing": ("guess_suite",),
    "loading": ("load_suite", "load_task"),
    "memory": ("make_task", "rows_to_examples"),
    "metrics": ("compute",),
    "rows": ("read_rows",),
    "suite": ("Suite",),
    "task": ("Form", "Objective", "Task"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME_OF[name]}"), name)
