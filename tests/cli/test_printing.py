"""Tables in terminals of any width: nothing is cut, and verdict and cost come first."""

import re

import pytest

from sidequest.cli import tables
from sidequest.records.comparisons import Comparison, Difference, Row

LONGEST = "autosem-no-stage1"  # of all names of methods


def row(method: str, role: str = "method") -> Row:
    difference = Difference(
        to="single", mean=-0.125, low=-0.25, high=0.5, rows_low=-0.75, rows_high=0.625, p_value=0.5, p_seeds=0.5, n=5
    )
    return Row(
        method=method,
        role=role,
        seeds=[0, 1, 2, 3, 4],
        scores=[0.5] * 5,
        mean=0.8125,
        low=0.75,
        high=0.875,
        against=()
        if role == "baseline"
        else (difference, *(difference.model_copy(update={"to": n}) for n in ("probe",))),
        verdict={"baseline": "baseline", "control": "control"}.get(role, "not shown"),
        x=123.4,
        chosen={"a_task_with_a_name": 1.0, "another_task": 0.4, "yet_another_of_them": 1.0},
    )


@pytest.fixture
def comparison() -> Comparison:
    return Comparison(
        suite="s",
        primary="primary",
        metric="macro_f1",
        seeds=[0, 1, 2, 3, 4],
        controls=["probe"],
        rows=(row("single", "baseline"), row("probe", "control"), row(LONGEST), row("all")),
    )


@pytest.mark.parametrize("width", [38, 40, 52, 66, 79, 80, 81, 100, 160])
def test_nothing_is_cut_at_any_width(comparison, width, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", str(width))
    tables.print_comparison(comparison)
    text = capsys.readouterr().out
    lines = text.splitlines()
    assert "…" not in text
    assert max(map(len, lines)) <= width
    first = text[: text.index("what the verdicts rest on")]
    for cell in ("-0.125 [-0.750, +0.625]", "0.812 ± 0.062", "not shown", "123.4x", LONGEST):
        assert cell in first
    for cell in ("[-0.250, +0.500]", "0.500"):
        assert cell in text[text.index("what the verdicts rest on") :]
    # Verdict and cost stand beside the method, before anything else.
    assert any(re.match(rf"\s*{LONGEST}\s+not shown\s+123.4x", line) for line in lines[:9])
    for name in ("a_task_with_a_name", "another_task 40%", "yet_another_of_them"):
        assert name.replace(" ", "") in re.sub(r"\s+", "", text)  # free text wraps
    assert ("(continued)" in text) == (width < 74)


def test_names_wider_than_the_window_are_folded_not_cut(comparison, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "20")
    tables.print_comparison(comparison)
    assert "…" not in capsys.readouterr().out
