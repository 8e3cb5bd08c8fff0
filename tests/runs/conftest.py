"""A small truth, for what is judged by it."""

import pytest

from sidequest.runs.oracle import oracle
from sidequest.runs.setup import Setup
from sidequest.tasks.loading import load_suite


@pytest.fixture(scope="session")
def small_digits(tmp_path_factory):
    """The embedded digits with two candidates, one short epoch, and its truth."""
    cache = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SIDEQUEST_CACHE", str(cache))
        suite = load_suite("digits")
        suite = suite.subset(sorted(suite.candidates)[:2])
        setup = Setup.of(suite, {}, {"epochs": 1, "max_batches": 6})
        path = tmp_path_factory.mktemp("truth") / "digits.json"
        table = oracle(setup, [0, 1], path, command="sidequest oracle digits", suite="digits")
    return setup, path, table, cache
