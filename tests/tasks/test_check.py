"""`check` finds everything that was planted in a suite, and nothing in a clean one."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import yaml

from sidequest.tasks import Suite, check_suite, make_task
from sidequest.tasks.check import leaks
from sidequest.tasks.check_report import CheckReport
from sidequest.tasks.examples import Examples
from sidequest.tasks.overlap import content_codes, repeats

Write = Callable[[str, "str | bytes"], Path]
SPEC = {"objective": "classification", "text": "text", "label": "label"}


def csv_of(rows: list[tuple[str, str]]) -> str:
    return "text,label\n" + "".join(f'"{text}",{label}\n' for text, label in rows)


def unique_rows(n: int, word: str) -> list[tuple[str, str]]:
    return [(f"{word} number {i}", "good" if i % 2 else "bad") for i in range(n)]


def messages(report: CheckReport, task: str = "", split: str = "") -> list[str]:
    return [p.message for p in report.problems if task in ("", p.task) and split in ("", p.split)]


def suite_file(write: Write, tasks: dict, primary: str = "p") -> Path:
    return write("suite.yaml", json.dumps({"primary": primary, "tasks": tasks}))


def test_a_clean_suite_has_no_problems(write: Write) -> None:
    write("p.csv", csv_of(unique_rows(50, "primary")))
    write("a.csv", csv_of(unique_rows(50, "other")))
    tasks = {"p": SPEC | {"train": "p.csv"}, "a": SPEC | {"train": "a.csv"}}
    report = check_suite(suite_file(write, tasks))
    assert report.problems == ()
    facts = report.facts["p"]["splits"]["report"]
    assert facts["rows"] == 10
    assert facts["labels"] == {"bad": 0.5, "good": 0.5}
    assert facts["words"] == {"min": 3, "median": 3, "p95": 3, "max": 3}
    assert json.loads(json.dumps(report.to_json()))["ok"] is True


def test_everything_planted_is_found_with_its_place(write: Write) -> None:
    train = unique_rows(40, "train")
    train[5] = ("  TRAIN   number 3 ", "bad")  # repeats line 5 but for case and spaces, with another label
    train[7] = ("   ", "good")
    train += [("rare", "ugly")]
    select = [*unique_rows(20, "select"), train[10]]
    write("p.csv", csv_of(train))
    write("s.csv", csv_of(select))
    write("r.csv", csv_of([*unique_rows(20, "report"), train[11], select[0]]))
    write("a.csv", csv_of([*unique_rows(20, "a"), *unique_rows(3, "report")]))
    tasks = {
        "p": SPEC | {"train": "p.csv", "select": "s.csv", "report": "r.csv"},
        "a": SPEC | {"train": "a.csv", "select": "s.csv"},
    }
    path = suite_file(write, tasks)
    report = check_suite(path)
    where = path.parent
    assert report.errors == ()
    assert messages(report, "p", "train") == [
        f"1 empty text (the first: {where}/p.csv, line 9)",
        f"1 repetition of an earlier row, 1 with another target (the first: {where}/p.csv, line 7)",
    ]
    assert messages(report, "p", "select") == [
        "no row of the class 'ugly'",
        f"1 of 21 rows also in train (the first: {where}/s.csv, line 22). `drop_overlap: true` leaves them out of train",
    ]
    hint = "`drop_overlap: true` leaves them out of train"
    assert messages(report, "p", "report") == [
        "no row of the class 'ugly'",
        f"1 of 22 rows also in train (the first: {where}/r.csv, line 22). {hint}",
        f"1 of 22 rows also in select (the first: {where}/r.csv, line 23). `drop_overlap: true` leaves them out of select",
        f"3 of 22 rows also in the train split of a (the first: {where}/r.csv, line 2). {hint}",
    ]
    placed = next(p for p in report.problems if "empty" in p.message)
    assert (placed.file, placed.line, placed.rows) == (str(where / "p.csv"), 9, 1)


def test_faults_of_reading_and_of_content_come_together(write: Write) -> None:
    rows = unique_rows(20, "x")
    write("p.csv", csv_of([*rows, rows[0]]))
    tasks = {
        "p": SPEC | {"train": "p.csv", "labels": ["bad", "good", "great"]},
        "missing": SPEC | {"train": "p.csv", "text": "txet"},
        "alien": SPEC | {"train": "p.csv", "report": write("q.csv", csv_of([("y", "goood")])).name},
        "one": SPEC | {"train": write("one.csv", csv_of([("y", "good"), ("z", "good")])).name},
        "number": SPEC | {"train": write("n.csv", csv_of([("y", "1"), ("z", "nan")])).name, "objective": "regression"},
    }
    report = check_suite(suite_file(write, tasks))
    errors = {p.task: p.message for p in report.errors}
    assert "there is no column 'txet'. Did you mean 'text'?" in errors["missing"]
    assert (
        "q.csv, line 2: the label 'goood' is not in the train split (1 times). Did you mean 'good'?" in errors["alien"]
    )
    assert "every row has the label 'good'" in errors["one"]
    assert "n.csv, line 3: column 'label' must be a finite number, found 'nan'" in errors["number"]
    assert any("repetition" in m or "also in" in m for m in messages(report, "p"))
    assert any("no row of the class 'great'" in m for m in messages(report, "p", "train"))
    assert "p" in report.facts
    assert report.to_json()["ok"] is False


def test_labels_that_differ_only_in_spelling(write: Write) -> None:
    rows = [(f"t{i}", ("Good", "good ", "bad")[i % 3]) for i in range(30)]
    report = check_suite(suite_file(write, {"p": SPEC | {"train": write("p.csv", csv_of(rows)).name}}))
    assert "the labels 'Good' and 'good ' differ only in case or spaces" in messages(report)


def test_a_suite_built_in_python() -> None:
    rng = np.random.default_rng(0)
    images = rng.integers(0, 255, (40, 1, 4, 4), dtype=np.uint8)
    images[7] = images[2]
    task = make_task(
        "i",
        "regression",
        {"image": images, "label": np.arange(40.0)},
        select={"image": images[:3], "label": np.zeros(3)},
        report={"image": images[30:], "label": np.arange(10.0)},
    )
    report = check_suite(Suite.of(task))
    assert messages(report, "i", "train") == [
        "1 repetition of an earlier row, 1 with another target (the first: row 7)"
    ]
    hint = ". `drop_overlap: true` leaves them out of train"
    assert messages(report, "i", "select") == [
        "every target is 0",
        f"3 of 3 rows also in train (the first: row 0){hint}",
    ]
    assert messages(report, "i", "report") == [f"10 of 10 rows also in train (the first: row 0){hint}"]


def test_forms_that_show_the_same_words_can_match() -> None:
    tags = make_task("t", "tagging", {"tokens": [["The", "cat"], ["a", "b"]] * 4, "tags": [["X", "Y"], ["X", "X"]] * 4})
    texts = make_task("c", "classification", {"text": ["the  CAT", "dog", "bird", "fish"], "label": [0, 1, 0, 1]})
    pairs = make_task(
        "p",
        "classification",
        {"text": ["the", "dog", "x", "y"], "text_b": ["cat", "dog", "x", "y"], "label": [0, 1, 0, 1]},
    )
    splits = {name: _all_rows(task) for name, task in (("t", tags), ("c", texts), ("p", pairs))}
    codes = content_codes(splits)
    assert np.isin(codes["c"], codes["t"]).sum() == 1
    assert not np.isin(codes["p"], codes["c"]).any()


def _all_rows(task: object) -> Examples:
    from sidequest.tasks.examples import concatenate

    return concatenate(list(task.splits.values()))  # type: ignore[attr-defined]


def test_repeats_name_the_first_of_their_kind() -> None:
    repeated, first = repeats(np.array([5, 3, 5, 5, 1, 3]))
    assert repeated.tolist() == [2, 3, 5]
    assert first.tolist() == [0, 0, 1]


def test_duplicates_of_mnli(shared_data: Path, write: Write) -> None:
    folder = shared_data / "glue" / "MNLI"
    tasks = {
        "p": {"catalog": "mnli", "path": str(folder), "select": str(folder / "dev_matched.tsv"), "select_limit": 100}
    }
    (problem,) = [p for p in check_suite(suite_file(write, tasks)).problems if p.split == "train"]
    assert problem.rows == 112
    assert problem.message.startswith("112 repetitions of an earlier row")


@pytest.mark.integration
def test_a_hundred_thousand_rows_are_checked_in_seconds() -> None:
    texts = [f"a sentence with the number {i % 90_000} and some more words" for i in range(100_000)]
    task = make_task("big", "classification", {"text": texts, "label": np.arange(100_000) % 2})
    start = time.process_time()
    report = check_suite(Suite.of(task))
    assert time.process_time() - start < 5
    assert sum(p.rows for p in report.problems if "repetition" in p.message) + sum(
        p.rows for p in report.problems if "also in train" in p.message
    ) == pytest.approx(10_000, rel=0.01)


def test_all_rows_of_a_warning_are_listed_on_request(write: Write) -> None:
    train = unique_rows(40, "train")
    train[5], train[30] = ("TRAIN number 3", "bad"), ("train  number 3", "good")
    write("p.csv", csv_of(train))
    write("s.csv", csv_of([*unique_rows(10, "s"), train[10], train[11]]))
    write("r.csv", csv_of(unique_rows(10, "r")))
    write("a.csv", csv_of([*unique_rows(10, "a"), ("R number 4", "bad")]))
    tasks = {
        "p": SPEC | {"train": "p.csv", "select": "s.csv", "report": "r.csv"},
        "a": SPEC | {"train": "a.csv", "select": "s.csv"},
    }
    path = suite_file(write, tasks)
    lines = check_suite(path, rows=True).lines()
    assert "    train, line 7, as p (train), line 5: TRAIN number 3" in lines
    assert "    train, line 32, as p (train), line 5: train  number 3" in lines
    assert "    select, line 12, as p (train), line 12: train number 10" in lines
    assert "    report, line 6, as a (train), line 12: r number 4" in lines
    assert not any(line.startswith("    ") for line in check_suite(path).lines())
    repeated = next(p for p in check_suite(path, rows=True).to_json()["problems"] if "repetition" in p["message"])
    assert [(place["row"], place["line"]) for place in repeated["places"]] == [(5, 7), (30, 32)]
    assert "places" not in check_suite(path).to_json()["problems"][0]


def test_leaks_between_tasks_are_reported_while_another_file_is_broken(write: Write) -> None:
    write("p.csv", csv_of(unique_rows(40, "p")))
    write("r.csv", csv_of(unique_rows(10, "r")))
    write("a.csv", csv_of([*unique_rows(20, "a"), *unique_rows(3, "r")]))
    tasks = {"p": SPEC | {"train": "p.csv", "report": "r.csv"}, "a": SPEC | {"train": "a.csv"}}
    tasks["broken"] = SPEC | {"train": "missing.csv"}
    report = check_suite(suite_file(write, tasks))
    assert any("missing.csv" in error.message for error in report.errors)
    assert any("also in the train split of a" in warning.message for warning in report.warnings)


def test_rare_labels_that_look_misspelt_are_named(write: Write) -> None:
    labels = (
        ["positive"] * 60
        + ["negative"] * 60
        + ["postive"] * 2
        + ["negtaive"]
        + ["class 10"] * 50
        + ["class 11"]
        + ["fair"] * 3
    )
    rows = [(f"text {i}", label) for i, label in enumerate(labels)]
    report = check_suite(suite_file(write, {"p": SPEC | {"train": write("p.csv", csv_of(rows)).name}}))
    (message,) = [m for m in messages(report) if "misspelt" in m]
    assert "'postive' (2) for 'positive' (60)" in message
    assert "'negtaive' (1) for 'negative' (60)" in message
    assert "class" not in message.partition(";")[0]
    assert "'fair'" not in message
    mended = message.partition("`labels: ")[2].partition("`")[0]
    tasks = {"p": SPEC | {"train": "p.csv", "labels": yaml.safe_load(mended)}}
    again = check_suite(suite_file(write, tasks))
    assert not [m for m in messages(again) if "misspelt" in m]
    assert again.facts["p"]["labels"] == ["class 10", "class 11", "fair", "negative", "positive"]


def test_texts_that_would_be_cut_are_counted(write: Write) -> None:
    rows = [(" ".join(["word"] * (200 if i % 10 == 0 else 20)), "ab"[i % 2]) for i in range(50)]
    write("p.csv", csv_of(rows))
    path = write("suite.yaml", json.dumps({"primary": "p", "tasks": {"p": SPEC | {"train": "p.csv"}}}))
    assert any("at least 5 of 50 texts are longer than the 128 tokens" in m for m in messages(check_suite(path)))
    longer = {"primary": "p", "tasks": {"p": SPEC | {"train": "p.csv"}}, "model": {"kind": "pooled", "max_length": 256}}
    assert not any("would be cut" in m for m in messages(check_suite(write("longer.yaml", json.dumps(longer)))))


def test_only_leaks_that_flatter_are_said_before_a_run() -> None:
    rows = {"text": [f"text {i}" for i in range(100)], "label": [i % 2 for i in range(100)]}

    def leaky(shared: int) -> Suite:
        report = {
            "text": [f"text {i}" if i < shared else f"new {i}" for i in range(40)],
            "label": [i % 2 for i in range(40)],
        }
        primary = make_task("p", "classification", rows, report=report)
        other = make_task("q", "classification", {"text": report["text"], "label": report["label"]})
        return Suite.of(primary, [other])

    said = "\n".join(leaks(leaky(0)))
    assert "p (report): 30 of 40 rows also in the train split of q" in said
    assert "drop_overlap: true" in said
    assert "also in train (" not in said  # none of its own
    assert "p (report): 1 of 40" not in "\n".join(leaks(leaky(1)))  # too few to matter
    assert "rows also in train (the first" in "\n".join(leaks(leaky(12)))
    assert leaks(Suite.of(make_task("p", "classification", rows))) == []


def test_the_numbers_of_a_regression_are_told() -> None:
    data = {"text": [f"text {i}" for i in range(60)], "label": [i / 10 for i in range(60)]}
    lines = check_suite(Suite.of(make_task("p", "regression", data))).lines()
    assert "; targets from 0 to 5.9, " in next(line for line in lines if line.startswith("  train: "))
