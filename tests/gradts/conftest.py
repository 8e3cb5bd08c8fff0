import pytest


@pytest.fixture(scope="session")
def encoder(tmp_path_factory):
    """A tiny BERT with its tokeniser, on disk."""
    from tiny_suites import tiny_encoder

    return tiny_encoder(tmp_path_factory.mktemp("encoder"))
