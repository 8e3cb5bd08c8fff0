import os

# Tests train tiny models: one thread is faster than several, above all on a machine that does other things as well.
os.environ.setdefault("OMP_NUM_THREADS", "1")

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    """Tests share a cache of their own: nothing of a user's is read or written."""
    monkeypatch.setenv("SIDEQUEST_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.fixture(autouse=True)
def one_core(monkeypatch):
    """Commands take one worker unless they name a number: a worker process imports torch for five seconds before it begins."""
    if hasattr(os, "sched_getaffinity"):
        monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0})


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real benchmark files, where the machine has them."""
    root = Path(os.environ.get("SIDEQUEST_DATA") or Path(__file__).parents[2] / "shared" / "data")
    if not root.is_dir():
        pytest.skip("no benchmark data: set SIDEQUEST_DATA to a directory with the official files")
    return root


@pytest.fixture
def few_digits(monkeypatch) -> None:
    """`digits` is a suite with fewer rows, in this process."""
    from tests.helpers.few_digits import instead_of_all

    monkeypatch.setattr("sidequest.tasks.digits.digits_suite", instead_of_all)


@pytest.fixture(scope="session")
def encoders(tmp_path_factory) -> Callable[..., Path]:
    """`encoders(architecture)` → a directory with a tiny encoder, made once."""
    from tests.helpers.sample_models import make_encoder

    made: dict[str, Path] = {}

    def get(architecture: str = "bert") -> Path:
        if architecture not in made:
            made[architecture] = make_encoder(tmp_path_factory.mktemp("encoder") / architecture, architecture)
        return made[architecture]

    return get


@pytest.fixture(scope="session")
def encoder(tmp_path_factory) -> Path:
    """A tiny BERT with its tokeniser, on disk."""
    from tests.helpers.tiny_suites import tiny_encoder

    return tiny_encoder(tmp_path_factory.mktemp("encoder"))


@pytest.fixture(scope="session")
def word_bert(tmp_path_factory) -> Path:
    """A tiny random BERT with a tokeniser of whole words, on disk."""
    from tests.helpers.word_suites import word_encoder

    return word_encoder(tmp_path_factory.mktemp("word-bert"))


@pytest.fixture(scope="session")
def word_bag(tmp_path_factory) -> Path:
    """An encoder that reads the planted suite as a bag of words."""
    from tests.helpers.word_suites import bag_of_words

    return bag_of_words(tmp_path_factory.mktemp("word-bag"))
