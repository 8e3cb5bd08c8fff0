"""sidequest select: run a method, write the recipe."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from sidequest.cli.common import (
    DeviceOption,
    EncoderOption,
    ModelOption,
    SeedOption,
    SetOption,
    SuiteArgument,
    TrackOption,
    TuneOption,
)

NAME = "select"
HELP = (
    "Choose auxiliary tasks, mixture, weights or examples with a method, and write the decision as a recipe.\n\n"
    "A stopped run continues with the same command.\n\n"
    "Example: sidequest select suite.yaml -m heu-size -o runs/heu-size --set train.epochs=5"
)
NEEDS_ARGUMENTS = True


def command(
    suite: SuiteArgument,
    method: Annotated[str, typer.Option("--method", "-m", help="See `sidequest methods`; or your own, file.py:Class.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The run directory.")],
    model: ModelOption = None,
    encoder: EncoderOption = None,
    tune: TuneOption = None,
    assignments: SetOption = None,
    seed: SeedOption = 0,
    workers: Annotated[
        int, typer.Option("--workers", min=1, help="Trials at once, for methods that ask for whole training runs.")
    ] = 1,
    storage: Annotated[
        str | None,
        typer.Option(
            "--storage", help="Database URL for the ledger of trials. Default: trials.log in the run directory."
        ),
    ] = None,
    ray: Annotated[
        str | None,
        typer.Option("--ray", help="Run trials on a Ray cluster: auto, host:port, or local to start one here."),
    ] = None,
    track: TrackOption = None,
    device: DeviceOption = None,
) -> None:
    from sidequest.cli.common import finish_page, make_setup, progress_bar, show_encoding, tell_long_texts
    from sidequest.learning.meter import Meter
    from sidequest.methods import MethodChoice
    from sidequest.records.runs import SelectionRecord
    from sidequest.runs.selecting import select
    from sidequest.runs.tracking import check_trackers, tracking

    check_trackers(track or [])
    setup, settings = make_setup(suite, model, encoder, assignments, tune=tune)
    choice = MethodChoice.of(method, settings)  # refuse bad names and settings before data is encoded
    name = choice.name
    tell_long_texts(setup)
    unit = setup.single_run_work
    facts = setup.provenance(name, settings, seed)
    followed = {"method": name} | {key: value for key, value in facts.items() if key not in ("data", "rows")}
    with progress_bar() as progress, tracking(track or [], out, NAME, followed) as log:
        show_encoding(setup, progress)
        rounds = progress.add_task(name, total=None, note="")
        trial = progress.add_task("trial", total=None, visible=False, note="")

        def on_round(done: int, total: int | None, entry: dict[str, Any], meter: Meter) -> None:
            found = ", ".join(f"{key} {_short(value)}" for key, value in entry.items())
            progress.update(rounds, completed=done, total=total, note=f"{meter.work / unit:.1f}x  {found}")
            log(entry | {"x": meter.work / unit}, done)

        def on_batches(label: str, done: int, total: int, best: float | None) -> None:
            note = "" if best is None else f"best {best:.3f}"
            progress.update(trial, description=label or "trial", completed=done, total=total, visible=True, note=note)

        recipe = select(
            setup,
            choice,
            seed=seed,
            directory=out,
            workers=workers,
            storage=storage,
            ray=ray,
            on_round=on_round,
            on_batches=on_batches,
        )
        log({"cost": recipe.cost.model_dump(), "shares": recipe.phases[-1].shares}, 0)
    for index, phase in enumerate(recipe.phases):
        shares = ", ".join(f"{name} {phase.shares[name]:g}" for name in phase.tasks)
        typer.echo(f"phase {index + 1} ({phase.order}): {shares}")
    typer.echo(f"cost {recipe.cost.x:.1f}x, {recipe.cost.trials} trials; written to {out / 'recipe.json'}")
    if heads := SelectionRecord.read(out).heads:
        shown = "; ".join(f"{what} {len(tasks)} ({', '.join(tasks) or 'none'})" for what, tasks in heads.items())
        typer.echo(f"head importances: {shown}")
    finish_page(out, setup.suite, NAME, setup.model)
    for note in recipe.evidence.get("notes", []):
        typer.echo(f"note: {note}")
    typer.echo(f"next: sidequest train {out}")


def _short(value: Any) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)
