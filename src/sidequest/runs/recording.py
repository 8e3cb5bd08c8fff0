"""What a run leaves for its readers besides its results: the commands that made it, facts and warnings about its data, and
some of the rows that were chosen. The report is drawn from these files alone, so it can be rebuilt without the data.

`record.json`: commands by name, machine, versions, `data` as `sidequest check --json` gives it.
`examples.json`: for each task of a recipe a few rows that it trains with and, where it leaves rows out, a few of those, as
`sidequest show --json` gives them.
"""

from __future__ import annotations

import os
import platform
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from sidequest.model_settings import ModelSettings
from sidequest.models.token_limit import section_limit
from sidequest.recipe import Recipe
from sidequest.records.runs import ExamplesRecord, FactsRecord
from sidequest.report.png import png_data_uri
from sidequest.runs.directory import versions
from sidequest.runs.showing import SHAPE_ONLY, examples_of
from sidequest.tasks.check import check_suite
from sidequest.tasks.suite import Suite

ROWS_SHOWN = 4  # of each task and kind
LONGEST_TEXT = 500  # characters


def record_run(directory: Path, suite: Suite, name: str, command: str, model: ModelSettings | None = None) -> None:
    """Write `record.json`, and `examples.json` of the recipes in the directory. name: of the command, as in `select`. model: of
    the run, which decides which texts it reads whole; None: the suite's own."""
    if model is not None:
        suite = replace(suite, defaults={**(suite.defaults or {}), "model": model.model_dump()})
    before = FactsRecord.read_if_there(directory / FactsRecord.FILE)
    FactsRecord.of(
        {
            "version": FactsRecord.VERSION,
            "commands": (before.commands if before else {}) | ({name: command} if command else {}),
            "machine": {"system": platform.platform(), "processor": platform.machine(), "cores": os.cpu_count()},
            "versions": versions(),
            "data": check_suite(suite, limit=section_limit).to_json(),
        }
    ).write(directory)
    first_seeds: dict[Path, Path] = {}  # of each method in a comparison: its rows are shown for one seed
    for run in sorted(directory.glob("**/seed-*/recipe.json")):
        first_seeds.setdefault(run.parent.parent, run)
    for recipe_file in (directory / "recipe.json", *first_seeds.values()):
        target = recipe_file.with_name(ExamplesRecord.FILE)
        if recipe_file.exists() and not target.exists():
            tasks = plain_examples(Recipe.read(recipe_file), suite)
            ExamplesRecord.model_validate({"tasks": tasks}).write(target)


def plain_examples(recipe: Recipe, suite: Suite) -> list[dict[str, Any]]:
    """`showing.examples_of` for a file: long texts are cut, images are pictures."""
    tasks = [task.to_json() for task in examples_of(suite, recipe, ROWS_SHOWN)]
    for task in tasks:
        train = suite[task["name"]].train
        for row in (row for group in task["groups"] for row in group["rows"]):
            for column, text in row["texts"].items():
                if column == SHAPE_ONLY:
                    picture = train.with_ids(np.array([row["id"]])).columns[column][0]
                    row["texts"][column] = png_data_uri(picture)
                elif len(text) > LONGEST_TEXT:
                    row["texts"][column] = text[:LONGEST_TEXT] + "…"
            row["target"] = row["target"][:LONGEST_TEXT]
    return tasks
