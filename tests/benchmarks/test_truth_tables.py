"""The truth tables that ship: complete, about data that is still the same, and not noise."""

import pytest

from sidequest.errors import SettingsError
from sidequest.runs.scoring import Truth
from sidequest.runs.truth import LARGEST_P, SHIPPED, TruthTable, find_table

TABLES = sorted(SHIPPED.glob("*.json"))


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.stem)
def test_a_table_has_every_subset_and_says_how_it_was_made(path):
    table = TruthTable.read(path)
    assert table.complete
    assert len(table.subsets) == len(table.shares) ** len(table.candidates)
    assert all(len(subset.report) == len(table.seeds) >= 3 for subset in table.subsets)
    assert table.command.startswith(
        f"sidequest oracle {'src/sidequest/truth/' if table.suite.endswith('.yaml') else ''}{table.suite} "
    )
    # A table of noise, or of models that training did not change, may say that nothing helps.
    assert (table.signal.p_value <= LARGEST_P and not table.mostly_untrained) or not table.something_helps


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.stem)
def test_the_suite_of_a_table_is_the_one_it_was_made_with(path, monkeypatch, request):
    if TruthTable.read(path).suite.endswith(".yaml"):
        monkeypatch.setenv("SIDEQUEST_DATA", str(request.getfixturevalue("shared_data")))
    truth = Truth.read(path)  # refuses other data
    assert truth.setup.suite.primary == truth.table.primary


def test_there_are_tables():
    tables = [TruthTable.read(path) for path in TABLES]
    assert sum(not table.something_helps for table in tables) >= 2
    assert any(table.something_helps for table in tables)


def test_a_table_is_found_by_its_name_or_its_path(tmp_path):
    assert find_table("digits") == SHIPPED / "digits.json"
    mine = tmp_path / "mine.json"
    mine.write_text("{}")
    assert find_table(mine) == mine
    with pytest.raises(SettingsError, match=r"unknown truth table 'digts'. Did you mean 'digits'\?"):
        find_table("digts")
    with pytest.raises(SettingsError, match="no such file; `sidequest oracle` makes it"):
        find_table(tmp_path / "none.json")
