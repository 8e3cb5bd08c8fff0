"""sidequest score: how good a method's choice is, by a truth table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sidequest.cli.common import (
    LARGEST_SEED,
    MOST_SEEDS,
    AddressOption,
    AllowCodeOption,
    CpusOption,
    DeviceOption,
    ExecutorOption,
    GpusOption,
    JsonOption,
    SetOption,
    TimeoutOption,
    WorkersOption,
    whole,
)

NAME = "score"
HELP = (
    "Judge methods by truth tables: each selects on the table's suite, and its choice is looked up, not trained.\n\n"
    "Regret is how far the chosen set is below the best one, rank its place among all subsets, x the cost of choosing. "
    "With --train the recipe is also trained as the method gave it, and the part of the oracle's gain that it delivers is "
    "shown.\n\n"
    "Example: sidequest score -m autosem-p1,heu-size,random-subset --truth digits --seeds 3 -o runs/score\n\n"
    "A method's own settings: --set autosem-p1.rounds=100."
)
NEEDS_ARGUMENTS = True


def command(
    methods: Annotated[str, typer.Option("--methods", "-m", help="Names, separated by commas.")],
    truth: Annotated[
        list[str], typer.Option("--truth", help="A truth table, or the name of one that ships; may be repeated.")
    ],
    seeds: Annotated[
        int, typer.Option("--seeds", parser=whole(1, MOST_SEEDS), metavar="N", help="How many seeds of each method.")
    ] = 3,
    first_seed: Annotated[
        int,
        typer.Option(
            "--first-seed", parser=whole(0, LARGEST_SEED - MOST_SEEDS), metavar="N", help="The first of them."
        ),
    ] = 0,
    train: Annotated[
        bool, typer.Option("--train", help="Train each recipe as it is, and the primary alone beside it.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="A directory for runs, tables and the figure.")
    ] = None,
    suite: Annotated[str | None, typer.Option("--suite", help="Where the suite is now, for one table.")] = None,
    assignments: SetOption = None,
    allow_code: AllowCodeOption = False,
    workers: WorkersOption = None,
    executor: ExecutorOption = "processes",
    address: AddressOption = None,
    cpus_per_trial: CpusOption = 1.0,
    gpus_per_trial: GpusOption = 0.0,
    timeout: TimeoutOption = None,
    as_json: JsonOption = False,
    device: DeviceOption = None,
) -> None:
    import json

    from sidequest.cli.arguments import chosen_methods
    from sidequest.cli.common import chosen_executor
    from sidequest.cli.tables import print_standings
    from sidequest.errors import SettingsError
    from sidequest.paths import check_output_directory
    from sidequest.progress import show_progress
    from sidequest.records.standings import Judged, Standing, StandingsRecord
    from sidequest.runs.scoring import Truth, judge
    from sidequest.runs.truth import LARGEST_P, find_table

    if out is not None:
        check_output_directory(out)
    where = chosen_executor(workers, executor, address, cpus_per_trial, gpus_per_trial, timeout)
    names = [name.strip() for name in methods.split(",") if name.strip()]
    chosen, shared = chosen_methods(names, assignments)
    if shared:
        raise SettingsError(f"--set {shared[0]}: say which method it is for, as in --set METHOD.name=value")
    if suite is not None and len(truth) > 1:
        raise SettingsError("--suite: goes with one --truth, found several")
    judged: list[Judged] = []
    standings: list[Standing] = []
    tables = [
        Truth.read(find_table(name), suite, allow_code=allow_code) for name in truth
    ]  # refuse a bad table before any work
    for table in tables:
        with show_progress() as progress:
            found = judge(
                table,
                list(chosen.values()),
                range(first_seed, first_seed + seeds),
                directory=out,
                train=train,
                workers=where,
                progress=progress,
            )
        judged += found[0]
        standings += found[1]
    noise = [table.name for table in tables if table.table.signal.p_value > LARGEST_P]
    results = StandingsRecord(standings=standings, judged=judged, noise=noise)
    if out is not None:
        from sidequest.report.images import save_figures
        from sidequest.report.quality import regret_against_cost

        results.write(out)
        figure = regret_against_cost(standings)
        save_figures({"regret-against-cost": figure}, out, ["html", "svg", "png"])  # without kaleido only html
    if as_json:
        typer.echo(json.dumps(results.to_json(), indent=2))
    else:
        print_standings(standings)
        for name in noise:
            typer.echo(
                f"{name} is noise: its subsets do not differ beyond their seeds; its standings say nothing about a method"
            )
        if out is not None:
            typer.echo(f"written to {out / StandingsRecord.FILE}; the figure: {out / 'regret-against-cost.html'}")
