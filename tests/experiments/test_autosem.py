"""The suites of `python -m experiments autosem`."""

from types import SimpleNamespace

import numpy as np
import pyarrow.compute as pc
import pytest

from experiments import autosem
from sidequest.methods import get_method
from sidequest.recipe import Phase, Recipe
from sidequest.settings import parse


@pytest.mark.parametrize("small", [True, False])
def test_settings_are_valid_for_their_methods(small):
    for part in autosem.parts(small):
        assert part.primary not in part.candidates
        for name, settings in part.size.settings(part.methods).items():
            parse(get_method(name).Settings, settings, name)


def test_the_few_shot_suite(shared_data):
    part = next(part for part in autosem.parts(True) if part.primary == "chunking")
    suite = autosem.make_setup(part, shared_data).suite
    assert len(suite["chunking"].train) in range(195, 205)
    assert suite.candidates == ("ner", "pos", "pos-shuffled")
    pos, mixed = suite["pos"].train, suite["pos-shuffled"].train
    assert pos.columns["tokens"].equals(mixed.columns["tokens"])
    lengths = [pc.list_value_length(rows.target).to_numpy() for rows in (pos, mixed)]
    np.testing.assert_array_equal(*lengths)
    first, second = (rows.target.flatten().to_numpy() for rows in (pos, mixed))
    np.testing.assert_array_equal(np.sort(first), np.sort(second))
    assert np.mean(first == second) < 0.2


def test_random_mixtures_of_the_same_tasks_are_as_many_as_the_process_tried(monkeypatch):
    """Figure 3's other line: plans over the tasks that stage 2 mixed, and the best score so far."""
    asked = []

    class Trials:
        def run(self, plans):
            asked.extend(plans)
            return [SimpleNamespace(score=score) for score in (0.3, 0.1, 0.5)]

    monkeypatch.setattr(autosem, "local_trials", lambda setup: Trials())
    stage2 = {"tasks": ["a", "b"], "settings": {"max_primary": 20, "max_auxiliary": 5, "trials": 3}}
    recipe = Recipe(
        method="autosem",
        primary="p",
        phases=(Phase(shares={"p": 1}),),
        evidence={"stage2": stage2},
        provenance={"seed": 4},
    )
    assert autosem.random_search(None, recipe) == [0.3, 0.3, 0.5]
    assert [plan.seed for plan in asked] == [4, 4, 4]
    assert all("p" in plan.phases[0].shares and set(plan.phases[0].shares) <= {"p", "a", "b"} for plan in asked)
    assert len({str(plan.phases[0].shares) for plan in asked}) == 3
