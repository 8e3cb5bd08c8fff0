"""`init`: what is guessed loads, passes the check, and is what a person would have written."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from sidequest.errors import SidequestError
from sidequest.tasks import check_suite, guess_suite, load_suite

Write = Callable[[str, "str | bytes"], Path]


def table(columns: str, rows: int, row: Callable[[int], list[Any]], mark: str = ",") -> str:
    return "\n".join([columns.replace(",", mark), *(mark.join(map(str, row(i))) for i in range(rows)), ""])


REVIEWS = table(
    "id,body,stars,author", 60, lambda i: [i, f"review number {i} is long", ("bad", "good")[i % 2], f"a{i % 9}"]
)


def guess(write: Write, *paths: Path, primary: str | None = None) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """The guessed tasks, after the suite was written, loaded and checked without errors."""
    home = write("suite.yaml", "").parent
    text, notes = guess_suite(paths, primary=primary, relative_to=home)
    suite = write("suite.yaml", text)
    assert check_suite(suite).errors == ()
    load_suite(suite)
    return yaml.safe_load(text)["tasks"], notes


def test_train_and_test_files_are_one_task(write: Write) -> None:
    write("reviews_train.csv", REVIEWS)
    write("reviews_test.csv", REVIEWS)
    other = write("sub/prices.jsonl", "\n".join(json.dumps({"text": f"item {i}", "price": i / 7}) for i in range(90)))
    tasks, notes = guess(write, *sorted(other.parents[1].glob("*.csv")), other)
    assert tasks == {
        "reviews": {
            "objective": "classification",
            "train": "reviews_train.csv",
            "report": "reviews_test.csv",
            "text": "body",
            "label": "stars",
            "metric": "accuracy",
        },
        "prices": {
            "objective": "regression",
            "train": "sub/prices.jsonl",
            "text": "text",
            "label": "price",
            "metric": ["pearson", "spearman"],
        },
    }
    assert any(note.startswith("primary: reviews, because it is the smallest") for note in notes)


def test_a_directory_of_splits_is_a_task_with_its_name(write: Write) -> None:
    write(
        "nli/train.tsv",
        table("premise,hypothesis,gold_label", 30, lambda i: [f'say "{i}', f"h {i}", "abc"[i % 3]], "\t"),
    )
    write(
        "nli/dev.tsv", table("premise,hypothesis,gold_label", 9, lambda i: [f"say {i}", f"h {i}", "abc"[i % 3]], "\t")
    )
    path = write("nli/test.tsv", table("premise,hypothesis", 9, lambda i: [f"say {i}", f"h {i}"], "\t"))
    tasks, notes = guess(write, path.parent)
    assert tasks["nli"] == {
        "objective": "classification",
        "train": "nli/train.tsv",
        "report": "nli/dev.tsv",
        "quoting": "none",
        "text": "premise",
        "text_b": "hypothesis",
        "label": "gold_label",
        "metric": "accuracy",
    }
    assert "nli: test.tsv has no labels and is not used" in notes


def test_three_splits(write: Write) -> None:
    for role in ("train", "valid", "test"):
        path = write(f"r/{role}.csv", REVIEWS)
    tasks, _ = guess(write, path.parent)
    assert (tasks["r"]["select"], tasks["r"]["report"]) == ("r/valid.csv", "r/test.csv")


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.csv", REVIEWS.replace("review", "caf\xe9").encode("latin-1"), {"encoding": "cp1252", "text": "body"}),
        ("a.csv", REVIEWS.replace(",", ";"), {"delimiter": ";", "label": "stars"}),
        ("a.tsv", REVIEWS.replace(",", "\t").replace("review", '"re"view'), {"quoting": "none"}),
        ("a.tsv", REVIEWS.replace(",", "\t").replace("review", '"re""view').replace("long", 'long"'), {"text": "body"}),
        (
            "a.tsv",
            "".join(f"gj{i}\t{i % 2}\t\tsentence {i} is fine\n" for i in range(40)),
            {"header": False, "text": "3", "label": "1"},
        ),
        (
            "a.txt",
            "EU NNP I-ORG\nrejects VBZ O\n\n" * 9,
            {"format": "conll", "objective": "tagging", "metric": "span_f1"},
        ),
        (
            "a.jsonl",
            "\n".join(json.dumps({"tokens": ["a", "b"], "ner_tags": ["X", "Y"]}) for _ in range(9)),
            {"objective": "tagging", "tokens": "tokens", "tags": "ner_tags", "metric": "token_accuracy"},
        ),
        (
            "a.csv",
            table("question,choice1,choice2,label", 30, lambda i: [f"q {i} of it", "yes", f"no {i}", i % 2]),
            {"objective": "multiple-choice", "choices": ["choice1", "choice2"], "text": "question", "label": "label"},
        ),
        (
            "a.csv",
            table("text,label", 40, lambda i: [f"t {i}", int(i % 8 == 0)]),
            {"metric": ["macro_f1", "accuracy"]},  # seven of eight rows have one label
        ),
        (
            "a.csv",
            table("sentence1,sentence2,score", 50, lambda i: [f"a {i}", f"b {i}", i]),
            {"objective": "regression"},
        ),
    ],
)
def test_ways_to_write_a_file(write: Write, name: str, content: str | bytes, expected: dict[str, Any]) -> None:
    tasks, _ = guess(write, write(name, content))
    assert {key: tasks["a"].get(key) for key in expected} == expected
    if "quoting" not in expected:
        assert "quoting" not in tasks["a"]


def test_known_layouts_become_catalog_entries(shared_data: Path, write: Write) -> None:
    tasks, _ = guess(
        write, shared_data / "glue" / "RTE", shared_data / "meld", shared_data / "superglue", primary="RTE"
    )
    assert {name: task["catalog"] for name, task in tasks.items()} == {
        "RTE": "rte",
        "meld": "meld",
        "CB": "cb",
        "COPA": "copa",
    }


def test_what_can_not_be_guessed_is_said(write: Write) -> None:
    write("d/a.csv", REVIEWS)
    write("d/odd.csv", table("x,y", 30, lambda i: [f"one {i}", f"two {i}"]))
    write("d/README.md", "words")
    path = write("d/notes.txt", "just some words\nand more of them here\n")
    tasks, notes = guess(write, path.parent)
    assert list(tasks) == ["a"]
    assert any("odd: left out" in note and "no column looks like a label; columns are x, y" in note for note in notes)
    assert any("notes: left out" in note and "can't guess the format" in note for note in notes)
    with pytest.raises(SidequestError, match="no task could be guessed"):
        guess_suite([path])
    with pytest.raises(SidequestError, match=r"unknown task 'b'\. Valid: a"):
        guess_suite([path.parent / "a.csv"], primary="b")
    with pytest.raises(SidequestError, match="no such file"):
        guess_suite([path.parent / "none.csv"])


def test_equal_names_in_two_places_get_numbers(write: Write) -> None:
    paths = [write(f"{folder}/reviews.csv", REVIEWS) for folder in ("x", "y")]
    tasks, _ = guess(write, *paths)
    assert {name: task["train"] for name, task in tasks.items()} == {
        "reviews": "x/reviews.csv",
        "reviews-2": "y/reviews.csv",
    }


def test_a_saved_dataset(write: Write, tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    data = {"text": [f"text {i}" for i in range(30)], "label": [i % 3 for i in range(30)]}
    datasets.Dataset.from_dict(data).save_to_disk(tmp_path / "mine")
    tasks, _ = guess(write, tmp_path / "mine")
    assert tasks["mine"]["train"] == "mine"
    whole = datasets.Dataset.from_dict(data)
    hidden = datasets.Dataset.from_dict(data | {"label": [-1] * 30})
    datasets.DatasetDict({"train": whole, "validation": whole, "test": hidden}).save_to_disk(tmp_path / "dict")
    tasks, _ = guess(write, tmp_path / "dict")
    assert (tasks["dict"]["saved"], tasks["dict"]["train"], tasks["dict"]["report"]) == ("dict", "train", "validation")
    assert "select" not in tasks["dict"]
