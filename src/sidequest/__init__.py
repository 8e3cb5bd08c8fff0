"""sidequest: which auxiliary tasks should a model train with, how much of each, with what weight, and which examples?

    import sidequest

    suite = sidequest.load_suite("suite.yaml")
    setup = sidequest.Setup.of(suite, model={"kind": "pooled"})
    recipe = sidequest.select(setup, "heu-size")
    trained = sidequest.train_recipe(setup, recipe, seed=0)
    trained.report

Names are imported when first used: `import sidequest` is instant.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

_HOMES = {
    "Examples": "sidequest.tasks.examples",
    "Task": "sidequest.tasks.task",
    "Suite": "sidequest.tasks.suite",
    "load_suite": "sidequest.tasks.loading",
    "make_task": "sidequest.tasks.memory",
    "check_suite": "sidequest.tasks.check",
    "Recipe": "sidequest.recipe",
    "Phase": "sidequest.recipe",
    "ModelSettings": "sidequest.settings",
    "TrainSettings": "sidequest.settings",
    "Setup": "sidequest.runs.setup",
    "select": "sidequest.runs.selecting",
    "train_recipe": "sidequest.runs.training",
    "compare": "sidequest.runs.comparing",
    "export_recipe": "sidequest.runs.exports",
    "Progress": "sidequest.progress",
    "show_progress": "sidequest.progress",
    "SidequestError": "sidequest.errors",
}

__all__ = ["__version__", *sorted(_HOMES)]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'sidequest' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
