"""The papers' experiments as commands: `python -m experiments NAME [--small]`, from a checkout of the repository.

One file per experiment with `main(options) -> dict`: it prints its table, writes `results.json` and figures under
`options.out`, and returns the results as plain data. They are users of the library: nothing in `sidequest` imports them.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from sidequest.errors import SettingsError, unknown
from sidequest.model_settings import EncoderSettings

Model = TypeVar("Model", bound=EncoderSettings)


@dataclass(frozen=True)
class Options:
    """small: a size that a laptop does in minutes. data: the directory with the benchmark files, where one is needed.
    seeds: how many; None takes the experiment's own number. workers: processes at once, one torch thread each.
    encoder: instead of the experiment's own. primaries, only: of its primaries and of its parts these; None: all.
        Which experiment takes which of the three stands in `TAKES`."""

    out: Path
    small: bool = False
    data: Path | None = None
    seeds: int | None = None
    workers: int = 1
    encoder: str | None = None
    primaries: tuple[str, ...] | None = None
    only: tuple[str, ...] | None = None

    def with_encoder(self, model: Model) -> Model:
        """A model's settings with the encoder that was asked for."""
        return model if self.encoder is None else model.model_copy(update={"encoder": self.encoder})

    def of_primaries(self, known: Sequence[str]) -> tuple[str, ...]:
        return _chosen("primary of this experiment", self.primaries, known)

    def of_parts(self, known: Sequence[str]) -> tuple[str, ...]:
        return _chosen("part of this experiment", self.only, known)


def _chosen(what: str, wanted: tuple[str, ...] | None, known: Sequence[str]) -> tuple[str, ...]:
    """Those of the known names that are wanted, in their own order."""
    for name in wanted or ():
        if name not in known:
            raise unknown(what, name, known)
    return tuple(name for name in known if wanted is None or name in wanted)


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


# What an experiment can be narrowed or changed by.
TAKES: dict[str, tuple[str, ...]] = {
    "autosem": ("encoder", "primaries"),
    "policies": ("encoder",),
    "nlu": ("encoder",),
    "gradts": ("encoder", "primaries", "only"),
    "similarity": ("encoder", "primaries"),
}
FLAGS = {"encoder": "--encoder", "primaries": "--primary", "only": "--only"}


def run(name: str, options: Options) -> dict[str, Any]:
    """Run an experiment by name."""
    if name not in EXPERIMENTS:
        raise unknown("experiment", name, EXPERIMENTS)
    for field, flag in FLAGS.items():
        if getattr(options, field) is not None and field not in TAKES.get(name, ()):
            able = ", ".join(other for other, fields in TAKES.items() if field in fields)
            raise SettingsError(f"{flag}: the experiment {name!r} takes none; {able} do")
    main: Callable[[Options], dict[str, Any]] = importlib.import_module(f"experiments.{name}").main
    return main(options)
