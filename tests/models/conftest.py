from __future__ import annotations

from pathlib import Path

import pytest
from sample_models import make_encoder


@pytest.fixture(scope="session")
def encoders(tmp_path_factory):
    """`encoders(architecture)` → a directory with a tiny encoder, made once."""
    made: dict[str, Path] = {}

    def get(architecture: str = "bert") -> Path:
        if architecture not in made:
            made[architecture] = make_encoder(tmp_path_factory.mktemp("encoder") / architecture, architecture)
        return made[architecture]

    return get
