import pytest


@pytest.fixture(scope="session")
def word_bert(tmp_path_factory):
    """A tiny random BERT with a tokeniser of whole words, on disk."""
    from word_suites import word_encoder

    return word_encoder(tmp_path_factory.mktemp("word-bert"))


@pytest.fixture(scope="session")
def word_bag(tmp_path_factory):
    """An encoder that reads the planted suite as a bag of words."""
    from word_suites import bag_of_words

    return bag_of_words(tmp_path_factory.mktemp("word-bag"))


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    """One for all tests here, so that texts are encoded once."""
    monkeypatch.setenv("SIDEQUEST_CACHE", str(tmp_path_factory.getbasetemp() / "similarity-cache"))
