"""Numbers for people."""

import math

import pytest

from sidequest.formatting import between, fixed, half, plain, signed
from sidequest.report.tabulating import number, with_minus


@pytest.mark.parametrize("value", [-0.0, 0.0, -1e-9, -0.0004999, 0.0004])
def test_minus_zero_is_zero(value):
    assert fixed(value) == "0.000"
    assert signed(value) == "+0.000"
    assert number(value, "+.3f").text.replace("+", "") == "0.000"
    assert str(plain(-0.0)) == "0.0"


def test_other_numbers_keep_their_sign():
    assert (fixed(-0.0006), signed(-0.0006), signed(0.25, 1)) == ("-0.001", "-0.001", "+0.2")
    assert between(-0.1, 0.25) == "[-0.100, +0.250]"
    assert half(0.5, 0.6) == " ± 0.100"


def test_what_is_unknown_is_a_dash_or_nothing():
    assert fixed(math.nan) == fixed(-math.inf) == number(None).text == "–"
    assert between(-math.inf, 0.1) == half(0.5, math.nan) == plain(math.nan) == ""


def test_only_numbers_get_a_real_minus_sign():
    assert with_minus("single-long is -0.100 [-0.2, +0.1], 2-5") == "single-long is −0.100 [−0.2, +0.1], 2-5"
