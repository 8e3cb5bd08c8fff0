"""What the comparison of two runs leaves out, and that it sees all else."""

from __future__ import annotations

import json
import re

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from sidequest.records.runs import Spent
from sidequest.report.sections import COSTS, DETAILS, _cost_row
from sidequest.report.tabulating import ShownColumn, ShownTable
from tests.faults.runner import MEASURED, NOT_COMPARED, content
from tests.helpers import ROOT

SPENT = Spent(x=1.5, batches=6, examples=30, tokens=40, evaluations=1, trials=2, seconds=0.25)


def test_users_are_told_the_same_fields():
    page = (ROOT / "docs" / "explanation" / "determinism.md").read_text()
    lines = re.findall(r"^\| (`.+?) \| (.+?) \|$", page, re.MULTILINE)
    told = {
        file: set(re.findall(r"`(.+?)`", fields)) for files, fields in lines for file in re.findall(r"`(.+?)`", files)
    }
    assert told == MEASURED | {name: set() for name in NOT_COMPARED}


def cost_file(tmp_path, spent):
    columns = [ShownColumn("", csv=("what",)), *(ShownColumn(name) for name in COSTS)]
    path = tmp_path / "cost.csv"
    path.write_text(ShownTable("cost", columns, [_cost_row("selection", spent)]).to_csv())
    return content(path)


def test_seconds_in_the_table_of_costs_are_left_out_and_nothing_else(tmp_path):
    whole = cost_file(tmp_path, SPENT)
    assert cost_file(tmp_path, SPENT.model_copy(update={"seconds": 9.0})) == whole
    for name in set(COSTS) - {"seconds"}:
        assert cost_file(tmp_path, SPENT.model_copy(update={name: 77})) != whole, name


def test_the_measured_columns_are_columns_of_the_details():
    """A column that is renamed would be compared without anybody knowing that it is measured."""
    assert MEASURED["details.csv"] < {name for name, _, _ in DETAILS}


@pytest.mark.parametrize(
    ("name", "field", "same"),
    [
        ("selection.json", "seconds", True),
        ("selection.json", "sha256", True),
        ("selection.json", "recipe", False),
        ("outcome.json", "peak_memory", True),
        ("outcome.json", "reused", False),  # another file's field
        ("comparison.json", "sha256", False),  # nothing in it is measured
        ("journal.jsonl", "minutes_left", True),
        ("journal.jsonl", "chunk", False),
    ],
)
def test_a_field_is_left_out_where_it_is_named(name, field, same, tmp_path):
    found = []
    for value in (1, 2):
        path = tmp_path / name
        path.write_text(json.dumps({"kept": {field: value}}) + "\n")
        found.append(content(path))
    assert (found[0] == found[1]) is same


def test_the_order_of_fields_is_compared(tmp_path):
    path = tmp_path / "outcome.json"
    path.write_text('{"a": 1, "b": 2}')
    first = content(path)
    path.write_text('{"b": 2, "a": 1}')
    assert content(path) != first


@pytest.mark.parametrize(("column", "same"), [("seconds", True), ("score", False)])
def test_outcomes_are_compared_without_what_is_measured(column, same, tmp_path):
    found = []
    for value in (1.0, 2.0):
        path = tmp_path / "outcomes.parquet"
        parquet.write_table(pa.table({"method": ["a"], "none": [float("nan")], column: [value]}), path)
        found.append(content(path))
    assert (found[0] == found[1]) is same
