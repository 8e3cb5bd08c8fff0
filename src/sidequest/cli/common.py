"""Options that several commands share, and how they become a setup."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sidequest.methods.registry import MethodChoice
    from sidequest.model_settings import ModelSettings
    from sidequest.runs.estimating import CostEstimate
    from sidequest.runs.pages import WrittenPage
    from sidequest.runs.setup import Setup
    from sidequest.runs.tuning import Tuning
    from sidequest.search.executors import Executor
    from sidequest.tasks.suite import Suite


LARGEST_SEED = 2**63 - 1
MOST_SEEDS = 10_000
MOST_WORKERS = 1024


def whole(least: int, most: int) -> Callable[[Any], int]:
    """A parser of options: its message has the value that was found, which typer's own lacks."""

    def parse(text: Any) -> int:
        shown = str(text)
        if not re.fullmatch(r"[+-]?[0-9]{1,19}", shown) or not least <= int(shown) <= most:
            raise typer.BadParameter(f"a whole number from {least} to {most}, found {shown[:40]!r}")
        return int(shown)

    return parse


def amount(text: Any) -> float:
    """A finite number from 0."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not (math.isfinite(number) and number >= 0):
        raise typer.BadParameter(f"a finite number from 0, found {str(text)[:40]!r}")
    return number


def use_device(name: str | None) -> str | None:
    """Compute on this device, here and in worker processes; see `sidequest.models.devices`."""
    if name is not None:
        if not re.fullmatch(r"[a-z]+(:\d+)?", name):
            raise typer.BadParameter(f"{name!r} is not a device; examples: cpu, cuda, cuda:1, mps")
        os.environ["SIDEQUEST_DEVICE"] = name
    return name


def use_recheck(share: float | None) -> float | None:
    """Run this share of what is kept again, here and in worker processes; see `sidequest.search.recheck`."""
    if share is None:
        return None
    from sidequest.search.recheck import ask_for

    return ask_for(share)


SuiteArgument = Annotated[str, typer.Argument(help="A suite file, or the embedded suite `digits` or `planted`.")]
ModelOption = Annotated[str | None, typer.Option("--model", help="hf, bilstm, pooled, convnet or custom.")]
EncoderOption = Annotated[str | None, typer.Option("--encoder", help="A directory, a hub name, or `minilm`.")]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", help="name=value: a method's setting; with `train.` or `model.` in front, one of those."),
]
AllowCodeOption = Annotated[
    bool,
    typer.Option("--allow-code", help="Let the files given here name code that builds the model (model.kind: custom)."),
]
TuneOption = Annotated[
    str | None,
    typer.Option(
        "--tune",
        help="Tune the primary alone first, over this many trainings; or the file of an earlier `sidequest tune`.",
    ),
]
SeedOption = Annotated[
    int,
    typer.Option(
        "--seed", parser=whole(0, LARGEST_SEED), metavar="N", help="Decides initial weights, order and every draw."
    ),
]
WorkersOption = Annotated[
    int | None,
    typer.Option(
        "--workers",
        parser=whole(1, MOST_WORKERS),
        metavar="N",
        help="Processes at once, one thread each. Default: the number of cores.",
    ),
]
ExecutorOption = Annotated[
    str, typer.Option("--executor", help="processes: on this machine; ray: on a Ray cluster (extra `ray`).")
]
AddressOption = Annotated[
    str | None, typer.Option("--address", help="Of the Ray cluster: auto, host:port, or local to start one here.")
]
CpusOption = Annotated[float, typer.Option("--cpus-per-trial", min=0, help="Cores that a job takes of a Ray cluster.")]
GpusOption = Annotated[float, typer.Option("--gpus-per-trial", min=0, help="GPUs that a job takes of a Ray cluster.")]
TimeoutOption = Annotated[
    float | None, typer.Option("--timeout", help="Seconds after which a job is ended; it fails, the others go on.")
]
TrackOption = Annotated[
    list[str] | None,
    typer.Option("--track", help="tensorboard, mlflow or wandb: follow the run there. May be repeated."),
]
DeviceOption = Annotated[
    str | None,
    typer.Option(
        "--device",
        callback=use_device,
        help="Where to compute: cpu, cuda, cuda:1, mps. Default: SIDEQUEST_DEVICE, else a GPU where there is one.",
    ),
]
RecheckOption = Annotated[
    float | None,
    typer.Option(
        "--recheck", callback=use_recheck, help="Run this share of the kept trainings again and compare, as in 0.02."
    ),
]
DryRunOption = Annotated[
    bool,
    typer.Option("--dry-run", help="Say what it would cost in batches, x and minutes here; train and write nothing."),
]
EffortOption = Annotated[
    int | None,
    typer.Option(
        "--effort",
        min=1,
        max=5,
        help="How much `auto` may spend on choosing: about 1, 3, 6, 12 or 25 single-task runs. Default: 2; with hf 3.",
    ),
]
BudgetOption = Annotated[
    float | None,
    typer.Option(
        "--budget",
        parser=amount,
        metavar="X",
        help="The most that a selection may cost, in single-task runs; wins over --effort.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


def make_setup(
    suite: str,
    model: str | None,
    encoder: str | None,
    assignments: list[str] | None,
    primary: str | None = None,
    tune: str | None = None,
    dry_run: bool = False,
    allow_code: bool = False,
    executor: Executor | None = None,
    directory: Path | None = None,
) -> tuple[Setup, dict[str, Any]]:
    """The setup, and the method's own settings from --set. primary: another one than the suite's. tune: see `tuned`; in a dry
    run nothing is tuned. executor, directory: of the command, for a tuning."""
    from sidequest.runs.setup import Setup
    from sidequest.settings import parse_assignments
    from sidequest.tasks.loading import load_suite

    given = parse_assignments(assignments or [])
    if model is not None:
        given["model"]["kind"] = model
    if encoder is not None:
        given["model"]["encoder"] = encoder
    setup = Setup.of(load_suite(suite, primary), given["model"], given["train"], where="--set", allow_code=allow_code)
    tune = None if dry_run and is_number(tune) else tune
    return tuned(setup, tune, executor, directory), given["method"]


def is_number(tune: str | None) -> bool:
    """Whether `--tune` says how many trainings, and not which file."""
    return tune is not None and tune.isascii() and tune.isdecimal()


def tuned(setup: Setup, tune: str | None, executor: Executor | None = None, directory: Path | None = None) -> Setup:
    """The setup with tuned settings: `--tune N` tunes (or finds what was tuned before), `--tune FILE` takes a file's. executor:
    where a tuning's trainings run; directory: see `tune`."""
    if tune is None:
        return setup
    from sidequest.cli.tune import tune_visibly
    from sidequest.errors import SettingsError
    from sidequest.paths import what_is_at
    from sidequest.runs.tuning import Tuning

    if not is_number(tune):
        if what_is_at(Path(tune)) != "file":
            raise SettingsError(f"--tune takes a number of trainings or a file of `sidequest tune`, found {tune!r}")
        tuning = Tuning.read(Path(tune))
        _warn_of_edges(tuning)
        return tuning.apply(setup)
    if len(tune) > 5 or not 2 <= int(tune) <= 10_000:
        raise SettingsError(f"--tune takes 2 to 10000 trainings, found {tune[:40]}")
    tuning = tune_visibly(setup, int(tune), workers=executor or default_workers(), directory=directory)
    typer.echo(tuning.summary, err=True)
    _warn_of_edges(tuning)
    return tuning.apply(setup)


def _warn_of_edges(tuning: Tuning) -> None:
    for warning in tuning.edges_met:
        typer.echo(f"warning: {warning}: the best may lie beyond it", err=True)


def tell_costs(estimate: CostEstimate, choices: Sequence[MethodChoice] = (), *, tune: str | None = None) -> None:
    """For --dry-run: what the work comes to, and how long it takes at the speed that a moment's training shows."""
    from sidequest.errors import printable
    from sidequest.runs.estimating import measure_speed

    if is_number(tune):
        estimate.notes.append(f"--tune {tune}: up to {tune} trainings of the primary come on top")
    speed = measure_speed(estimate.setup, choices, one_thread=estimate.workers > 1)
    for line in estimate.lines(speed):
        typer.echo(printable(line))


def chosen_executor(
    workers: int | None, kind: str, address: str | None, cpus: float, gpus: float, timeout: float | None
) -> Executor:
    """Where a command's jobs run."""
    from sidequest.errors import SettingsError
    from sidequest.search.executors import Executor

    if kind != "ray" and (address is not None or gpus or cpus != 1):
        raise SettingsError("--address, --cpus-per-trial and --gpus-per-trial go with --executor ray")
    return Executor(workers or default_workers(), kind, address or "local", cpus, gpus, timeout)  # type: ignore[arg-type]


def default_workers() -> int:
    return max(1, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1))


def write_out(path: Path | None, text: str) -> None:
    """To a file or, without one, to standard output."""
    if path is None:
        typer.echo(text)
        return
    from sidequest.files import write_atomically

    write_atomically(path, text.encode())


def tell_about_data(setup: Setup) -> None:
    """Say before the work how many texts the model does not read whole, and which scored rows are also trained on."""
    from sidequest.tasks.check import leaks

    for task, message in setup.long_texts().items():
        typer.echo(f"warning: {task}: {message}", err=True)
    for message in leaks(setup.suite):
        typer.echo(f"warning: {message}", err=True)


def finish_page(directory: Path, suite: Suite, name: str, model: ModelSettings | None = None) -> None:
    """Record what readers will want to know, write the run's page, and say where it is."""
    from sidequest.cli.arguments import own_command
    from sidequest.runs.pages import write_run_page

    say_page(write_run_page(directory, suite, name, own_command(), model))


def say_page(page: WrittenPage) -> None:
    """Where a run's page is, or why it is not there."""
    typer.echo(f"the page: {page.path}" if page.problem is None else page.problem, err=page.problem is not None)
