from dataclasses import replace

import pytest

from sidequest.errors import SettingsError
from sidequest.models import defaults
from sidequest.models.defaults import training_settings
from sidequest.settings import TrainSettings
from sidequest.tasks.task import Form, Objective, TaskCard

CARD = TaskCard("primary", Objective.CLASSIFICATION, Form.TEXT, "", rows=100, mean_words=5.0, classes=2)


@pytest.fixture(autouse=True)
def rule(monkeypatch):
    monkeypatch.setitem(defaults.RULES, "fast", lambda card: {"steps": 4 * card.rows, "batch_size": 16, "patience": 2})


def settings(kind="fast", suite=None, given=None):
    return training_settings(kind, CARD, suite or {}, given or {}, "here")


def test_a_default_length_in_steps_becomes_epochs_of_the_primary():
    resolved = settings()
    assert resolved.epochs * 7 == pytest.approx(400)  # 100 rows are seven batches of 16
    assert (resolved.batch_size, resolved.patience, resolved.steps) == (16, 2, None)


def test_what_is_given_wins_over_the_suite_and_the_suite_over_the_kind():
    assert settings(given={"epochs": 5}).epochs == 5
    assert settings(suite={"epochs": 9}).epochs == 9
    assert settings(suite={"epochs": 9}, given={"steps": 70}).epochs == 10
    assert settings(suite={"steps": 70}, given={"epochs": 2}).epochs == 2
    assert settings(suite={"batch_size": 10}).epochs * 10 == pytest.approx(400)


@pytest.mark.parametrize("kind", ["custom", "autosem", "of-another-package"])
def test_a_kind_without_a_rule_has_enough_steps_for_few_rows(kind):
    found = settings(kind=kind)
    assert found.epochs * 4 == pytest.approx(160)  # 16·√100 steps; 100 rows are four batches of 32
    assert found.model_copy(update={"epochs": 3.0, "evaluations": None, "patience": 3}) == TrainSettings()
    many = training_settings(kind, replace(CARD, rows=100_000), {}, {}, "here")
    assert many.epochs == pytest.approx(3.0, abs=0.01)


def test_two_lengths_in_one_place_are_refused():
    with pytest.raises(SettingsError, match="epochs=2 and steps=3 both say how long"):
        settings(given={"epochs": 2, "steps": 3})
