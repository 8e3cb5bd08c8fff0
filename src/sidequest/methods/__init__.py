"""Methods: a package per paper, and the list of them.

A method is maths and decisions: it may import numpy, scipy, `numerics`, `recipe`, `settings` and `learning.protocol`,
never torch. `base` tells the lifecycle; CONTRIBUTING tells how to add one.
"""

from __future__ import annotations

import importlib
from typing import Any

from sidequest.errors import unknown
from sidequest.methods.base import Method

# name -> module:class, so that listing methods imports nothing heavy
METHODS: dict[str, str] = {
    "auto": "auto.auto:Auto",
    "single": "baselines:Single",
    "all": "baselines:All",
    "uniform": "baselines:Uniform",
    "size": "baselines:Size",
    "temperature": "baselines:Temperature",
    "random-subset": "baselines:RandomSubset",
    "heu-size": "gradts.heuristics:HeuSize",
    "heu-type": "gradts.heuristics:HeuType",
    "heu-len": "gradts.heuristics:HeuLen",
    "autosem": "autosem.autosem:AutoSeM",
    "autosem-p1": "autosem.autosem:AutoSeMP1",
    "autosem-no-stage1": "autosem.autosem:AutoSeMNoStage1",
    "autosem-grid": "autosem.autosem:AutoSeMGrid",
    "exp3s": "policies.exp3s:Exp3S",
    "counterfactual": "policies.counterfactual:Counterfactual",
    "alphavil": "alphavil.alphavil:AlphaVIL",
    "diw": "alphavil.diw:DIW",
    "gradts-thres": "gradts.gradts:GradTSThres",
    "gradts-trial": "gradts.gradts:GradTSTrial",
    "gradts-fg": "gradts.gradts:GradTSFg",
    "similarity": "similarity.similarity:Similarity",
    "similarity-ce": "similarity.similarity:SimilarityCE",
    "random-data": "similarity.row_sampling:RandomData",
}


def get_method(name: str) -> type[Method[Any, Any]]:
    """The class of a method by name."""
    if name not in METHODS:
        raise unknown("method", name, METHODS)
    module, _, cls = METHODS[name].partition(":")
    return getattr(importlib.import_module(f"sidequest.methods.{module}"), cls)
