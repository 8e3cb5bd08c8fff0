import os

# Tests train tiny models: one thread is faster than several, above all on a machine that does other things as well.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    """Tests share a cache of their own: nothing of a user's is read or written."""
    monkeypatch.setenv("SIDEQUEST_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real benchmark files, where the machine has them."""
    root = Path(os.environ.get("SIDEQUEST_DATA") or Path(__file__).parents[2] / "shared" / "data")
    if not root.is_dir():
        pytest.skip("no benchmark data: set SIDEQUEST_DATA to a directory with the official files")
    return root
