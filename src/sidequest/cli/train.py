"""sidequest train: the final model of a recipe."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sidequest.cli.common import DeviceOption, DryRunOption, EncoderOption, ModelOption, SetOption, TrackOption
from sidequest.formatting import fixed

NAME = "train"
HELP = (
    "Train the final model of a run directory, a comparison (its best method) or a recipe, score it once on the report split, "
    "and export it.\n\n"
    "Choose with a cheap model, train the real one: --model hf takes that model's own defaults, and what --set says.\n\n"
    "A method that trains the model itself (alphavil, diw) has left it in the run directory: that one is exported. "
    "Give the recipe file instead to train anew with the learned weights.\n\n"
    "The data must be what the recipe was made for; a changed dataset is refused with the difference.\n\n"
    "Example: sidequest train runs/heu-size\n\n"
    "Example: sidequest train runs/pooled --model hf --set train.epochs=10 -o runs/final\n\n"
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
    seed: Annotated[int | None, typer.Option("--seed", help="Default: the recipe's.")] = None,
    calibrate: Annotated[
        bool, typer.Option("--calibrate", help="Make probabilities fit select by a temperature; answers stay the same.")
    ] = False,
    track: TrackOption = None,
    dry_run: DryRunOption = False,
    device: DeviceOption = None,
) -> None:
    from sidequest.cli.common import finish_page, tell_long_texts
    from sidequest.errors import SettingsError
    from sidequest.progress import Progress, Several, show_progress
    from sidequest.runs.setup import Setup
    from sidequest.runs.sources import open_source
    from sidequest.runs.tracking import check_trackers, tracking
    from sidequest.runs.training import own_weights, train_recipe
    from sidequest.settings import parse_assignments

    check_trackers(track or [])
    given = parse_assignments(assignments or [])
    if given["method"]:
        raise SettingsError(
            f"--set {next(iter(given['method']))}: a recipe is chosen already; use train.NAME or model.NAME"
        )
    named = {"kind": model, "encoder": encoder}
    given["model"] |= {name: value for name, value in named.items() if value is not None}
    opened = open_source(source, suite, model=given["model"], train=given["train"])
    recipe, setup = opened.recipe, opened.setup
    if out is None:
        if not source.is_dir() or opened.directory != source or opened.other_model:
            raise SettingsError(
                f"{source}: training a recipe file, a comparison or another model needs -o; a run directory is its own"
            )
        out = source
    for note in opened.notes:
        typer.echo(note)
    whole = setup.suite
    if calibrate:
        from sidequest.models.calibration import check_calibration

        check_calibration(whole.tasks[whole.primary])
    seed = int(recipe.provenance.get("seed", 0)) if seed is None else seed
    own = None if opened.other_model or not source.is_dir() else own_weights(opened.directory, recipe, seed)
    if own is None and setup.suite.goal == "primary":  # candidates that the recipe leaves out need no heads
        setup = Setup(setup.suite.subset(recipe.auxiliaries), setup.model, setup.train, setup.tuning)
    if dry_run:
        from sidequest.cli.common import tell_costs
        from sidequest.runs.estimating import estimate_training

        tell_costs(estimate_training(setup, recipe, seed))
        return
    tell_long_texts(setup)
    facts = {"method": recipe.method, **recipe.provenance, "seed": seed}
    shown = {key: value for key, value in facts.items() if key not in ("data", "rows")}
    with show_progress() as progress, tracking(track or [], out, NAME, shown) as log:

        class Tracked(Progress):
            seen: float | None = None

            def training(self, done: int, total: int, best: float | None, label: str = "") -> None:
                if best is not None and best != self.seen:
                    log({"best on select": best}, done)
                    self.seen = best

        listeners = Several(progress, Tracked())
        trained = train_recipe(setup, recipe, seed, directory=out, trained=own, progress=listeners, calibrate=calibrate)
        for entry in trained.history:
            log({"select": entry["score"]}, entry["batches"])
        log({"final": {"select": trained.select, "report": trained.report}, "majority": trained.majority}, 0)
    for split, scores in (("select", trained.select), ("report", trained.report)):
        typer.echo(f"{split}: " + ", ".join(f"{name} {fixed(value, 4)}" for name, value in scores.items()))
    if trained.majority is not None:
        typer.echo(f"report, the best constant answer: {fixed(trained.majority, 4)}")
        if trained.report[setup.suite.tasks[recipe.primary].metric] <= trained.majority:
            typer.echo("This model is no better than the best constant answer: do not trust choices made with it.")
    if (fitted := trained.calibration) is not None:
        typer.echo(
            f"calibrated on {fitted.split}: temperature {fitted.temperature:.3f}, negative log-likelihood "
            f"{fitted.loss[0]:.4f} → {fitted.loss[1]:.4f}, calibration error {fitted.error[0]:.4f} → {fitted.error[1]:.4f}"
        )
    if not (out / "recipe.json").exists():
        recipe.write(out / "recipe.json")  # so that the directory says what its model was trained on
    finish_page(out, whole, NAME, setup.model)
    typer.echo(f"model: {out / 'model'}")
    typer.echo(f"next: sidequest predict {out / 'model'} FILE")
