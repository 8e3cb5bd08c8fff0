"""Several labels per row: every way to write them gives one task, and every way to write them wrongly says where."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sidequest.errors import SidequestError
from sidequest.tasks import Suite, check_suite, load_task, make_task
from sidequest.tasks.majority import majority_score
from sidequest.tasks.metrics import compute
from sidequest.tasks.rows import read_new_rows
from sidequest.tasks.task import Form, Objective

Write = Callable[[str, "str | bytes"], Path]
NAMES = ("art", "sport", "war")
BASIC = {"objective": "multi-label", "text": "body", "labels": list(NAMES)}


def topics(i: int) -> list[str]:
    """Never empty: art for even rows, sport for multiples of 3, war for the rest."""
    return [name for name, has in zip(NAMES, (i % 2 == 0, i % 3 == 0, i % 2 and i % 3), strict=True) if has]


def write_jsonl(write: Write, rows: list[dict], name: str = "t.jsonl") -> Path:
    return write(name, "".join(json.dumps(row) + "\n" for row in rows)).parent


ROWS = [{"body": f"text {i}", "topics": topics(i)} for i in range(60)]


def test_lists_texts_columns_and_memory_give_the_same_task(write: Write, tmp_path: Path) -> None:
    write_jsonl(write, ROWS)
    lists = load_task("t", BASIC | {"train": "t.jsonl", "label": "topics"}, tmp_path)
    assert (lists.objective, lists.form, lists.labels, lists.outputs) == (Objective.MULTILABEL, Form.TEXT, NAMES, 3)
    assert lists.metrics == ("micro_f1", "macro_f1", "subset_accuracy")
    assert lists.train.target.dtype == np.uint8
    for row, marks in zip(lists.train.ids.tolist(), lists.train.target, strict=True):
        assert [NAMES[i] for i in np.flatnonzero(marks)] == topics(row)

    pq.write_table(pa.Table.from_pylist(ROWS), tmp_path / "t.parquet")
    texts = [f'"text {i}"," {" ; ".join(topics(i))};"' for i in range(60)]
    write("texts.csv", "\n".join(["body,topics", *texts]))
    zeros = [f"text {i}," + ",".join(str(int(name in topics(i))) for name in NAMES) for i in range(60)]
    write("columns.csv", "\n".join(["body,art,sport,war", *zeros]))
    renamed = write("renamed.csv", "\n".join(["body,is_art,is_sport,is_war", *zeros]))
    write("words.csv", renamed.read_text().replace(",0", ",False").replace(",1", ",True"))
    mapping = {f"is_{name}": name for name in NAMES}
    ways = [
        load_task("t", BASIC | {"train": "t.parquet", "label": "topics"}, tmp_path),
        load_task("t", BASIC | {"train": "texts.csv", "label": "topics", "label_separator": ";"}, tmp_path),
        load_task("t", BASIC | {"train": "columns.csv"}, tmp_path),
        load_task("t", BASIC | {"train": "renamed.csv", "labels": mapping}, tmp_path),
        load_task("t", BASIC | {"train": "words.csv", "labels": mapping}, tmp_path),
        make_task(
            "t", "multi-label", {"text": [row["body"] for row in ROWS], "label": [row["topics"] for row in ROWS]}
        ),
    ]
    for task in ways:
        assert task.fingerprints == lists.fingerprints
    other = make_task(
        "t", "multi-label", {"text": [row["body"] for row in ROWS], "label": [["war", "art"]] * 59 + [["art"]]}
    )
    assert other.fingerprints != lists.fingerprints


def test_a_saved_dataset_with_class_labels_keeps_their_names_and_order(tmp_path: Path) -> None:
    import datasets

    features = datasets.Features(
        {
            "body": datasets.Value("string"),
            "topics": datasets.Sequence(datasets.ClassLabel(names=["war", "sport", "art"])),
        }
    )
    order = ["war", "sport", "art"]
    rows = [{"body": row["body"], "topics": [order.index(name) for name in row["topics"]]} for row in ROWS]
    datasets.Dataset.from_list(rows, features=features).save_to_disk(str(tmp_path / "saved"))
    task = load_task("t", {"objective": "multi-label", "train": "saved", "text": "body", "label": "topics"}, tmp_path)
    assert task.labels == ("war", "sport", "art")
    assert [sorted(task.labels[i] for i in np.flatnonzero(marks)) for marks in task.train.target] == [
        topics(i) for i in task.train.ids.tolist()
    ]


def test_images_take_a_matrix_of_zeros_and_ones() -> None:
    images = np.random.default_rng(0).random((20, 1, 4, 4), dtype=np.float32)
    marks = np.arange(60).reshape(20, 3) % 2
    task = make_task("i", "multi-label", {"image": images, "label": marks}, labels=NAMES)
    assert np.array_equal(task.train.target, marks[task.train.ids])
    with pytest.raises(SidequestError, match="has 3 marks per row and `labels:` names 2"):
        make_task("i", "multi-label", {"image": images, "label": marks}, labels=NAMES[:2])
    with pytest.raises(SidequestError, match="row 4: column 'label', label 'art': must be 0 or 1, found 2"):
        make_task(
            "i",
            "multi-label",
            {"image": images, "label": np.where(np.arange(60).reshape(20, 3) == 12, 2, marks)},
            labels=NAMES,
        )


def test_rows_without_a_label_are_refused_unless_allowed(write: Write, tmp_path: Path) -> None:
    write_jsonl(write, [*ROWS, {"body": "nothing", "topics": []}])
    spec = BASIC | {"train": "t.jsonl", "label": "topics"}
    with pytest.raises(
        SidequestError, match=r"t\.jsonl, line 61: column 'topics' has an empty list; say `allow_empty: true`"
    ):
        load_task("t", spec, tmp_path)
    task = load_task("t", spec | {"allow_empty": True, "select": "t.jsonl"}, tmp_path)
    assert task.train.target[-1].tolist() == [0, 0, 0]
    write("t.csv", "body,topics\na,art;war\nb,\nc,sport\n")
    texts = BASIC | {"train": "t.csv", "label": "topics", "label_separator": ";", "select": "t.csv"}
    with pytest.raises(SidequestError, match=r"t\.csv, line 3: column 'topics' has an empty list"):
        load_task("t", texts, tmp_path)
    assert load_task("t", texts | {"allow_empty": True}, tmp_path).train.target.tolist() == [
        [1, 0, 1],
        [0, 0, 0],
        [0, 1, 0],
    ]


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (
            {"topics": ["art", "sprot"]},
            r"line 61: the label 'sprot' is not in `labels:` \(1 times\). Did you mean 'sport'\?",
        ),
        (
            {"topics": None},
            r"line 61: column 'topics' has no labels here; `unlabelled: drop` leaves such rows out \(1 such rows\)",
        ),
        ({"topics": ["art", None]}, r"line 61: column 'topics' has a list with a missing label"),
        ({"topics": ["art", ""]}, r"line 61: column 'topics' has a list with an empty label"),
        ({"topics": [["art"]]}, r"column 'topics'"),
        ({"topics": [10**30]}, r"line 61: the label '10{30}' is not in `labels:`"),
        ({"topics": "art"}, r"column 'topics' holds texts, for example .* `label_separator:`"),
    ],
)
def test_bad_lists_are_refused_with_their_line(write: Write, tmp_path: Path, bad: dict, message: str) -> None:
    write_jsonl(write, [*ROWS, {"body": "last"} | bad])
    with pytest.raises(SidequestError, match=r"t\.jsonl" + ".*" + message):
        load_task("t", BASIC | {"train": "t.jsonl", "label": "topics"}, tmp_path)


@pytest.mark.parametrize("value", ["2", "yes", "", "0.5"])
def test_a_column_of_zeros_and_ones_with_another_value_is_refused_with_its_line(
    write: Write, tmp_path: Path, value: str
) -> None:
    write("c.csv", f"body,art,sport,war\na,1,0,0\nb,0,{value},1\nc,0,1,0\n")
    expected = re.escape(f"c.csv, line 3: column 'sport' must be 0 or 1, found {value!r} (1 such rows)")
    with pytest.raises(SidequestError, match=expected):
        load_task("t", BASIC | {"train": "c.csv"}, tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": None}, "`label:` is missing"),
        ({"labels": ["art"]}, "at least two labels; for a single one say `objective: classification`"),
        ({"label_separator": ";"}, "`label_separator:` means nothing for 0/1 columns"),
        ({"labels": ["art", "sport", "wars"]}, r"c\.csv: there is no column 'wars'. Did you mean 'war'\?"),
        ({"labels": ["art", "sport", "art"]}, "'art' is listed twice"),
        (
            {"metric": "accuracy"},
            "'accuracy' does not fit the objective multi-label. Fitting: macro_f1, weighted_f1, micro_f1",
        ),
        (
            {"objective": "classification", "label": "art", "allow_empty": True},
            "`allow_empty:` means nothing for a classification",
        ),
    ],
)
def test_a_spec_that_cannot_be_meant_is_refused(write: Write, tmp_path: Path, change: dict, message: str) -> None:
    write("c.csv", "body,art,sport,war\n" + "".join(f"{i},{i % 2},1,0\n" for i in range(9)))
    with pytest.raises(SidequestError, match=message):
        load_task("t", BASIC | {"train": "c.csv"} | change, tmp_path)


def test_a_constant_target_is_refused() -> None:
    with pytest.raises(SidequestError, match=r"every row has the labels \['art', 'war'\]; there is nothing to learn"):
        make_task("t", "multi-label", {"text": list("abcdefgh"), "label": [["art", "war"]] * 8})
    with pytest.raises(SidequestError, match="the only label is 'art'; for a single label say"):
        make_task("t", "multi-label", {"text": list("abcd"), "label": [["art"], []] * 2}, allow_empty=True)
    with pytest.raises(SidequestError, match="no row has a label"):
        make_task("t", "multi-label", {"text": list("abcd"), "label": [[]] * 4}, allow_empty=True)


def test_shuffled_labels_stay_together_and_move() -> None:
    rows = {"text": [row["body"] for row in ROWS], "label": [row["topics"] for row in ROWS]}
    plain, shuffled = (make_task("t", "multi-label", rows, shuffle_labels=how) for how in (False, True))
    sets = [
        sorted(map(tuple, np.concatenate([t.train.target, t.splits["select"].target]).tolist()))
        for t in (plain, shuffled)
    ]
    assert sets[0] == sets[1]
    assert not np.array_equal(plain.train.target, shuffled.train.target)


def test_check_shows_the_share_of_each_label_and_warns_of_absent_ones() -> None:
    rows = {"text": [row["body"] for row in ROWS], "label": [row["topics"] for row in ROWS]}
    task = make_task("t", "multi-label", rows, rows, rows, labels=(*NAMES, "food"))
    report = check_suite(Suite.of(task))
    assert report.facts["t"]["splits"]["train"]["labels"] == pytest.approx(
        {"art": 1 / 2, "sport": 1 / 3, "war": 1 / 3, "food": 0}
    )
    assert "no row of the class 'food'" in [problem.message for problem in report.warnings]
    assert any("art 50%, sport 33%, war 33%" in line for line in report.lines())
    constant = report.facts["t"]["splits"]["report"]["constant"]
    assert constant == majority_score(task)
    assert any(f"the best constant answer has micro_f1 {constant:.3f}" in line for line in report.lines())
    assert report.facts["t"]["splits"]["train"]["constant"] is None
    repeated = make_task(
        "t", "multi-label", {"text": ["a", "b", "a", "b"] * 3, "label": [["x"], ["y"], ["x", "y"], ["y"]] * 3}
    )
    assert any("with another target" in problem.message for problem in check_suite(Suite.of(repeated)).warnings)


def test_the_best_constant_answer_is_the_best_of_all_label_sets() -> None:
    """Every subset of five labels, tried one by one."""
    rng = np.random.default_rng(3)
    marks = (rng.random((200, 5)) < (0.6, 0.45, 0.3, 0.1, 0.02)).astype(np.uint8)
    rows = {"text": [f"text {i}" for i in range(200)], "label": [[f"l{j}" for j in np.flatnonzero(m)] for m in marks]}
    for metric in ("micro_f1", "subset_accuracy", "macro_f1"):
        task = make_task(
            "t", "multi-label", rows, rows, rows, labels=[f"l{j}" for j in range(5)], metric=metric, allow_empty=True
        )
        every = [np.array([(s >> j) & 1 for j in range(5)]) for s in range(32)]
        best = max(compute(metric, np.broadcast_to(labels, marks.shape), marks) for labels in every)
        assert majority_score(task) == pytest.approx(best)
    assert majority_score(make_task("r", "regression", {"text": list("abcd"), "label": [1.0, 2, 3, 4]})) is None


@pytest.mark.parametrize(("cells", "labelled"), [(["art", "", "art;war"], [0, 1, 2]), (["", "", ""], [])])
def test_where_rows_may_have_no_label_an_empty_cell_of_a_labelled_file_is_scored(
    write: Write, tmp_path: Path, cells: list[str], labelled: list[int]
) -> None:
    texts = [f"text {i},{';'.join(topics(i)) if i % 4 else ''}" for i in range(60)]
    write("texts.csv", "\n".join(["body,topics", *texts]))
    spec = BASIC | {"train": "texts.csv", "label": "topics", "label_separator": ";"}
    task = load_task("t", spec | {"allow_empty": True}, tmp_path)
    rows = read_new_rows(write("new.csv", "\n".join(["body,topics", *(f"some text,{cell}" for cell in cells)])), task)
    assert rows.labelled.tolist() == labelled
    if labelled:
        assert rows.target.tolist() == [[1, 0, 0], [0, 0, 0], [1, 0, 1]]
    strict = write("full.csv", "\n".join(["body,topics", *(f"text {i},{';'.join(topics(i))}" for i in range(60))])).name
    task = load_task("t", spec | {"train": strict}, tmp_path)
    rows = read_new_rows(tmp_path / "new.csv", task)
    assert rows.labelled.tolist() == [i for i in labelled if cells[i]], "an empty cell is a row without an answer"
