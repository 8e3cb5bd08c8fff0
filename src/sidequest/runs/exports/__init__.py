"""Recipes for other trainers: `sidequest export recipe.json --to FORMAT`.

`interleave` gives the arguments of `datasets.interleave_datasets`. The other formats hold rows: one *epoch* of a phase, in
which each task appears as often as its share says (the primary's rows once, an auxiliary's rows repeated or cut as needed). A
trainer that goes through such files in random order trains the recipe's mixture without knowing about shares.

What a format cannot say is said in words, in the shell and in `EXPORT.md` beside the files.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sidequest.errors import SettingsError, SidequestError, unknown
from sidequest.files import write_atomically
from sidequest.recipe import Recipe
from sidequest.runs.exports import plain, trainers
from sidequest.runs.exports.machamp import machamp
from sidequest.runs.exports.rows import epochs_of, shares_of, weights_of
from sidequest.settings import TrainSettings
from sidequest.tasks.suite import Suite

Write = Callable[[Recipe, Suite, TrainSettings, Path], list[Path]]
NOTES = "EXPORT.md"


@dataclass(frozen=True)
class Format:
    """weight: what its weight or share means there; empty where it has none. loss_weights: whether it can say them."""

    write: Write
    weight: str = ""
    loss_weights: bool = False


FORMATS: dict[str, Format] = {
    "interleave": Format(plain.interleave, "`probabilities`: the chance with which the next row is of a dataset", True),
    "jsonl": Format(plain.jsonl, "`weight`: a factor on the row's loss", True),
    "parquet": Format(plain.parquet, "`weight`: a factor on the row's loss", True),
    "machamp": Format(machamp, "`loss_weight`: a factor on the task's loss", True),
    "axolotl": Format(trainers.axolotl),
    "trl": Format(
        trainers.trl, "`fraction`: a dataset's part of the mixture; rows are never repeated, so the files repeat them"
    ),
    "llama-factory": Format(
        trainers.llama_factory,
        "`interleave_probs` (for streaming, in a comment): the chance with which the next row is of a dataset; without "
        "streaming the files' rows are the shares",
    ),
    "sentence-transformers": Format(
        trainers.sentence_transformers, "`proportional`: batches are drawn by the number of rows in the files"
    ),
}


def export_recipe(
    recipe: Recipe, suite: Suite, to: str, out: Path, train: TrainSettings | None = None
) -> tuple[list[Path], list[str]]:
    """Write the recipe in another trainer's format.

    Args:
        recipe: The decision.
        suite: The suite that it was made for.
        to: The format: `interleave`, `jsonl`, `parquet`, `machamp`, `axolotl`, `trl`, `llama-factory` or
            `sentence-transformers`.
        out: The directory for the files.
        train: How long and in what batches the recipe would be trained here.

    Returns:
        The files written, and what to know about them.
    """
    if to not in FORMATS:
        raise unknown("export format", to, FORMATS)
    if out.is_file():
        raise SettingsError(f"{out}: is a file; -o takes a directory for the export")
    train = train if train is not None else TrainSettings()
    made = not out.exists()
    try:
        written = FORMATS[to].write(recipe, suite, train, out)
    except SidequestError:
        if made:  # a task that the format cannot hold, found after others were written
            shutil.rmtree(out, ignore_errors=True)
        raise
    said = notes(recipe, suite, to, train)
    path = out / NOTES
    write_atomically(path, _page(recipe, suite, to, train, said).encode())
    return [*written, path], said


def notes(recipe: Recipe, suite: Suite, to: str, train: TrainSettings) -> list[str]:
    """What the files cannot say by themselves, one sentence each."""
    form = FORMATS[to]
    said = []
    weights = weights_of(recipe)
    if weights and not form.loss_weights:
        named = ", ".join(f"{name} {weight:g}" for name, weight in sorted(weights.items()))
        said.append(f"{to} has no loss weights: those of the recipe are left out ({named}).")
    if len(recipe.phases) > 1:
        said.append(
            f"The recipe has {len(recipe.phases)} phases: train phase 1, then phase 2 from its model, and so on."
        )
    if any(phase.order == "cycle" and len(phase.tasks) > 1 for phase in recipe.phases):
        said.append("The recipe takes its tasks in turn; here they come in random order with the same shares.")
    if any(phase.stop_early for phase in recipe.phases):
        said.append(
            "The length is the most that sidequest would train; it keeps the best model on select, which is not in the files."
        )
    return said


def _page(recipe: Recipe, suite: Suite, to: str, train: TrainSettings, said: list[str]) -> str:
    lines = [f"# {recipe.method} for {recipe.primary}, as {to}", ""]
    if form := FORMATS[to].weight:
        lines += [f"What a weight means here: {form}.", ""]
    lines += ["| phase | task | part of the batches | epochs of the primary |", "| --- | --- | --- | --- |"]
    for index, phase in enumerate(recipe.phases, start=1):
        epochs = f"{epochs_of(phase, suite, train):.3g}"
        lines += [f"| {index} | {name} | {share:.3f} | {epochs} |" for name, share in shares_of(phase).items()]
    return "\n".join([*lines, "", *(f"- {sentence}" for sentence in said)]).rstrip() + "\n"
