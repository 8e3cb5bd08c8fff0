"""sidequest train: the final model of a recipe."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sidequest.cli.common import DeviceOption, TrackOption

NAME = "train"
HELP = (
    "Train the final model of a run directory or a recipe, score it once on the report split, and export it.\n\n"
    "A method that trains the model itself (alphavil, diw) has left it in the run directory: that one is exported. "
    "Give the recipe file instead to train anew with the learned weights.\n\n"
    "The data must be what the recipe was made for; a changed dataset is refused with the difference.\n\n"
    "Example: sidequest train runs/heu-size\n\n"
    "Example: sidequest train recipe.json --suite suite.yaml -o runs/final"
)
NEEDS_ARGUMENTS = True


def command(
    source: Annotated[Path, typer.Argument(help="A run directory, or a recipe file.")],
    suite: Annotated[str | None, typer.Option("--suite", help="The suite; a run directory knows its own.")] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Where to; default: the run directory.")] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Default: the recipe's.")] = None,
    track: TrackOption = None,
    device: DeviceOption = None,
) -> None:
    from sidequest.cli.common import finish_page, progress_bar, recipe_and_suite, show_encoding
    from sidequest.errors import SettingsError
    from sidequest.runs.setup import Setup
    from sidequest.runs.tracking import check_trackers, tracking
    from sidequest.runs.training import own_weights, train_recipe

    check_trackers(track or [])
    if out is None:
        if not source.is_dir():
            raise SettingsError(f"{source}: training a recipe file needs -o; a run directory is its own")
        out = source
    recipe, setup = recipe_and_suite(source, suite)
    whole = setup.suite
    seed = int(recipe.provenance.get("seed", 0)) if seed is None else seed
    own = own_weights(source, recipe, seed)
    if own is None and setup.suite.goal == "primary":  # candidates that the recipe leaves out need no heads
        setup = Setup(setup.suite.subset(recipe.auxiliaries), setup.model, setup.train, setup.tuning)
    facts = {"method": recipe.method, **recipe.provenance, "seed": seed}
    shown = {key: value for key, value in facts.items() if key not in ("data", "rows")}
    with progress_bar() as progress, tracking(track or [], out, NAME, shown) as log:
        show_encoding(setup, progress)
        bar = progress.add_task("training", total=None, note="")

        seen: list[float | None] = [None]

        def on_batches(done: int, total: int, best: float | None) -> None:
            progress.update(bar, completed=done, total=total, note="" if best is None else f"best on select {best:.3f}")
            if best is not None and best != seen[-1]:
                log({"best on select": best}, done)
                seen.append(best)

        trained = train_recipe(setup, recipe, seed, directory=out, trained=own, progress=on_batches)
        for entry in trained.history:
            log({"select": entry["score"]}, entry["batches"])
        log({"final": {"select": trained.select, "report": trained.report}, "majority": trained.majority}, 0)
    for split, scores in (("select", trained.select), ("report", trained.report)):
        typer.echo(f"{split}: " + ", ".join(f"{name} {value:.4f}" for name, value in scores.items()))
    if trained.majority is not None:
        typer.echo(f"report, always the most frequent class: {trained.majority:.4f}")
        if trained.report[setup.suite.tasks[recipe.primary].metric] <= trained.majority:
            typer.echo("This model is no better than the most frequent class: do not trust choices made with it.")
    if not (out / "recipe.json").exists():
        recipe.write(out / "recipe.json")  # so that the directory says what its model was trained on
    finish_page(out, whole, NAME)
    typer.echo(f"model: {out / 'model'}")
    typer.echo(f"next: sidequest predict {out / 'model'} FILE")
