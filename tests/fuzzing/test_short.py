"""A short fuzz with every run of the tests; `make fuzz` is the long one."""

import pytest

from tests.fuzzing.fuzz import fuzz
from tests.fuzzing.targets import targets
from tests.helpers.good_runs import make_good


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    return make_good(tmp_path_factory.mktemp("good"))


@pytest.mark.integration
def test_nothing_ends_in_a_traceback_hangs_or_is_accepted_in_silence(good, tmp_path):
    counts = fuzz(good, tmp_path, 300, seed=1)
    assert not counts.bad, "\n\n".join([str(counts), *counts.failures.values()])
    assert counts.refused > 100
    assert set(counts.cases) == set(targets(good))


@pytest.mark.integration
def test_the_fuzz_sees_a_fault_that_is_planted(good, tmp_path, monkeypatch):
    """The control: a reader that lets an error of its library through is found."""
    import tests.fuzzing.targets as fuzzed

    def careless(path):
        return fuzzed.json.loads(path.read_bytes())["phases"]

    monkeypatch.setattr(fuzzed.Recipe, "read", careless)
    assert fuzz(good, tmp_path, 60, seed=1, only="recipe").tracebacks > 10
