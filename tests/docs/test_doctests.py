"""Every example in a docstring runs."""

import doctest
import importlib

import pytest

from tests.helpers import ROOT

SOURCE = ROOT / "src"
WITH_EXAMPLES = [path for path in sorted(SOURCE.rglob("*.py")) if ">>> " in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=lambda path: path.relative_to(SOURCE).as_posix())
def test_examples_in_docstrings_give_what_they_show(path):
    name = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted
    assert result.failed == 0
