"""The method that CONTRIBUTING shows is short, keeps the contract, and decides well."""

from sidequest.testing import check_method
from tests.helpers import ROOT
from tests.helpers.toy_method import LargestGain


def test_the_toy_method_is_accepted():
    assert len((ROOT / "tests" / "helpers" / "toy_method.py").read_text().splitlines()) < 60
    recipe = check_method(LargestGain, budget_x=10)
    assert set(recipe.auxiliaries) == {"close", "near"}


def test_its_settings_are_obeyed():
    recipe = check_method(LargestGain, settings={"least_gain": 0.5}, fresh_process=False)
    assert recipe.auxiliaries == ()
