"""Tasks and suites from data in memory, files and names; what was guessed is said, what is wrong is one message."""

import re

import datasets
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import sidequest as sq
from sidequest.errors import SidequestError
from tests.api.conftest import reviews

NAMED = {"text": "body", "label": "stars"}


def as_dataset(frame):
    return datasets.Dataset.from_pandas(frame, preserve_index=False)


@pytest.mark.parametrize(
    "shape",
    [lambda frame: frame, lambda frame: frame.to_dict("list"), pa.Table.from_pandas, as_dataset],
    ids=["DataFrame", "mapping", "Arrow", "Dataset"],
)
def test_every_kind_of_table_gives_the_same_task(frame, shape):
    task = sq.Task("reviews", shape(frame), **NAMED).load(primary=True)
    same = sq.Task("reviews", frame, **NAMED).load(primary=True)
    assert task.fingerprints == same.fingerprints
    assert task.labels == ("down", "up")
    assert {name: len(rows) for name, rows in task.splits.items()} == {"train": 29, "select": 9, "report": 10}


@pytest.mark.parametrize("as_path", [str, lambda path: path])
def test_files_are_read_by_their_content(files, as_path):
    task = sq.Task("reviews", as_path(files / "reviews.csv"), **NAMED).load()
    assert len(task.train) + len(task.splits["select"]) == 60
    assert len(sq.Task("sst2", "glue/sst2", path=str(files / "SST-2")).load().train) == 68


def test_a_dataset_dict_brings_its_splits(frame):
    splits = datasets.DatasetDict(
        train=as_dataset(frame), validation=as_dataset(reviews(20, 5)), test=as_dataset(reviews(25, 6))
    )
    task = sq.Task("reviews", splits, **NAMED).load(primary=True)
    assert {name: len(rows) for name, rows in task.splits.items()} == {"train": 48, "select": 20, "report": 25}


def test_the_objective_is_guessed_and_said(frame):
    classes = sq.Task("a", frame, **NAMED).load()
    assert classes.objective == "classification"
    assert any("guessed: objective='classification'" in note for note in classes.notes)
    rng = np.random.default_rng(0)
    numbers = sq.Task("b", frame.assign(stars=rng.normal(size=len(frame))), **NAMED).load()
    assert numbers.objective == "regression"
    told = sq.Task("c", frame, objective="classification", **NAMED).load()
    assert not any("guessed" in note for note in told.notes)
    whole = sq.Task("d", frame).load()
    assert any("text='body'" in note and "label='stars'" in note for note in whole.notes)


def test_a_suite_names_its_candidates_and_checks_itself(suite):
    assert repr(suite) == "Suite 'suite': reviews + 2 candidates"
    assert suite.candidates == ("other", "third")
    report = suite.check()
    assert "reviews: classification, text, accuracy" in repr(report)
    assert not report.errors
    fewer = suite.subset(["other"])
    assert isinstance(fewer, sq.Suite)
    assert fewer.candidates == ("other",)
    assert suite.with_primary("third").primary == "third"


def test_suites_of_files_are_the_same_kind_of_object():
    suite = sq.load_suite("digits")
    assert isinstance(suite, sq.Suite)
    assert not suite.check().errors


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda frame: sq.Task("a", frame, text="boddy", label="stars").load(), "Did you mean 'body'?"),
        (lambda frame: sq.Task("a", frame, txt="body"), "unknown setting 'txt'. Did you mean 'text'?"),
        (lambda frame: sq.Task(3, frame), "a task's name is a text, found int 3"),
        (
            lambda frame: sq.Task("a", [1, 2], **NAMED).load(),
            "rows are a mapping of columns, a DataFrame or a table, found list",
        ),
        (lambda frame: sq.Task("a", "nowhere.csv", **NAMED).load(), "no such file, and no known dataset"),
        (lambda frame: sq.Task("a", "sst3").load(), "Did you mean 'sst2'?"),
        (lambda frame: sq.Task("a", frame, objective="rating", **NAMED).load(), "objective"),
        (lambda frame: sq.Task("a", pd.DataFrame({"n": [1.5, 2.5]}), **NAMED).load(), "there is no column 'body'"),
        (lambda frame: sq.Suite(), "a suite has a primary task"),
        (lambda frame: sq.Suite(primary=sq.Task("a", frame, **NAMED), candidates="sst2"), "candidates: tasks by name"),
        (lambda frame: sq.Suite(primary=sq.Task("a", frame, **NAMED), candidates=[frame]), "a list holds tasks"),
        (
            lambda frame: sq.Suite(
                primary=sq.Task("a", frame, **NAMED), candidates={"b": sq.Task("c", frame, **NAMED)}
            ),
            "the key 'b' holds a task that is called 'c'",
        ),
        (
            lambda frame: sq.Suite(primary=sq.Task("a", frame, **NAMED), candidates=[sq.Task("a", frame, **NAMED)]),
            "two tasks have one name",
        ),
        (lambda frame: sq.Suite(primary=sq.Task("a", frame, **NAMED), goal="best"), "goal is 'primary' or 'average'"),
    ],
)
def test_what_is_wrong_is_one_message(frame, make, says):
    with pytest.raises(SidequestError, match=re.escape(says)):
        make(frame)
