"""The papers' experiments as commands: `python -m experiments NAME [--small]`, from a checkout of the repository.

One module per experiment, of which the command uses four functions: `jobs_of(options)` lists its jobs without touching data,
`shared_of(options)` is what they all need, `run_job(shared, job, needed)` does one, and `show(options, results)` prints the
tables of those that are done, writes `results.json` and figures under `options.out`, and returns the results as plain data.
Finished jobs are files of the repository (see `experiments.jobs`). Experiments use the library; nothing in it imports them.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from experiments.jobs import RESULTS, ExperimentJob, Result, ResultStore, counts, repeat, run_missing
from sidequest.errors import SettingsError, unknown
from sidequest.model_settings import EncoderSettings

Model = TypeVar("Model", bound=EncoderSettings)


@dataclass(frozen=True)
class Options:
    """small: a size that a laptop does in minutes. data: the directory with the benchmark files, where one is needed.
    seeds: how many; None takes the experiment's own number. first_seed: they are counted from here.
    workers: processes at once, one torch thread each. minutes: after so many no further job begins.
    encoder: instead of the experiment's own. primaries, only: of its primaries and of its parts these; None: all.
        Which experiment takes which of the three stands in `TAKES`.
    results: where finished jobs are kept."""

    out: Path
    small: bool = False
    data: Path | None = None
    seeds: int | None = None
    workers: int = 1
    encoder: str | None = None
    primaries: tuple[str, ...] | None = None
    only: tuple[str, ...] | None = None
    first_seed: int = 0
    minutes: float | None = None
    results: Path = RESULTS

    def seed_range(self, usual: int) -> range:
        return range(self.first_seed, self.first_seed + (self.seeds or usual))

    def store(self, experiment: str) -> ResultStore:
        encoder = "" if self.encoder is None else "-" + re.sub(r"\W+", "-", self.encoder).strip("-")
        return ResultStore(experiment, ("small" if self.small else "full") + encoder, self.results)

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
    "autosem": ("encoder", "primaries", "only"),
    "policies": ("encoder", "only"),
    "nlu": ("encoder",),
    "gradts": ("encoder", "primaries", "only"),
    "similarity": ("encoder", "primaries", "only"),
}
FLAGS = {"encoder": "--encoder", "primaries": "--primary", "only": "--only"}


def run(name: str, options: Options) -> dict[str, Any]:
    """Run what is missing of an experiment, and show what there is."""
    module = checked(name, options)
    jobs = module.jobs_of(options)
    found: dict[str, Result] = run_missing(
        module.run_job,
        module.shared_of(options),
        jobs,
        options.store(name),
        workers=options.workers,
        minutes=options.minutes,
    )
    if missing := len(jobs) - len(found):
        print(f"{missing} of {len(jobs)} jobs are missing; the same command goes on with them")
    return module.show(options, found)


def run_again(name: str, options: Options, method: str) -> bool:
    """Repeat one stored job of a method under today's code."""
    module = checked(name, options)
    return repeat(module.run_job, module.shared_of(options), module.jobs_of(options), options.store(name), method)


def status_lines(options: Options) -> list[str]:
    """What there is and what is missing, by experiment and size."""
    lines = []
    for name in EXPERIMENTS:
        module = importlib.import_module(f"experiments.{name}")
        for small in (True, False):
            sized = replace(options, small=small)
            jobs: list[ExperimentJob] = module.jobs_of(sized)
            found = counts(sized.store(name), jobs)
            told = ", ".join(f"{count} {state}" for state, count in found.items() if count)
            lines.append(f"{name:12} {'small' if small else 'full':6} {len(jobs):5} jobs: {told}")
    return lines


def checked(name: str, options: Options) -> Any:
    """The module of an experiment that takes these options."""
    if name not in EXPERIMENTS:
        raise unknown("experiment", name, EXPERIMENTS)
    for field, flag in FLAGS.items():
        if getattr(options, field) is not None and field not in TAKES.get(name, ()):
            able = ", ".join(other for other, fields in TAKES.items() if field in fields)
            raise SettingsError(f"{flag}: the experiment {name!r} takes none; {able} do")
    return importlib.import_module(f"experiments.{name}")
