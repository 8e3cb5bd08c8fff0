"""sidequest oracle: every subset of the candidates, trained and scored."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sidequest.cli.common import (
    MOST_SEEDS,
    AddressOption,
    AllowCodeOption,
    CpusOption,
    DeviceOption,
    DryRunOption,
    EncoderOption,
    ExecutorOption,
    GpusOption,
    JsonOption,
    ModelOption,
    RecheckOption,
    SetOption,
    SuiteArgument,
    TimeoutOption,
    TuneOption,
    WorkersOption,
    whole,
)

NAME = "oracle"
HELP = (
    "Train every subset of the candidates on every seed, and keep the scores as a truth table.\n\n"
    "Up to 8 candidates all subsets are tried, beyond that a seeded sample. The same command continues after a kill. "
    "`sidequest score` then judges methods by the table, without training their choices.\n\n"
    "Example: sidequest oracle digits --seeds 5 -o truth/digits.json"
)
NEEDS_ARGUMENTS = True


def command(
    suite: SuiteArgument,
    seeds: Annotated[
        int, typer.Option("--seeds", parser=whole(2, MOST_SEEDS), metavar="N", help="How many seeds.")
    ] = 5,
    out: Annotated[Path, typer.Option("--out", "-o", help="The truth table.")] = Path("truth.json"),
    sample: Annotated[
        int | None,
        typer.Option("--sample", parser=whole(2, 10**6), metavar="N", help="So many random subsets instead of all."),
    ] = None,
    candidates: Annotated[
        str | None, typer.Option("--candidates", help="Only these of the suite's, separated by commas.")
    ] = None,
    shares: Annotated[
        str, typer.Option("--shares", help="Batches of an auxiliary for one of the primary: 0,1,3 tries each so often.")
    ] = "0,1",
    model: ModelOption = None,
    encoder: EncoderOption = None,
    tune: TuneOption = None,
    assignments: SetOption = None,
    allow_code: AllowCodeOption = False,
    workers: WorkersOption = None,
    executor: ExecutorOption = "processes",
    address: AddressOption = None,
    cpus_per_trial: CpusOption = 1.0,
    gpus_per_trial: GpusOption = 0.0,
    timeout: TimeoutOption = None,
    as_json: JsonOption = False,
    dry_run: DryRunOption = False,
    recheck: RecheckOption = None,
    device: DeviceOption = None,
) -> None:
    from sidequest.cli.arguments import own_command
    from sidequest.cli.common import chosen_executor, make_setup
    from sidequest.cli.tables import print_truth
    from sidequest.errors import SettingsError
    from sidequest.paths import check_output_file
    from sidequest.progress import show_progress
    from sidequest.runs.oracle import oracle

    check_output_file(out)
    where = chosen_executor(workers, executor, address, cpus_per_trial, gpus_per_trial, timeout)
    setup, stray = make_setup(
        suite,
        model,
        encoder,
        assignments,
        tune=tune,
        dry_run=dry_run,
        allow_code=allow_code,
        executor=where,
        directory=out.parent,
    )
    if stray:
        raise SettingsError(f"--set {next(iter(stray))}: an oracle has no method; use train.NAME or model.NAME")
    levels = _levels(shares, sample)
    if candidates is not None:
        from dataclasses import replace

        setup = replace(setup, suite=setup.suite.subset([name.strip() for name in candidates.split(",")]))
    if dry_run:
        from sidequest.cli.common import tell_costs
        from sidequest.runs.estimating import estimate_oracle

        tell_costs(estimate_oracle(setup, seeds, sample, where.workers), tune=tune)
        return
    with show_progress() as progress:
        table = oracle(
            setup,
            range(seeds),
            out,
            command=own_command(),
            suite=suite,
            sample=sample,
            shares=levels,
            workers=where,
            progress=progress,
        )
    if as_json:
        typer.echo(table.model_dump_json(indent=2))
    else:
        print_truth(table)
        typer.echo(f"written to {out}")


def _levels(text: str, sample: int | None) -> tuple[int, ...]:
    from sidequest.errors import SettingsError

    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() for part in parts) or "0" not in parts or len(parts) < 2:
        raise SettingsError(f"--shares takes whole numbers with 0 among them, such as 0,1,3; found {text!r}")
    levels = tuple(sorted({int(part) for part in parts}))
    if sample is not None and levels != (0, 1):
        raise SettingsError("--sample goes with sets, not with --shares")
    return levels
