"""The papers' experiments as commands: `python -m experiments NAME [--small]`, from a checkout of the repository.

One file per experiment with `main(options) -> dict`: it prints its table, writes `results.json` and figures under
`options.out`, and returns the results as plain data. They are users of the library: nothing in `sidequest` imports them.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sidequest.errors import unknown


@dataclass(frozen=True)
class Options:
    """small: a size that a laptop does in minutes. data: the directory with the benchmark files, where one is needed.
    seeds: how many; None takes the experiment's own number. workers: processes at once, one torch thread each."""

    out: Path
    small: bool = False
    data: Path | None = None
    seeds: int | None = None
    workers: int = 1


# name -> what it shows
EXPERIMENTS: dict[str, str] = {
    "autosem": "tasks by a bandit, mixing ratios by a Gaussian process (Guo et al. 2019, Tables 1 to 3)",
    "bandit": "task-selection policies on the MTL bandit (Glover & Hokamp 2019, Figure 1)",
    "policies": "task-selection policies on GLUE with one shared model (Glover & Hokamp 2019, Tables 1 and 3)",
    "multimnist": "learned task weights on two overlaid digits (Kourdis et al. 2020, Table 1 and Figure 3)",
    "nlu": "learned task weights on five small language tasks (Kourdis et al. 2020, Table 2)",
    "gradts": "task and row selection from attention heads (Ma et al. 2021, Tables 2 to 6 and 9, Figures 1 to 4)",
    "similarity": "auxiliary rows that look like the primary's (Kung et al. 2021, Figures 1 and 3 to 9, Table 3)",
}


def run(name: str, options: Options) -> dict[str, Any]:
    """Run an experiment by name."""
    if name not in EXPERIMENTS:
        raise unknown("experiment", name, EXPERIMENTS)
    main: Callable[[Options], dict[str, Any]] = importlib.import_module(f"experiments.{name}").main
    return main(options)
