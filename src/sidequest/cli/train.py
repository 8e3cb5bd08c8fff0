"""sidequest train: the final model of a recipe."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from sidequest.cli.common import (
    LARGEST_SEED,
    AllowCodeOption,
    DeviceOption,
    DryRunOption,
    EncoderOption,
    ModelOption,
    SetOption,
    TrackOption,
    TuneOption,
    whole,
)
from sidequest.cli.processes import ProcessesOption
from sidequest.formatting import fixed

NAME = "train"
HELP = (
    "Train the final model of a run directory, a comparison (its best method) or a recipe, score it once on the report split, "
    "and export it.\n\n"
    "Choose with a cheap model, train the real one: --model hf takes that model's own defaults, and what --set says.\n\n"
    "A method that trains the model itself (alphavil, diw) has left it in the run directory: that one is exported. "
    "Give the recipe file instead to train again with the learned weights.\n\n"
    "With few labelled rows, --all-rows lets the final model learn from select, too; "
    "report alone then says how good it is.\n\n"
    "The data must be what the recipe was made for; a changed dataset is refused with the difference.\n\n"
    "Example: sidequest train runs/heu-size\n\n"
    "Example: sidequest train runs/pooled --model hf --set train.epochs=10 -o runs/final\n\n"
    "Example: sidequest train runs/pooled --model hf --tune 12 -o runs/final\n\n"
    "Example: sidequest train recipe.json --suite suite.yaml -o runs/final"
)
NEEDS_ARGUMENTS = True


def command(
    source: Annotated[Path, typer.Argument(help="A run directory, a comparison's directory, or a recipe file.")],
    suite: Annotated[str | None, typer.Option("--suite", help="The suite; a run directory knows its own.")] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Where to; default: the run directory.")] = None,
    model: ModelOption = None,
    encoder: EncoderOption = None,
    assignments: SetOption = None,
    tune: TuneOption = None,
    allow_code: AllowCodeOption = False,
    seed: Annotated[
        int | None, typer.Option("--seed", parser=whole(0, LARGEST_SEED), metavar="N", help="Default: the recipe's.")
    ] = None,
    calibrate: Annotated[
        bool, typer.Option("--calibrate", help="Make probabilities fit select by a temperature; answers stay the same.")
    ] = False,
    all_rows: Annotated[
        bool, typer.Option("--all-rows", help="Learn from select, too: for few labelled rows, when all is chosen.")
    ] = False,
    processes: ProcessesOption = 1,
    track: TrackOption = None,
    dry_run: DryRunOption = False,
    device: DeviceOption = None,
) -> None:
    from sidequest.cli.arguments import own_command
    from sidequest.cli.common import is_number, say_page, tell_about_data, tuned
    from sidequest.cli.processes import check_alone, launched, own_directory
    from sidequest.errors import SettingsError, printable
    from sidequest.paths import check_output_directory
    from sidequest.progress import show_progress
    from sidequest.runs.final_model import prepared, train_source
    from sidequest.runs.sources import open_source
    from sidequest.runs.tracking import check_trackers
    from sidequest.settings import parse_assignments

    if out is not None:
        check_output_directory(out)
    check_trackers(track or [])
    if tune is not None and out is None and not dry_run:
        raise SettingsError("--tune: a model with other settings needs a place of its own, as in -o runs/final")
    check_alone(processes, None, "processes", tune)
    if not dry_run and launched(processes):
        return
    given = parse_assignments(assignments or [])
    if given["method"]:
        raise SettingsError(
            f"--set {next(iter(given['method']))}: a recipe is chosen already; use train.NAME or model.NAME"
        )
    named = {"kind": model, "encoder": encoder}
    given["model"] |= {name: value for name, value in named.items() if value is not None}
    opened = open_source(
        source,
        suite,
        model=given["model"],
        train=given["train"],
        allow_code=allow_code,
        tuned=lambda setup: setup if dry_run and is_number(tune) else tuned(setup, tune),
    )
    recipe, setup = opened.recipe, opened.setup
    own = source.is_dir() and opened.directory == source and not opened.other_model
    if out is None and not (own or dry_run):
        raise SettingsError(
            f"{source}: training a recipe file, a comparison or another model needs a place, as in -o runs/final; a run "
            "directory is its own"
        )
    out = out or source
    for note in opened.notes:
        typer.echo(printable(note))
    if calibrate:
        from sidequest.models.calibration import check_calibration

        check_calibration(setup.suite.tasks[setup.suite.primary])
    seed, setup, _ = prepared(opened, seed)
    if dry_run:
        from sidequest.cli.common import tell_costs
        from sidequest.runs.estimating import estimate_training

        tell_costs(estimate_training(setup, recipe, seed), tune=tune)
        return
    tell_about_data(setup)
    with show_progress() as progress, own_directory(out) as place:
        trained, page = train_source(
            opened,
            place,
            seed=seed,
            calibrate=calibrate,
            all_rows=all_rows,
            track=track or (),
            progress=progress,
            command=own_command(),
        )
    if setup.suite.goal == "average":
        _tell_tasks(
            {name: each[setup.suite.tasks[name].metric] for name, each in trained.tasks.items()}, recipe.primary
        )
    if all_rows:
        typer.echo("select: learned from, and so without scores")
    for split, scores in (("select", trained.select), ("report", trained.report)):
        if not scores:
            continue
        typer.echo(f"{split}: " + ", ".join(f"{name} {fixed(value, 4)}" for name, value in scores.items()))
    if trained.interval is not None:
        low, high = trained.interval
        typer.echo(f"report, 95 % for other rows of the same kind: {fixed(low, 4)} to {fixed(high, 4)}")
    if trained.majority is not None:
        typer.echo(f"report, the best constant answer: {fixed(trained.majority, 4)}")
        if trained.report[setup.suite.tasks[recipe.primary].metric] <= trained.majority:
            typer.echo("This model is no better than the best constant answer: do not trust choices made with it.")
    if (fitted := trained.calibration) is not None:
        typer.echo(
            f"calibrated on {fitted.split}: temperature {fitted.temperature:.3f}, negative log-likelihood "
            f"{fitted.loss[0]:.4f} → {fitted.loss[1]:.4f}, calibration error {fitted.error[0]:.4f} → {fitted.error[1]:.4f}"
        )
    say_page(page)
    typer.echo(f"model: {out / 'model'}")
    typer.echo(f"next: sidequest predict {out / 'model'} FILE")


def _tell_tasks(scores: Mapping[str, float], first: str) -> None:
    """What the goal `average` asks for; the lines after it are of one task alone."""
    typer.echo("report, every task: " + ", ".join(f"{name} {fixed(score, 4)}" for name, score in scores.items()))
    typer.echo(f"report, mean over {len(scores)} tasks: {fixed(sum(scores.values()) / len(scores), 4)}")
    typer.echo(f"of {first} alone:")
