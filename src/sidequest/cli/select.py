"""sidequest select: run a method, write the recipe."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated

import typer

from sidequest.cli.common import (
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
    ModelOption,
    RecheckOption,
    SeedOption,
    SetOption,
    SuiteArgument,
    TimeoutOption,
    TrackOption,
    TuneOption,
    WorkersOption,
)
from sidequest.cli.processes import ProcessesOption
from sidequest.errors import SidequestError

NAME = "select"
HELP = (
    "Choose auxiliary tasks, mixture, weights or examples with a method, and write the decision as a recipe.\n\n"
    "Without -m the method is `auto`. A stopped run continues with the same command; "
    "`auto` and some others say what they know so far.\n\n"
    "Example: sidequest select suite.yaml -o runs/mine --effort 3"
)
NEEDS_ARGUMENTS = True


@contextmanager
def telling_the_answer_so_far(out: Path, options: Sequence[str]) -> Iterator[None]:
    """Of a run that is stopped: what it can already say, and how to use it. options: of `train`, that give the same model."""
    from sidequest.recipe import Recipe
    from sidequest.runs.directory import SO_FAR

    try:
        yield
    except KeyboardInterrupt:
        path = out / SO_FAR / "recipe.json"
        if path.is_file():
            with suppress(SidequestError, OSError):
                typer.echo(f"\nso far: {Recipe.read(path).verdict}", err=True)
                words = ["sidequest", "train", str(path), *options, "-o", str(out / "final")]
                typer.echo(f"to train by that: {shlex.join(words)}", err=True)
        raise


def command(
    suite: SuiteArgument,
    out: Annotated[Path, typer.Option("--out", "-o", help="The run directory.")] = Path("runs/select"),
    method: Annotated[
        str, typer.Option("--method", "-m", help="See `sidequest methods`; or your own, file.py:Class.")
    ] = "auto",
    effort: EffortOption = None,
    budget: BudgetOption = None,
    model: ModelOption = None,
    encoder: EncoderOption = None,
    tune: TuneOption = None,
    assignments: SetOption = None,
    allow_code: AllowCodeOption = False,
    seed: SeedOption = 0,
    workers: WorkersOption = None,
    executor: ExecutorOption = "processes",
    address: AddressOption = None,
    cpus_per_trial: CpusOption = 1.0,
    gpus_per_trial: GpusOption = 0.0,
    timeout: TimeoutOption = None,
    storage: Annotated[
        str | None,
        typer.Option(
            "--storage", help="Database URL for the ledger of trials. Default: trials.log in the run directory."
        ),
    ] = None,
    processes: ProcessesOption = 1,
    track: TrackOption = None,
    dry_run: DryRunOption = False,
    recheck: RecheckOption = None,
    device: DeviceOption = None,
) -> None:
    from sidequest import ranks
    from sidequest.api.calls import select
    from sidequest.cli.arguments import own_command, with_effort
    from sidequest.cli.common import chosen_executor, make_setup, say_page, tell_about_data
    from sidequest.cli.processes import check_alone, launched, own_directory
    from sidequest.methods import MethodChoice
    from sidequest.paths import check_output_directory
    from sidequest.records.runs import SelectionRecord
    from sidequest.runs.tracking import check_trackers

    check_output_directory(out)
    check_trackers(track or [])
    check_alone(processes, workers, executor, tune)
    if not dry_run and launched(processes):
        return
    where = chosen_executor(
        1 if ranks.size() > 1 else workers, executor, address, cpus_per_trial, gpus_per_trial, timeout
    )
    setup, settings = make_setup(
        suite,
        model,
        encoder,
        assignments,
        tune=tune,
        dry_run=dry_run,
        allow_code=allow_code,
        executor=where,
        directory=out,
    )
    asked = MethodChoice.of(method, settings)  # refuse bad names and settings before data is encoded
    (choice,) = with_effort({asked.name: asked}, effort).values()
    if dry_run:
        from sidequest.cli.common import tell_costs
        from sidequest.runs.estimating import estimate_selection

        tell_costs(estimate_selection(setup, choice, seed, where.workers), [choice], tune=tune)
        return
    tell_about_data(setup)
    given = {"--suite": suite, "--model": model, "--encoder": encoder}
    same = [word for name, value in given.items() if value is not None for word in (name, value)]
    same += [word for each in assignments or () if each.startswith(("train.", "model.")) for word in ("--set", each)]
    with own_directory(out) as place, telling_the_answer_so_far(out, same):
        made = select(
            setup,
            choice,
            seed=seed,
            directory=place,
            budget=budget,
            workers=where,
            storage=storage,
            track=track or (),
            command=own_command(),
        )
        heads = SelectionRecord.read(place).heads
    recipe = made.recipe
    if recipe.verdict:
        typer.echo(recipe.verdict)
    for index, phase in enumerate(recipe.phases):
        shares = ", ".join(f"{name} {phase.shares[name]:g}" for name in phase.tasks)
        typer.echo(f"phase {index + 1} ({phase.order}): {shares}")
    typer.echo(f"cost {recipe.cost.x:.1f}x, {recipe.cost.trials} trials; written to {out / 'recipe.json'}")
    if heads:
        shown = "; ".join(f"{what} {len(tasks)} ({', '.join(tasks) or 'none'})" for what, tasks in heads.items())
        typer.echo(f"head importances: {shown}")
    say_page(made.page)
    for note in recipe.evidence.get("notes", []):
        typer.echo(f"note: {note}")
    typer.echo(f"next: sidequest train {out}")
