"""Runs over the small suites of `good_inputs`: a run with its model, a comparison, a policy log, a truth table."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from tests.helpers.command_line import run_command
from tests.helpers.good_inputs import write_images, write_texts


@dataclass(frozen=True)
class Good:
    """texts, images: suite files. run: of `random-data`, with row ids beside its recipe, trained. compared: a comparison. log: a
    policy log. truth: a truth table. model: the exported model of `run`."""

    texts: Path
    images: Path
    run: Path
    compared: Path
    log: Path
    truth: Path

    @property
    def model(self) -> Path:
        return self.run / "model"


def make_good(place: Path) -> Good:
    """All of it, in a directory, with a cache of its own."""
    made = Good(
        write_texts(place / "texts"),
        write_images(place / "images"),
        place / "run",
        place / "compared",
        place / "exp3s" / "logs" / "exp3s.parquet",
        place / "truth.json",
    )
    before = os.environ.get("SIDEQUEST_CACHE")
    os.environ["SIDEQUEST_CACHE"] = str(place / "cache")
    rows = ["--set", "rows=10", "--set", "count=20"]
    try:
        for arguments in (
            ["select", made.images, "-m", "random-data", "-o", made.run, *rows],
            ["train", made.run],
            ["select", made.images, "-m", "exp3s", "-o", place / "exp3s"],
            ["compare", made.images, "-m", "heu-size", "--seeds", 1, "-o", made.compared, "--workers", 1],
            ["oracle", made.images, "--seeds", 2, "-o", made.truth, "--workers", 1],
        ):
            ended = run_command(*arguments, seconds=400)
            assert ended.code == 0, ended.output
    finally:
        if before is not None:
            os.environ["SIDEQUEST_CACHE"] = before
    return made
