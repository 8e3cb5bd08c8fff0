"""Settings: every fault at once, the nearest name, values that mean what they look like."""

import pytest

from sidequest.errors import SettingsError
from sidequest.methods.base import State
from sidequest.settings import TrainSettings, parse, parse_assignments
from sidequest.tasks.spec import TaskSpec


def test_assignments_go_to_their_room():
    found = parse_assignments(
        ["train.epochs=3", "model.kind=pooled", "gamma=1e-3", "tasks=[a, b]", "on=true", "x=null"]
    )
    assert found == {
        "train": {"epochs": 3},
        "model": {"kind": "pooled"},
        "method": {"gamma": 0.001, "tasks": ["a", "b"], "on": True, "x": None},
    }


@pytest.mark.parametrize(("pair", "says"), [("epochs", "name=value"), ("trian.epochs=1", "Did you mean 'train'")])
def test_bad_assignments(pair, says):
    with pytest.raises(SettingsError, match=says):
        parse_assignments([pair])


def test_all_faults_at_once_with_the_nearest_name():
    with pytest.raises(SettingsError) as caught:
        parse(TrainSettings, {"epoch": 3, "batch_size": 0}, "suite.yaml: train")
    message = str(caught.value)
    assert "unknown setting 'epoch'. Did you mean 'epochs'?" in message
    assert "batch_size" in message
    assert "found 0" in message


class Scores(State):
    scores: list[float] = []


@pytest.mark.parametrize(
    ("made", "good", "bad"), [(Scores(), "scores", "scroes"), (TrainSettings(), "epochs", "epoch")]
)
def test_a_copy_has_no_field_that_the_original_has_not(made, good, bad):
    assert getattr(made.model_copy(update={good: [1.0]}), good) == [1.0]
    with pytest.raises(TypeError, match=f"has no field '{bad}'. Did you mean '{good}'?"):
        made.model_copy(update={bad: [1.0]})


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"class_weights": "balance"}, "class_weights: input should be 'balanced' or a mapping; found 'balance'"),
        ({"class_weights": {"Rare": 0}}, "class_weights.Rare: input should be greater than 0; found 0"),
        ({"labels": 3}, "labels: input should be a list or a mapping; found 3"),
        ({"metric": 3}, "metric: input should be a list; found 3"),
        ({"train": 3}, "train: input should be a mapping; found 3"),
    ],
)
def test_a_field_of_several_kinds_has_one_fault_in_the_words_of_a_suite_file(given, says):
    with pytest.raises(SettingsError) as caught:
        parse(TaskSpec, given, "s.yaml")
    assert str(caught.value) == f"s.yaml: {says}"
