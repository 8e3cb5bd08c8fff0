"""A recipe and what to train it with: from a run directory, a comparison or a file, for the model it was made with or another.

A recipe says what to train on. It may be chosen with a cheap model and trained with the real one: then the model and training
settings are the new model's own defaults and whatever is given, and lengths that the recipe states in epochs of the cheap model
are carried over in proportion.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from sidequest.errors import RunMismatch, SettingsError, SidequestError, nearest
from sidequest.model_settings import AUTO, model_settings, settings_class
from sidequest.models import resolved_kind
from sidequest.models.defaults import training_settings
from sidequest.paths import what_is_at
from sidequest.recipe import Phase, Recipe
from sidequest.records.comparisons import Comparison
from sidequest.records.verdicts import best_row
from sidequest.runs.consent import check_consent
from sidequest.runs.directory import SO_FAR, read_run
from sidequest.runs.setup import Setup, names_given
from sidequest.settings import TrainSettings, parse
from sidequest.tasks.loading import load_suite
from sidequest.tasks.suite import Suite

CARRIED = ("encoder", "max_length")  # model settings that mean the same for every kind of model


@dataclass(frozen=True)
class Source:
    """directory: of the run that the recipe came from. other_model: whether it will be trained with another model than it was
    chosen with. is_run: whether it is a run, not a recipe file alone. notes: what a user should know of its origin. comparison:
    the one that the run is part of."""

    recipe: Recipe
    setup: Setup
    directory: Path
    other_model: bool = False
    is_run: bool = True
    notes: list[str] = field(default_factory=list)
    comparison: Comparison | None = None


def open_source(
    source: Path,
    suite: str | Suite | None = None,
    *,
    model: dict[str, Any] | None = None,
    train: dict[str, Any] | None = None,
    allow_code: bool = False,
    tuned: Callable[[Setup], Setup] | None = None,
) -> Source:
    """source: a run directory, the directory of a comparison (its best method is taken), or a recipe file.

    suite: needed where no run directory knows it; a suite file's model and training settings then win over the recipe's.
    model, train: settings that win over both. Data that changed since the recipe was made are refused.
    allow_code: whether files may name code that builds the model. tuned: gives the setup the settings of a tuning, once all
    else is known to be right; a model of other settings than those the recipe was chosen with is another model.
    """
    notes: list[str] = []
    if source.suffix in (".yaml", ".yml") and what_is_at(source) == "file":
        raise SettingsError(
            f"{source}: is a suite file, and a training follows a recipe. For the primary alone: "
            f"sidequest select {source} -m single -o runs/single, then sidequest train runs/single"
        )
    if what_is_at(source) == "directory" and (source / Comparison.FILE).is_file():
        source, why = best_run(source)
        notes.append(why)
    directory = source if source.is_dir() else source.parent
    path = source / "recipe.json" if source.is_dir() else source
    if not path.exists() and (known := source / SO_FAR / path.name).is_file():
        raise SettingsError(
            f"{source}: its selection was stopped before its end. The command that began it goes on; or train by what it knew: "
            f"sidequest train {known} --suite SUITE -o {source / 'final'}"
        )
    recipe = Recipe.read(path)
    loaded = _suite(suite, directory, source)
    setup, other = _setup(loaded, recipe, model or {}, train or {}, path, use_suite=isinstance(suite, str))
    check_consent(setup.model, model or {}, str(path), allow_code=allow_code)
    if setup.suite.primary != recipe.primary:
        raise SettingsError(f"{path}: is for the primary {recipe.primary!r}, the suite's is {setup.suite.primary!r}")
    setup.check_data(recipe.provenance, recipe.tasks, path)
    check_fits(recipe, setup.suite, path)
    if tuned is not None and (found := tuned(setup)) is not setup:
        other = other or (found.model, found.train) != (setup.model, setup.train)
        setup = found
    if other:
        recipe = for_other_model(recipe, setup)
        notes.append(f"chosen with {_kind_of(recipe, 'chosen_with')}, trained with {setup.model.kind}")
    return Source(recipe, setup, directory, other, source.is_dir(), notes, _comparison_around(directory, recipe.method))


def _comparison_around(directory: Path, method: str) -> Comparison | None:
    """The comparison that a run directory is a cell of: `COMPARISON/METHOD/seed-N`, or one below for a variant."""
    for place in directory.resolve().parents[1:3]:
        try:
            comparison = Comparison.read_if_there(place / Comparison.FILE)
        except SidequestError:  # damaged: then nothing is known of it
            return None
        if comparison is not None:
            cells = [place / outcome.directory for outcome in comparison.outcomes if outcome.method == method]
            return comparison if directory.resolve() in [cell.resolve() for cell in cells] else None
    return None


def check_fits(recipe: Recipe, suite: Suite, path: Path) -> None:
    """Refuse a recipe that speaks of tasks or rows that the suite does not have."""
    for number, phase in enumerate(recipe.phases):
        for name in phase.shares:
            if name not in suite.tasks:
                raise RunMismatch(
                    f"{path}: phases.{number}.shares: the suite has no task {name!r}. {nearest(name, suite.tasks)}"
                )
        for name, subset in phase.subsets.items():
            strange = np.setdiff1d(subset.ids, suite.tasks[name].train.ids)
            if len(strange):
                raise RunMismatch(
                    f"{path}: phases.{number}.subsets.{name}: the train split of {name!r} has no row {strange[0]} "
                    f"({len(strange)} of {len(subset.ids)} are not there)"
                )


def for_other_model(recipe: Recipe, setup: Setup) -> Recipe:
    """The recipe with lengths in proportion to the new training's, and a provenance that tells both models."""
    before = parse(TrainSettings, recipe.provenance.get("train", {}), "the recipe's training settings")
    stretch = setup.train.epochs / before.epochs
    phases = tuple(_stretched(phase, stretch, before, setup) for phase in recipe.phases)
    provenance = {
        **recipe.provenance,
        "chosen_with": {"model": recipe.provenance.get("model", {}), "train": recipe.provenance.get("train", {})},
        "model": setup.model.model_dump(mode="json"),
        "train": setup.train.model_dump(mode="json"),
    }
    return recipe.model_copy(update={"phases": phases, "provenance": provenance})


def _stretched(phase: Phase, stretch: float, before: TrainSettings, setup: Setup) -> Phase:
    if phase.epochs is not None:
        return phase.model_copy(update={"epochs": phase.epochs * stretch})
    if phase.batches is not None:
        batches = round(phase.batches * stretch * before.batch_size / setup.train.batch_size)
        return phase.model_copy(update={"batches": max(1, batches)})
    return phase


def best_run(directory: Path) -> tuple[Path, str]:
    """The run of the method that a comparison's verdict speaks of, on its best seed on *select*, or of the baseline; and why."""
    comparison = Comparison.read(directory)
    row = best_row(comparison) or comparison.row(comparison.baseline)
    if row is None:
        raise SettingsError(f"{directory}: the comparison has no row for {comparison.baseline}; run it again")
    here = [
        outcome
        for outcome in comparison.outcomes
        if outcome.method == row.method and (directory / outcome.directory / "recipe.json").is_file()
    ]
    if not here:
        raise SettingsError(f"{directory}: the runs of {row.method} are not here; run the comparison again")
    best = max(here, key=lambda outcome: (outcome.select_score, -outcome.seed))
    why = "it helps" if row.verdict == "helps" else "no method is shown to help"
    said = f"{row.method}, seed {best.seed}: {why}" + (
        f"; the best of its {len(here)} seeds on select" if len(here) > 1 else ""
    )
    return directory / best.directory, said


def _suite(given: str | Suite | None, directory: Path, source: Path) -> Suite:
    if isinstance(given, Suite):
        return given
    if given is not None:
        return load_suite(given)
    if not (directory / "run.json").exists():
        raise SettingsError(f"{source}: there is no run.json beside it that names the suite; give --suite")
    return load_suite(read_run(directory).suite_path)


def _setup(
    suite: Suite, recipe: Recipe, model: dict[str, Any], train: dict[str, Any], path: Path, *, use_suite: bool
) -> tuple[Setup, bool]:
    """The setup, and whether it has another model than the recipe was chosen with."""
    chosen_model = dict(recipe.provenance.get("model") or {})
    chosen_train = dict(recipe.provenance.get("train") or {})
    own = suite.defaults or {}
    wanted = {**(own.get("model", {}) if use_suite else {}), **model}
    before = resolved_kind(suite, str(chosen_model.get("kind", AUTO)))
    kind = resolved_kind(suite, str(wanted.get("kind") or before))
    chosen_model = {**chosen_model, "kind": before}
    card = suite.tasks[suite.primary].card
    of_suite = own.get("train", {}) if use_suite else {}
    if kind == before:
        settings = model_settings({**chosen_model, **wanted, "kind": kind}, f"{path}: model")
        lengths = training_settings(kind, card, chosen_train, {**of_suite, **train}, f"{path}: train")
        changed = bool(recipe.provenance.get("model")) and settings != model_settings(chosen_model, f"{path}: model")
        # What the suite decides is given also where the recipe carries it: a tuning leaves it alone.
        of_kind = resolved_kind(suite, str(own.get("model", {}).get("kind", AUTO))) == kind
        sections = {**(own.get("model", {}) if of_kind else {}), **wanted}, {**own.get("train", {}), **train}
        return Setup(suite, settings, lengths, recipe.provenance.get("tuning"), names_given(*sections)), changed
    # Another kind of model: its own defaults, not those of the model that chose. A suite's sections are for the suite's own kind.
    same_kind = (own.get("model") or {}).get("kind") == kind
    carried = {
        name: chosen_model[name]
        for name in CARRIED
        if name in chosen_model and name in settings_class(kind).model_fields
    }
    model_section = own.get("model", {}) if same_kind else {}
    settings = model_settings({**carried, **model_section, **wanted, "kind": kind}, f"{path}: model")
    train_section = own.get("train", {}) if same_kind else of_suite
    lengths = training_settings(kind, card, train_section, train, f"{path}: train")
    given = names_given({**model_section, **wanted}, {**train_section, **train})
    return Setup(suite, settings, lengths, given=given), True


def _kind_of(recipe: Recipe, key: str) -> str:
    return str(recipe.provenance.get(key, {}).get("model", {}).get("kind", "another model"))
