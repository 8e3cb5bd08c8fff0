"""A small model of digits, compared, trained and exported as a user would."""

from __future__ import annotations

from pathlib import Path

import pytest

from sidequest.records.comparisons import Comparison
from sidequest.runs.comparing import compare
from sidequest.runs.final_model import train_source
from sidequest.runs.setup import Setup
from sidequest.runs.sources import open_source
from sidequest.tasks.loading import load_suite
from tests.helpers.few_digits import instead_of_all


def trained_digits(directory: Path, seeds: int = 2) -> Comparison:
    """A comparison in `directory/compare`, and the model of its method `all` on seed 0 in `directory/best`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sidequest.tasks.digits.digits_suite", instead_of_all)
        suite = load_suite("digits")
        setup = Setup.of(suite.subset(sorted(suite.candidates)[:2]), {}, {"epochs": 1, "max_batches": 4})
        comparison = compare(setup, ["heu-type"], list(range(seeds)), directory / "compare")
        train_source(open_source(directory / "compare" / "all" / "seed-0"), directory / "best")
    return comparison
