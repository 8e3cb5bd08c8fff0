"""Which models a method is told to fine-tune something of which short runs say little."""

import pytest

from sidequest.model_settings import CustomSettings
from sidequest.runs.setup import Setup
from tests.helpers.few_digits import few_digits
from tests.helpers.tiny import tiny_suite


@pytest.mark.parametrize(
    ("model", "fine_tunes"),
    [
        ("pooled", False),
        ("bilstm", False),
        ("autosem", False),
        ("hf", True),
        (CustomSettings(factory="mine:build"), True),
    ],
)
def test_an_encoder_that_is_trained_and_what_nothing_is_known_of(model, fine_tunes):
    assert Setup.of(tiny_suite(), model).pool.fine_tunes is fine_tunes


def test_a_small_network_on_images_is_none():
    assert not Setup.of(few_digits()).pool.fine_tunes
