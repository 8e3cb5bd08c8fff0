"""What a method gets: the calls of the protocol, *report* refused, and no way to the rows behind them."""

import gc

import pytest

from sidequest.errors import ReportSplitRefused
from sidequest.learning.guard import guard
from sidequest.learning.protocol import Deltas, Learner, PredictionGain
from tests.helpers.tiny import tiny_learner


def test_it_keeps_the_protocol():
    assert isinstance(guard(tiny_learner()), Learner)


def test_it_trains_as_the_learner_itself_does():
    learner, twin = tiny_learner(), tiny_learner()
    assert guard(learner).train("helper", 3, weight=0.5) == twin.train("helper", 3, weight=0.5)
    assert guard(learner).evaluate("main-one") == twin.evaluate("main-one")


@pytest.mark.parametrize("call", ["evaluate", "evaluate_all"])
def test_report_is_refused_also_by_fresh_learners(call):
    for learner in (guard(tiny_learner()), guard(tiny_learner()).fresh(3)):
        with pytest.raises(ReportSplitRefused):
            getattr(learner, call)("main-one", "report")
        assert getattr(learner, call)("main-one", "select")


@pytest.mark.parametrize(
    "name", ["suite", "_data", "_learner", "model", "inputs", "predict", "task", "family", "stream"]
)
def test_nothing_else_of_the_learner_is_there(name):
    learner = tiny_learner()
    assert name == "_learner" or hasattr(learner, name)
    assert not hasattr(guard(learner), name)


def attributes(value):
    return {name: getattr(value, name) for name in dir(value) if not name.startswith("__")}


@pytest.mark.parametrize("power", [Deltas, PredictionGain])
def test_a_power_has_the_calls_of_its_protocol_and_no_more(power):
    learner = tiny_learner()
    offered = guard(learner)[power]
    assert isinstance(offered, power)
    assert set(attributes(offered)) == {name for name in dir(power) if not name.startswith("_")}
    for call in attributes(offered).values():
        assert not hasattr(call, "__self__")
        assert not hasattr(call, "__wrapped__")


def test_no_attribute_of_the_guarded_learner_holds_the_learner():
    learner = tiny_learner()
    guarded = guard(learner)
    assert not any(value is learner for value in attributes(guarded).values())
    assert learner not in gc.get_referents(guarded)
