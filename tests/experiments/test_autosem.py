"""The suites of `python -m experiments autosem`."""

import numpy as np
import pyarrow.compute as pc
import pytest

from experiments import autosem
from sidequest.methods import get_method
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
