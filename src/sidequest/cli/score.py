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
    "A run grows: the same -o with more methods, seeds or tables keeps what is done, and the figure shows all of it; "
    "--with adds the standings of another run.\n\n"
    "Example: sidequest score -m autosem-p1,heu-size,random-subset --truth digits --seeds 3 -o runs/score\n\n"
    "A method's own settings: --set autosem-p1.rounds=100."
)
NEEDS_ARGUMENTS = True


def command(
    methods: Annotated[str | None, typer.Option("--methods", "-m", help="Names, separated by commas.")] = None,
    truth: Annotated[
        list[str] | None, typer.Option("--truth", help="A truth table, or the name of one that ships; may be repeated.")
    ] = None,
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
    others: Annotated[
        list[Path] | None,
        typer.Option(
            "--with", help="A directory of another `score`, or its standings.json, to be shown beside; may be repeated."
        ),
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
    from sidequest.files import write_atomically
    from sidequest.paths import check_output_directory
    from sidequest.progress import show_progress
    from sidequest.records.standings import StandingsRecord
    from sidequest.runs.device import check_device
    from sidequest.runs.scoring import Truth, judge
    from sidequest.runs.standings import grown
    from sidequest.runs.truth import find_table

    if out is not None:
        check_output_directory(out)
    where = chosen_executor(workers, executor, address, cpus_per_trial, gpus_per_trial, timeout)
    names = [name.strip() for name in (methods or "").split(",") if name.strip()]
    if bool(names) != bool(truth) or not (names or others):
        raise SettingsError("score takes -m with the methods and --truth with the tables, or --with and no method")
    chosen, shared = chosen_methods(names, assignments)
    if shared:
        raise SettingsError(f"--set {shared[0]}: say which method it is for, as in --set METHOD.name=value")
    if suite is not None and len(truth or []) != 1:
        raise SettingsError(f"--suite: goes with one --truth, found {len(truth or []) or 'none'}")
    # Refuse bad files before any work.
    tables = [Truth.read(find_table(name), suite, allow_code=allow_code) for name in truth or []]
    found = [StandingsRecord.read(path) for path in others or []]
    if tables:
        check_device(where)
    results = grown(out, found)
    for table in tables:
        with show_progress() as progress:
            judged = judge(
                table,
                list(chosen.values()),
                range(first_seed, first_seed + seeds),
                directory=out,
                train=train,
                workers=where,
                progress=progress,
            )
        found.append(judged)
        results = grown(out, found)
    if out is not None:
        from sidequest.report.images import save_figures
        from sidequest.report.quality import figures_of, standings_csv

        write_atomically(out / "standings.csv", standings_csv(results.standings).encode())
        save_figures(figures_of(results.standings), out, ["html", "svg", "png"])  # without kaleido only html
    if as_json:
        typer.echo(json.dumps(results.to_json(), indent=2))
    else:
        print_standings(results.standings)
        for name in results.noise:
            typer.echo(
                f"{name} is noise: its subsets do not differ beyond their seeds; its standings say nothing about a method"
            )
        if out is not None:
            typer.echo(f"written to {out / StandingsRecord.FILE}; the figure: {out / 'regret-against-cost.html'}")
