import pytest

from sidequest.report.page import write_page
from tests.helpers.run_directories import make_comparison, make_run


@pytest.fixture(scope="session")
def comparison(tmp_path_factory):
    """A comparison's directory with its page; tests only read it."""
    directory = make_comparison(tmp_path_factory.mktemp("report") / "comparison")
    write_page(directory)
    return directory


@pytest.fixture(scope="session")
def run(tmp_path_factory):
    directory = make_run(tmp_path_factory.mktemp("report") / "run")
    write_page(directory)
    return directory
