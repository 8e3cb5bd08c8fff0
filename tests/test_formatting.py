"""Numbers for people."""

import math

import pytest

from sidequest.formatting import between, fixed, half, plain, signed, telling, without_zero_differences
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


def test_a_difference_that_is_no_zero_is_not_shown_as_one():
    assert (telling(0.0123), telling(-0.00042), telling(3e-6)) == ("+0.012", "-0.0004", "+0.000003")
    assert (telling(0.0), telling(math.nan)) == ("+0.000", "–")


@pytest.mark.parametrize(
    ("sentence", "read"),
    [
        ("parity: +0.0000 ± 0.0001 in the score", "parity: no measurable difference, ± 0.0001, in the score"),
        ("(the best, ink: -0.0000 ± 0.0120)", "(the best, ink: no measurable difference, ± 0.0120)"),
        ("ink: +0.000 on select", "ink: no measurable difference on select"),
        ("a +0.0000 ± 0.0001, b +0.0100 ± 0.0020", "a no measurable difference, ± 0.0001, b +0.0100 ± 0.0020"),
    ],
)
def test_no_difference_is_said_in_words(sentence, read):
    assert without_zero_differences(sentence) == read


@pytest.mark.parametrize(
    "sentence", ["+0.0001 ± 0.0001", "0.000 on select", "at 1:0:0, task-0.0", "+0.00003", "+0.0 %", "v+0.0.1"]
)
def test_other_numbers_stay(sentence):
    assert without_zero_differences(sentence) == sentence
