"""sidequest compare: methods over seeds, with intervals, cost and a verdict."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sidequest.cli.common import (
    MOST_SEEDS,
    AddressOption,
    AllowCodeOption,
    BudgetOption,
    CpusOption,
    DeviceOption,
    DryRunOption,
    EffortOption,
    EncoderOption,
    ExecutorOption,
    GpusOption,
    JsonOption,
    ModelOption,
    RecheckOption,
    SetOption,
    SuiteArgument,
    TimeoutOption,
    TrackOption,
    TuneOption,
    WorkersOption,
    whole,
)
from sidequest.cli.processes import ProcessesOption

if TYPE_CHECKING:
    from sidequest.methods import MethodChoice
    from sidequest.records.comparisons import Comparison
    from sidequest.runs.setup import Setup

NAME = "compare"
HELP = (
    "Compare methods over seeds: each selects on the select split, trains, and is scored on the report split.\n\n"
    "Without -m the method is `auto`. single, all, size and random-subset are always included, and the controls single-long and "
    "probe. Results are kept: the same command continues, and methods, seeds or a budget can be added.\n\n"
    "Example: sidequest compare suite.yaml -m auto,heu-type --seeds 5 -o runs/compare\n\n"
    "A method's own settings: --set heu-size.name=value. Equal cost: --budget 20 stops every selection at 20x. "
    "Several primaries: --primary rte,mrpc gives one table with a column for each."
)
NEEDS_ARGUMENTS = True


def command(
    suite: SuiteArgument,
    methods: Annotated[str, typer.Option("--methods", "-m", help="Names, separated by commas.")] = "auto",
    seeds: Annotated[
        int, typer.Option("--seeds", parser=whole(1, MOST_SEEDS), metavar="N", help="How many seeds.")
    ] = 5,
    out: Annotated[Path, typer.Option("--out", "-o", help="The directory of the comparison.")] = Path("runs/compare"),
    effort: EffortOption = None,
    budget: BudgetOption = None,
    primary: Annotated[
        str | None, typer.Option("--primary", help="Other primaries than the suite's, separated by commas.")
    ] = None,
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
    processes: ProcessesOption = 1,
    track: TrackOption = None,
    as_json: JsonOption = False,
    dry_run: DryRunOption = False,
    recheck: RecheckOption = None,
    device: DeviceOption = None,
) -> None:
    import json

    from sidequest import ranks
    from sidequest.api.calls import compare
    from sidequest.cli.arguments import chosen_methods, own_command, with_effort
    from sidequest.cli.common import chosen_executor, make_setup, tell_about_data
    from sidequest.cli.processes import check_alone, launched, own_directory
    from sidequest.cli.tables import print_comparison, print_primaries
    from sidequest.errors import SettingsError
    from sidequest.paths import check_output_directory
    from sidequest.runs.comparing import ALWAYS
    from sidequest.runs.primaries import write_table
    from sidequest.runs.tracking import check_trackers

    check_output_directory(out)
    check_trackers(track or [])
    check_alone(processes, workers, executor, tune)
    if not dry_run and launched(processes):
        return
    where = chosen_executor(
        1 if ranks.size() > 1 else workers, executor, address, cpus_per_trial, gpus_per_trial, timeout
    )
    names = [name.strip() for name in methods.split(",") if name.strip()]
    chosen, shared = chosen_methods(list(dict.fromkeys([*names, *ALWAYS])), assignments)
    chosen = with_effort(chosen, effort)
    wanted = [choice for name, choice in chosen.items() if name not in ALWAYS or choice.settings or name in names]
    primaries: list[str | None] = [name.strip() for name in (primary or "").split(",") if name.strip()]
    if len({*primaries}) < len(primaries):
        raise SettingsError(f"--primary {primary}: a task is named twice")
    setups = []
    for name in primaries or [None]:  # all are read before any work starts
        setup, stray = make_setup(
            suite, model, encoder, shared, name, tune, dry_run, allow_code=allow_code, executor=where, directory=out
        )
        if stray:
            raise SettingsError(f"--set {next(iter(stray))}: say which method it is for, as in --set METHOD.name=value")
        setups.append(setup)
    if dry_run:
        for setup in setups:
            place = out if len(setups) == 1 else out / setup.suite.primary
            _tell_costs(setup, wanted, seeds, place, budget, where.workers, tune)
        return
    tell_about_data(setups[0])
    comparisons: dict[str, Comparison] = {}
    with own_directory(out) as root:
        for setup in setups:
            place = root if len(setups) == 1 else root / setup.suite.primary
            result = compare(
                setup,
                wanted,
                seeds=seeds,
                directory=place,
                budget=budget,
                workers=where,
                track=track or (),
                command=own_command(),
            )
            comparisons[setup.suite.primary] = comparison = result.record
            if not as_json:
                print_comparison(comparison)
                _name_what_is_not_shown(comparison, place)
                _say_where_the_page_is(place)
        if len(setups) > 1:
            table = write_table(comparisons, root, setups[0].suite, own_command())
            if as_json:
                typer.echo(json.dumps(table.to_json(), indent=2))
            else:
                print_primaries(table)
                _say_where_the_page_is(out)
                typer.echo(f"written to {out / 'table.json'} and {out / 'table.csv'}")
        elif as_json:
            typer.echo(json.dumps(comparisons[setups[0].suite.primary].to_json(), indent=2))
        else:
            typer.echo(f"written to {out / 'comparison.json'} and {out / 'outcomes.parquet'}")
    if any(comparison.missing for comparison in comparisons.values()):
        raise typer.Exit(1)


def _tell_costs(
    setup: Setup,
    methods: list[MethodChoice],
    seeds: int,
    directory: Path,
    budget: float | None,
    workers: int,
    tune: str | None,
) -> None:
    from sidequest.cli.common import tell_costs
    from sidequest.runs.comparing import cells_to_run
    from sidequest.runs.estimating import estimate_comparison

    missing, done = cells_to_run(setup, methods, range(seeds), directory, budget)
    tell_costs(estimate_comparison(setup, missing, budget, workers, done), [choice for choice, _ in missing], tune=tune)


def _name_what_is_not_shown(comparison: Comparison, directory: Path) -> None:
    """Methods of earlier commands on the same directory: their runs are kept, but a table has what was asked for."""
    done = {path.relative_to(directory).parts[0] for path in directory.glob("**/seed-*/outcome.json")}
    if others := sorted(done - {row.method for row in comparison.rows}):
        names = ", ".join(others)
        typer.echo(f"also done here, and not in this table: {names}; name them with -m to see them all together")


def _say_where_the_page_is(directory: Path) -> None:
    from sidequest.report.page import PAGE

    if (directory / PAGE).is_file():
        typer.echo(f"the page: {directory / PAGE}")
