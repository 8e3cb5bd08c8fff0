import sys

import pytest


@pytest.fixture(autouse=True)
def no_pictures(monkeypatch):
    """Figures are written as html alone: drawing them starts a browser for each, and `tests/report` tests that."""
    monkeypatch.setitem(sys.modules, "kaleido", None)
