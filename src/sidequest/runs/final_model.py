"""The final model of a recipe that was opened: what to train it with, the training, and the page of its directory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sidequest.progress import Progress, Several
from sidequest.records.runs import ScoresRecord
from sidequest.report.model_card import CardFacts, use_of, write_model_card
from sidequest.runs.pages import WrittenPage, write_run_page
from sidequest.runs.setup import Setup
from sidequest.runs.sources import Source
from sidequest.runs.tracking import tracking
from sidequest.runs.training import Trained, own_weights, train_recipe


def prepared(source: Source, seed: int | None = None) -> tuple[int, Setup, Path | None]:
    """The seed (None: the recipe's), the setup to train with, and the weights that the method trained itself, if it did."""
    recipe, setup = source.recipe, source.setup
    chosen = int(recipe.provenance.get("seed", 0)) if seed is None else seed
    own = None if source.other_model or not source.is_run else own_weights(source.directory, recipe, chosen)
    if own is None and setup.suite.goal == "primary":  # candidates that the recipe leaves out need no heads
        setup = Setup(setup.suite.subset(recipe.auxiliaries), setup.model, setup.train, setup.tuning)
    return chosen, setup, own


def train_source(
    source: Source,
    directory: Path,
    *,
    seed: int | None = None,
    calibrate: bool = False,
    all_rows: bool = False,
    track: Sequence[str] = (),
    progress: Progress | None = None,
    command: str = "",
) -> tuple[Trained, WrittenPage]:
    """Train, score once on *report*, and export into a directory with the recipe, the model's card and the page.

    all_rows: see `train_recipe`. A model that the method itself has trained is then trained again.
    """
    from sidequest.models.saved import ModelCard  # imports torch

    recipe = source.recipe
    chosen, setup, own = prepared(source, seed)
    facts = {"method": recipe.method, **recipe.provenance, "seed": chosen}
    settings = {key: value for key, value in facts.items() if key not in ("data", "rows")}
    with tracking(track, directory, "train", settings) as log:

        class Tracked(Progress):
            seen: float | None = None

            def training(self, done: int, total: int, best: float | None, label: str = "") -> None:
                if best is not None and best != self.seen:
                    log({"best on select": best}, done)
                    self.seen = best

        listeners = Several(progress or Progress(), Tracked())
        trained = train_recipe(
            setup,
            recipe,
            chosen,
            directory=directory,
            trained=own,
            progress=listeners,
            calibrate=calibrate,
            all_rows=all_rows,
        )
        for entry in trained.history:
            log({"select": entry["score"]}, entry["batches"])
        log({"final": {"select": trained.select, "report": trained.report}, "majority": trained.majority}, 0)
    if directory != source.directory or not (directory / "recipe.json").exists():
        recipe.write(directory / "recipe.json")  # so that the directory says what its model was trained on
    card = CardFacts(
        ModelCard.read_from(directory / "model"),
        recipe,
        ScoresRecord.read(directory),
        source.comparison,
        source.other_model,
        use_of(directory / "model"),
    )
    write_model_card(directory / "model", card)
    return trained, write_run_page(directory, source.setup.suite, "train", command, setup.model)
