"""The reference has every public name, every parameter and every setting, each with what it means."""

from __future__ import annotations

import inspect
import re
import runpy
from typing import Any

import griffe
import pytest

import sidequest
from sidequest import evidence
from tests.helpers import ROOT

PAGE = (ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
FUNCTIONS = (
    "compare",
    "select",
    "load",
    "load_suite",
    "check_suite",
    "make_task",
    "train_recipe",
    "export_recipe",
    "get_method",
)
CONTRACTS = ("check_method", "check_learner")
CLASSES = ("Suite", "Task", "Method")


def documented(value: Any) -> set[str]:
    """The parameters that a docstring's `Args:` section describes."""
    sections = griffe.Docstring(inspect.getdoc(value) or "").parse("google", warnings=False)
    found = [section for section in sections if isinstance(section, griffe.DocstringSectionParameters)]
    return {parameter.name.lstrip("*") for section in found for parameter in section.value if parameter.description}


def test_every_public_name_is_on_the_page():
    names = set(re.findall(r"^::: sidequest[\w.]*\.(\w+)$|`(\w+)`", PAGE, flags=re.MULTILINE))
    there = {name for pair in names for name in pair if name}
    assert {*sidequest.__all__} - {"__version__"} - there == set()


@pytest.mark.parametrize("name", [*FUNCTIONS, *CONTRACTS, *CLASSES])
def test_every_parameter_is_described(name):
    value = getattr(sidequest, name)
    takes = set(inspect.signature(value).parameters)
    assert takes
    assert documented(value) == takes


KINDS = [evidence.Additions, evidence.Curves, evidence.Bars, evidence.Matrix, evidence.Histograms, evidence.Points]


@pytest.mark.parametrize("cls", [sidequest.Plan, sidequest.Phase, sidequest.Recipe, *KINDS])
def test_every_field_of_a_record_is_described(cls):
    assert f"{cls.__module__}.{cls.__name__}\n" in PAGE
    (section,) = (
        section
        for section in griffe.Docstring(inspect.getdoc(cls) or "").parse("google", warnings=False)
        if isinstance(section, griffe.DocstringSectionAttributes)
    )
    assert {each.name for each in section.value} == set(cls.model_fields) - {"kind"}


def test_every_setting_has_a_type_a_default_and_a_meaning():
    page = runpy.run_path(str(ROOT / "docs" / "site" / "hooks.py"))["settings"]()
    items = [line for line in page.splitlines() if line.startswith("- ")]
    assert len(items) > 150
    shape = re.compile(r"- \*\*`(\w+)`\*\* \(`([^`]+)`(?:, default `([^`]*)`)?\): \S.+")
    assert [item for item in items if not shape.fullmatch(item)] == []
    assert "- **`optimizer`** (`adamw or sgd`, default `adamw`): `adamw` or `sgd`." in items
    assert any(item.startswith("- **`gamma`** (`float`, default `0.05`): how much every arm forgets") for item in items)


def test_fields_are_taken_apart_and_prose_is_not():
    fields_of = runpy.run_path(str(ROOT / "docs" / "site" / "fields.py"))["fields_of"]
    text = "What it is.\nsize, depth: of the net; None: as it\n    stands. other: no field."
    assert fields_of(text, ["size", "depth", "rate"]) == (
        "What it is.",
        [(["size", "depth"], "of the net; None: as it stands. other: no field.")],
    )
    assert fields_of("a rate: b", ["a"]) == ("a rate: b", [])
