"""Methods are found by name, entry point, class, object and file; what is not one is refused with what is missing."""

import re

import pytest

from sidequest.errors import SettingsError
from sidequest.methods import METHODS, MethodChoice, get_method, method_names
from sidequest.methods.autosem.autosem import AutoSeM
from sidequest.methods.registry import checked, choices_of
from tests.helpers import ROOT
from tests.helpers.toy_method import LargestGain

FILE = ROOT / "tests" / "helpers" / "toy_method.py"


def test_every_name_is_that_of_its_class():
    assert {name: get_method(name).name for name in METHODS} == {name: name for name in METHODS}


@pytest.mark.parametrize("source", [LargestGain, f"{FILE}:LargestGain"])
def test_a_class_and_a_file_give_the_same_method(source):
    choice = MethodChoice.of(source, {"least_gain": 0.5})
    assert choice.name == "largest-gain"
    assert choice.make(seed=3).settings.least_gain == 0.5
    assert choice.make(seed=3).seed == 3


def test_an_object_keeps_its_settings():
    choice = MethodChoice.of(AutoSeM(trials=8))
    assert choice.make().settings.trials == 8
    assert choice.make().settings == AutoSeM.Settings(trials=8)
    assert AutoSeM.Settings().trials != 8


def test_settings_are_a_dictionary_an_object_or_by_name():
    by_object = MethodChoice.of("autosem", AutoSeM.Settings(trials=8))
    assert by_object.make().settings == MethodChoice.of("autosem", {"trials": 8}).make().settings
    assert repr(AutoSeM(trials=8)) == "AutoSeM(trials=8)"


def test_a_comparison_may_mix_them():
    found = choices_of(["heu-size", AutoSeM(trials=8), LargestGain, LargestGain])
    assert list(found) == ["heu-size", "autosem", "largest-gain"]
    assert list(choices_of({"heu-size": {}, "autosem": {"trials": 8}})) == ["heu-size", "autosem"]


class NoName(LargestGain):
    name = "Large Gain"


@pytest.mark.parametrize(
    ("method", "settings", "says"),
    [
        ("heu-sise", None, "Did you mean 'heu-size'?"),
        (["heu-size"], None, "a subclass of sidequest.Method, found ['heu-size']"),
        (3, None, "a subclass of sidequest.Method, found 3"),
        (NoName, None, "small letters and digits"),
        ("autosem", {"trails": 8}, "Did you mean 'trials'?"),
        ("autosem", 8, "a dictionary or a settings object, found int"),
        (AutoSeM(trials=8), {"trials": 9}, "not both"),
        ("nowhere.py:Method", None, "no such file"),
        (f"{FILE}:LargestGian", None, "Did you mean 'LargestGain'?"),
        (f"{FILE}:Phase", None, "a subclass of sidequest.Method"),
    ],
)
def test_what_is_no_method_is_refused_with_the_reason(method, settings, says):
    with pytest.raises(SettingsError, match=re.escape(says)):
        MethodChoice.of(method, settings)


@pytest.mark.parametrize("methods", ["heu-size", 3, None])
def test_a_comparison_takes_a_list(methods):
    with pytest.raises(SettingsError, match="a list of names, classes or objects"):
        choices_of(methods)


def test_one_method_with_two_settings_is_refused():
    with pytest.raises(SettingsError, match="twice with different settings"):
        choices_of([AutoSeM(trials=8), AutoSeM(trials=9)])


def test_settings_of_another_class_are_refused():
    with pytest.raises(SettingsError, match="of the class AutoSeMSettings"):
        AutoSeM(LargestGain.Settings())


def test_an_unfinished_class_is_refused_with_what_it_lacks():
    class Unfinished(LargestGain.__bases__[0]):
        name = "unfinished"
        summary = "nothing yet"
        State = LargestGain.State

    with pytest.raises(SettingsError, match="does not define done, recipe, start"):
        checked(Unfinished, "here")


def test_a_file_that_fails_is_one_message(tmp_path):
    (tmp_path / "broken.py").write_text("import nothing_of_this_name\n")
    with pytest.raises(SettingsError, match="ModuleNotFoundError"):
        MethodChoice.of(f"{tmp_path / 'broken.py'}:Method")


def test_a_class_of_a_session_does_not_travel_to_workers(monkeypatch):
    assert MethodChoice.of(LargestGain).travels
    monkeypatch.setattr(LargestGain, "__module__", "__main__")
    monkeypatch.delattr("__main__.__file__", raising=False)
    assert not MethodChoice.of(LargestGain).travels
    assert MethodChoice.of("heu-size").travels


def test_names_are_ours_first():
    assert method_names()[: len(METHODS)] == list(METHODS)
