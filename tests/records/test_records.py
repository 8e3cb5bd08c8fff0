"""Records: the same after a file, old files still read, and what is no record refused in one sentence."""

import json
import math
from pathlib import Path

import pytest

from sidequest.errors import SettingsError, SidequestError
from sidequest.recipe import Recipe
from sidequest.records.comparisons import Comparison, Difference, Outcome, PrimariesTable, Row
from sidequest.records.runs import (
    Evaluation,
    ExamplesRecord,
    FactsRecord,
    RunRecord,
    ScoresRecord,
    SelectionRecord,
    Spent,
)
from sidequest.records.standings import StandingsRecord
from sidequest.report.page import read_page, render
from sidequest.runs.truth import TruthTable

OLD = Path(__file__).parents[1] / "assets" / "0.1"


def outcome(**changes: object) -> Outcome:
    made = Outcome(
        method="heu-size",
        seed=3,
        score=0.5,
        select_score=0.6,
        report={"accuracy": 0.5},
        select={"accuracy": 0.6},
        tasks={},
        auxiliaries=["a"],
        selection=Spent(x=2.0, batches=7),
        history=(Evaluation(phase=0, batches=4, score=0.6),),
    )
    return made.model_copy(update=changes)


def test_a_record_is_the_same_after_a_file_and_its_bytes_are_too(tmp_path):
    one = outcome()
    one.write(tmp_path)
    assert Outcome.read(tmp_path) == one
    first = (tmp_path / "outcome.json").read_bytes()
    Outcome.read(tmp_path).write(tmp_path)
    assert (tmp_path / "outcome.json").read_bytes() == first
    outcome(seed=4).write(tmp_path)
    assert Outcome.read(tmp_path) != one


def test_an_unknown_number_is_null_in_the_file_and_nan_in_python(tmp_path):
    row = Row(
        method="a",
        seeds=[0],
        scores=[0.5],
        mean=0.5,
        low=-math.inf,
        high=math.inf,
        against=(Difference(to="single", mean=0.1, low=math.nan, high=0.2),),
        verdict="no verdict",
        x=1.0,
    )
    Comparison(suite="s", primary="p", metric="accuracy", seeds=[0], rows=(row,)).write(tmp_path)
    text = (tmp_path / "comparison.json").read_text()
    assert not {"NaN", "Infinity"} & set(text.replace(",", " ").split())
    read = Comparison.read(tmp_path).rows[0]
    assert math.isnan(read.low)
    assert math.isnan(read.against[0].low)
    assert read.against[0].high == 0.2


def test_a_comparison_holds_its_verdict_for_other_readers(tmp_path):
    made = Comparison(suite="s", primary="p", metric="accuracy", seeds=[0], rows=())
    made.write(tmp_path)
    assert json.loads((tmp_path / "comparison.json").read_text())["verdict"] == made.verdict


@pytest.mark.parametrize(
    ("record", "path"),
    [
        (RunRecord, "run/run.json"),
        (SelectionRecord, "run/selection.json"),
        (ScoresRecord, "run/scores.json"),
        (ScoresRecord, "compare/heu-type/seed-0/scores.json"),  # of a comparison: the same name, another schema
        (FactsRecord, "run/record.json"),
        (ExamplesRecord, "run/examples.json"),
        (Comparison, "compare/comparison.json"),
        (Comparison, "one-seed/comparison.json"),
        (PrimariesTable, "primaries/table.json"),
        (StandingsRecord, "score/scores.json"),
    ],
)
def test_files_of_0_1_are_read_and_become_this_version(record, path, tmp_path):
    assert "version" not in json.loads((OLD / path).read_text())
    read = record.read(OLD / path)
    assert read.version == record.VERSION
    read.write(tmp_path / "new.json")
    assert record.read(tmp_path / "new.json").to_json() == read.to_json()


def test_the_numbers_of_0_1_are_what_they_were():
    old = json.loads((OLD / "compare" / "comparison.json").read_text())
    read = Comparison.read(OLD / "compare")
    for before, row in zip(old["rows"], read.rows, strict=True):
        assert (row.method, row.mean, row.low, row.high, row.x) == tuple(
            before[key] for key in ("method", "mean", "low", "high", "x")
        )
        if before["verdict"] != "baseline":
            assert (row.difference, row.against[0].low) == (before["difference"], before["difference_low"])
    assert [outcome.x for outcome in read.outcomes] == [o["selection_x"] + o["training_x"] for o in old["outcomes"]]
    assert ScoresRecord.read(OLD / "run").training.batches == 8
    table = json.loads((OLD / "primaries" / "table.json").read_text())
    assert PrimariesTable.read(OLD / "primaries").methods["all"].average == table["methods"]["all"]["average"]["mean"]
    assert StandingsRecord.read(OLD / "score" / "scores.json").standings[0].subsets == 2


@pytest.mark.parametrize("directory", ["compare", "run", "compare/heu-type/seed-0"])
def test_a_page_is_made_from_directories_of_0_1(directory):
    page = render(read_page(OLD / directory))
    assert "top-left" in page


def test_recipes_and_truth_tables_of_0_1_are_read():
    assert Recipe.read(OLD / "run" / "recipe.json").method == "heu-type"
    assert len(TruthTable.read(OLD / "truth.json").subsets) == 2


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "is damaged: it is not JSON"),
        ("[" * 100_000, "is damaged: it is not JSON"),
        ("[1]", "not the outcome.json"),
        ('{"version": 7}', "has version 7, this sidequest reads versions up to 1"),
        ('{"version": "new"}', "has version 'new'"),
        ('{"version": 1, "method": "a"}', "not the outcome.json of `sidequest compare`: seed: Field required"),
        ('{"method": "a"}', "not the outcome.json of `sidequest compare`: KeyError: 'selection_x'"),
    ],
)
def test_what_is_no_record_is_refused_in_one_sentence(tmp_path, content, says):
    path = tmp_path / "outcome.json"
    path.write_text(content)
    with pytest.raises(SidequestError) as error:
        Outcome.read(path)
    assert str(path) in str(error.value)
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_a_missing_file_says_what_makes_it(tmp_path):
    with pytest.raises(SettingsError, match="`sidequest compare` makes it"):
        Outcome.read(tmp_path)
    assert Outcome.read_if_there(tmp_path) is None


def test_names_of_files_are_distinct():
    names = [
        cls.FILE for cls in (RunRecord, SelectionRecord, ScoresRecord, FactsRecord, ExamplesRecord, Outcome, Comparison)
    ]
    names += [PrimariesTable.FILE, StandingsRecord.FILE]
    assert len(set(names)) == len(names)
