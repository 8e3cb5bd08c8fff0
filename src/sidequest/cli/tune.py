"""sidequest tune: find the settings with which the primary alone is strongest, once for all methods."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sidequest.cli.common import (
    AddressOption,
    AllowCodeOption,
    CpusOption,
    DeviceOption,
    EncoderOption,
    ExecutorOption,
    GpusOption,
    JsonOption,
    ModelOption,
    RecheckOption,
    SeedOption,
    SetOption,
    SuiteArgument,
    TimeoutOption,
    WorkersOption,
    whole,
)

if TYPE_CHECKING:
    from sidequest.runs.setup import Setup
    from sidequest.runs.tuning import Tuning
    from sidequest.search.executors import Executor

NAME = "tune"
HELP = (
    "Tune the primary alone (rate, length, weight decay, layers, ...) on select, once for all methods of the suite.\n\n"
    "The result is a file to read, edit and pass on: select, compare and oracle take it as --tune FILE, or tune by themselves "
    "with --tune N.\n\n"
    "Example: sidequest tune suite.yaml --model pooled -o tuning.json"
)
NEEDS_ARGUMENTS = True


def command(
    suite: SuiteArgument,
    out: Annotated[Path, typer.Option("--out", "-o", help="The file to write.")] = Path("tuning.json"),
    trainings: Annotated[
        int, typer.Option("--trainings", parser=whole(2, 10_000), metavar="N", help="Trainings of the primary alone.")
    ] = 24,
    model: ModelOption = None,
    encoder: EncoderOption = None,
    assignments: SetOption = None,
    allow_code: AllowCodeOption = False,
    seed: SeedOption = 0,
    workers: WorkersOption = None,
    executor: ExecutorOption = "processes",
    address: AddressOption = None,
    cpus_per_trial: CpusOption = 1.0,
    gpus_per_trial: GpusOption = 0.0,
    timeout: TimeoutOption = None,
    as_json: JsonOption = False,
    recheck: RecheckOption = None,
    device: DeviceOption = None,
) -> None:
    from sidequest.cli.common import chosen_executor, make_setup
    from sidequest.errors import SettingsError
    from sidequest.paths import check_output_file

    check_output_file(out)
    where = chosen_executor(workers, executor, address, cpus_per_trial, gpus_per_trial, timeout)
    setup, stray = make_setup(suite, model, encoder, assignments, allow_code=allow_code)
    if stray:
        raise SettingsError(f"--set {next(iter(stray))}: the primary alone has no method; use train.NAME or model.NAME")
    tuning = tune_visibly(setup, trainings, seed, where, out.parent)
    tuning.write(out)
    if as_json:
        typer.echo(tuning.model_dump_json(indent=2))
        return
    typer.echo(
        f"{tuning.primary}: {tuning.metric} on select {tuning.default_score:.3f} by default, {tuning.score:.3f} tuned "
        f"(mean of {tuning.splits} splits, best of {len(tuning.tried)} settings)"
    )
    typer.echo(tuning.summary)
    for warning in tuning.at_edge:
        typer.echo(f"warning: {warning}")
    typer.echo(f"written to {out}; next: sidequest compare {suite} --tune {out}")


def tune_visibly(
    setup: Setup, trainings: int, seed: int = 0, workers: int | Executor = 1, directory: Path | None = None
) -> Tuning:
    """`runs.tuning.tune`, with progress shown."""
    from sidequest.progress import show_progress
    from sidequest.runs.tuning import tune

    with show_progress() as progress:
        return tune(setup, trainings, seed=seed, progress=progress, workers=workers, directory=directory)
