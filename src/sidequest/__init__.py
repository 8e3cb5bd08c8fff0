"""sidequest: which auxiliary tasks should a model train with, how much of each, with what weight, and which examples?

    import sidequest as sq

    suite = sq.Suite(
        primary=sq.Task("reviews", frame, text="body", label="stars"),
        candidates={"other": sq.Task("other", "other.jsonl", text="body", label="stars"), "sst2": "glue/sst2"},
    )
    result = sq.compare(suite, ["heu-size", sq.AutoSeM(trials=8)], model="pooled", seeds=5)
    model = result.best.train()
    model.predict(new_frame)

Names are imported when first used: `import sidequest` is instant.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from sidequest.version import __version__ as __version__

if TYPE_CHECKING:  # for type checkers and editors; at run time a name is imported when it is first used
    from sidequest.api.calls import compare as compare
    from sidequest.api.calls import select as select
    from sidequest.api.models import Model as Model
    from sidequest.api.models import load as load
    from sidequest.api.results import ComparisonResult as ComparisonResult
    from sidequest.api.results import Selection as Selection
    from sidequest.api.suites import Suite as Suite
    from sidequest.api.suites import load_suite as load_suite
    from sidequest.api.tasks import Task as Task
    from sidequest.api.tuning import tune as tune
    from sidequest.errors import SidequestError as SidequestError
    from sidequest.methods.alphavil.alphavil import AlphaVIL as AlphaVIL
    from sidequest.methods.alphavil.diw import DIW as DIW
    from sidequest.methods.auto.auto import Auto as Auto
    from sidequest.methods.autosem.autosem import AutoSeM as AutoSeM
    from sidequest.methods.base import Method as Method
    from sidequest.methods.base import Plan as Plan
    from sidequest.methods.base import State as State
    from sidequest.methods.gradts.gradts import GradTSFg as GradTSFg
    from sidequest.methods.gradts.gradts import GradTSThres as GradTSThres
    from sidequest.methods.gradts.gradts import GradTSTrial as GradTSTrial
    from sidequest.methods.policies.counterfactual import Counterfactual as Counterfactual
    from sidequest.methods.policies.exp3s import Exp3S as Exp3S
    from sidequest.methods.registry import get_method as get_method
    from sidequest.methods.registry import method_names as method_names
    from sidequest.methods.similarity.similarity import Similarity as Similarity
    from sidequest.model_settings import BiLstmSettings as BiLstmSettings
    from sidequest.model_settings import ConvnetSettings as ConvnetSettings
    from sidequest.model_settings import CustomSettings as CustomSettings
    from sidequest.model_settings import HfSettings as HfSettings
    from sidequest.model_settings import ModelSettings as ModelSettings
    from sidequest.model_settings import PooledSettings as PooledSettings
    from sidequest.progress import Progress as Progress
    from sidequest.progress import show_progress as show_progress
    from sidequest.recipe import Phase as Phase
    from sidequest.recipe import Recipe as Recipe
    from sidequest.runs.exports import export_recipe as export_recipe
    from sidequest.runs.setup import Setup as Setup
    from sidequest.runs.training import train_recipe as train_recipe
    from sidequest.runs.tuning import Tuning as Tuning
    from sidequest.settings import Settings as Settings
    from sidequest.settings import TrainSettings as TrainSettings
    from sidequest.tasks.check import check_suite as check_suite
    from sidequest.tasks.examples import Examples as Examples
    from sidequest.tasks.memory import make_task as make_task
    from sidequest.testing.check_learner import check_learner as check_learner
    from sidequest.testing.check_method import check_method as check_method

_HOMES = {
    "sidequest.api.calls": ("compare", "select"),
    "sidequest.api.models": ("Model", "load"),
    "sidequest.api.results": ("ComparisonResult", "Selection"),
    "sidequest.api.suites": ("Suite", "load_suite"),
    "sidequest.api.tasks": ("Task",),
    "sidequest.api.tuning": ("tune",),
    "sidequest.errors": ("SidequestError",),
    "sidequest.methods.alphavil.alphavil": ("AlphaVIL",),
    "sidequest.methods.alphavil.diw": ("DIW",),
    "sidequest.methods.auto.auto": ("Auto",),
    "sidequest.methods.autosem.autosem": ("AutoSeM",),
    "sidequest.methods.base": ("Method", "Plan", "State"),
    "sidequest.methods.gradts.gradts": ("GradTSFg", "GradTSThres", "GradTSTrial"),
    "sidequest.methods.policies.counterfactual": ("Counterfactual",),
    "sidequest.methods.policies.exp3s": ("Exp3S",),
    "sidequest.methods.registry": ("get_method", "method_names"),
    "sidequest.methods.similarity.similarity": ("Similarity",),
    "sidequest.model_settings": (
        "BiLstmSettings",
        "ConvnetSettings",
        "CustomSettings",
        "HfSettings",
        "ModelSettings",
        "PooledSettings",
    ),
    "sidequest.progress": ("Progress", "show_progress"),
    "sidequest.recipe": ("Phase", "Recipe"),
    "sidequest.runs.exports": ("export_recipe",),
    "sidequest.runs.setup": ("Setup",),
    "sidequest.runs.training": ("train_recipe",),
    "sidequest.runs.tuning": ("Tuning",),
    "sidequest.settings": ("Settings", "TrainSettings"),
    "sidequest.tasks.check": ("check_suite",),
    "sidequest.tasks.examples": ("Examples",),
    "sidequest.tasks.memory": ("make_task",),
    "sidequest.testing.check_learner": ("check_learner",),
    "sidequest.testing.check_method": ("check_method",),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}

__all__ = ["__version__", *sorted(_HOME)]


if not TYPE_CHECKING:  # so that a misspelt name is an error for a type checker too

    def __getattr__(name: str) -> Any:
        if name not in _HOME:
            raise AttributeError(f"module 'sidequest' has no attribute {name!r}")
        value = getattr(importlib.import_module(_HOME[name]), name)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
