"""From files and memory to tasks: targets, splits, limits, and faults collected in one message."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sidequest.errors import SidequestError
from sidequest.tasks import check_suite, load_suite, load_task, make_task, read_rows
from sidequest.tasks.task import Form, Objective

Write = Callable[[str, "str | bytes"], Path]


def reviews(rows: int, start: int = 0) -> str:
    lines = [f'"text {i}, of {i % 7} words",{"good" if i % 3 else "bad"},{i / 10}' for i in range(start, start + rows)]
    return "\n".join(["body,stars,price", *lines, ""])


BASIC = {"objective": "classification", "train": "r.csv", "text": "body", "label": "stars"}


def classes(task: object, split: str) -> list[int]:
    return np.bincount(task.splits[split].target, minlength=2).tolist()  # type: ignore[attr-defined]


# ---- objectives ------------------------------------------------------------------------------------------------------------


def test_classification_of_texts(write: Write) -> None:
    write("r.csv", reviews(400))
    task = load_task("r", BASIC, write("t.csv", reviews(60, 1000)).parent)
    assert (task.objective, task.form, task.labels, task.metrics) == (
        Objective.CLASSIFICATION,
        Form.TEXT,
        ("bad", "good"),
        ("accuracy",),
    )
    assert {split: len(rows) for split, rows in task.splits.items()} == {"train": 300, "select": 100}
    every = sorted([*task.train.ids, *task.splits["select"].ids])
    assert every == list(range(400))
    for split in task.splits.values():
        assert split.columns["text"].to_pylist() == [f"text {i}, of {i % 7} words" for i in split.ids]
        assert split.target.tolist() == [int(i % 3 > 0) for i in split.ids]
    assert task.notes == ("select: 100 rows carved from train",)


def test_the_primary_gets_a_report_split(write: Write) -> None:
    base = write("r.csv", reviews(1000)).parent
    task = load_task("r", BASIC, base, primary=True)
    assert {split: len(rows) for split, rows in task.splits.items()} == {"train": 700, "select": 100, "report": 200}
    assert sorted(i for rows in task.splits.values() for i in rows.ids) == list(range(1000))
    assert classes(task, "report") == [67, 133]
    assert task.notes[0].startswith("report: 200 rows carved from train")
    given = load_task(
        "r", BASIC | {"report": write("t.csv", reviews(60, 1000)).name, "select": "r.csv"}, base, primary=True
    )
    assert {split: len(rows) for split, rows in given.splits.items()} == {"train": 1000, "select": 1000, "report": 60}
    assert given.notes == ()


def test_limits_count_train_and_carved_select_together(write: Write) -> None:
    base = write("r.csv", reviews(1000)).parent
    spec = BASIC | {"limit": 200, "report": "r.csv", "report_limit": 30, "select_limit": 20}
    task = load_task("r", spec, base)
    assert {split: len(rows) for split, rows in task.splits.items()} == {"train": 150, "select": 20, "report": 30}
    assert classes(task, "train") == [50, 100]
    assert "train: limited to 200 of 1000 rows, select included" in task.notes
    carved = load_task("r", BASIC | {"limit": 200}, base, primary=True)
    assert {split: len(rows) for split, rows in carved.splits.items()} == {"train": 150, "select": 50, "report": 200}


def test_a_task_is_a_function_of_its_own_spec_and_seed(write: Write) -> None:
    write("r.csv", reviews(500))
    base = write("o.csv", reviews(300, 5)).parent
    alone = write("one.yaml", json.dumps({"primary": "r", "tasks": {"r": BASIC}}))
    other = BASIC | {"train": "o.csv"}
    more = write("two.yaml", json.dumps({"primary": "a", "tasks": {"a": other, "r": BASIC, "z": other}}))
    first = load_suite(alone)["r"]
    assert (
        first.splits["select"].fingerprint() == load_task("r", BASIC, base, primary=True).splits["select"].fingerprint()
    )
    candidate = load_suite(more)["r"]
    assert candidate.fingerprints == load_task("r", BASIC, base).fingerprints
    assert candidate.fingerprints["select"] != load_task("r", BASIC, base, seed=1).fingerprints["select"]


def test_regression(write: Write) -> None:
    base = write("r.csv", reviews(100)).parent
    task = load_task("r", {"objective": "regression", "train": "r.csv", "text": "body", "label": "price"}, base)
    assert task.labels == ()
    assert task.train.target.tolist() == [i / 10 for i in task.train.ids]
    assert task.metric == "pearson"


def test_multiple_choice_from_columns_and_from_lists(write: Write) -> None:
    rows = [{"q": f"q{i}", "a": f"a{i}", "b": f"b{i}", "all": [f"a{i}", f"b{i}"], "y": i % 2} for i in range(20)]
    base = write("c.jsonl", "\n".join(map(json.dumps, rows))).parent
    spec = {"objective": "multiple-choice", "train": "c.jsonl", "text": "Which? {q} {y}", "label": "y"}
    two = load_task("c", spec | {"choices": ["a", "b"]}, base)
    one = load_task("c", spec | {"choices": "all"}, base)
    assert two.train.columns["choices"].to_pylist() == [[f"a{i}", f"b{i}"] for i in two.train.ids]
    assert two.fingerprints == one.fingerprints
    assert two.form is Form.CHOICES
    assert two.train.columns["text"][0].as_py() == f"Which? q{two.train.ids[0]} {two.train.target[0]}"
    from_one = load_task("c", spec | {"choices": "all", "labels": [1, 0]}, base)
    assert from_one.train.target.tolist() == [1 - i % 2 for i in from_one.train.ids]
    write("bad.jsonl", "\n".join(map(json.dumps, [*rows, {**rows[0], "y": 1, "all": ["x"]}, {**rows[0], "y": 2}])))
    with pytest.raises(SidequestError, match=r"bad\.jsonl, line 21: .* at least two choices, found 1"):
        load_task("c", spec | {"choices": "all", "train": "bad.jsonl"}, base)
    with pytest.raises(SidequestError, match=r"bad\.jsonl, line 22: the label '2' is not in `labels:`"):
        load_task("c", spec | {"choices": ["a", "b"], "train": "bad.jsonl"}, base)


CONLL = "EU NNP I-ORG\nrejects VBZ O\n\nPeter NNP I-PER\nBlackburn NNP I-PER\nParis NNP B-PER\n\n" * 10


def test_tagging_turns_iob1_into_iob2(write: Write) -> None:
    base = write("n.conll", CONLL).parent
    task = load_task("ner", {"objective": "tagging", "train": "n.conll"}, base)
    assert task.labels == ("B-ORG", "B-PER", "I-PER", "O")
    assert task.metrics == ("span_f1", "token_accuracy")
    names = {
        i: [task.labels[t] for t in tags] for i, tags in zip(task.train.ids, task.train.target.to_pylist(), strict=True)
    }
    assert all(tags == (["B-PER", "I-PER", "B-PER"] if i % 2 else ["B-ORG", "O"]) for i, tags in names.items())
    assert task.notes[0] == "train: 20 tags turned from IOB1 into IOB2"
    plain = load_task("ner", {"objective": "tagging", "train": "n.conll", "tag_scheme": "plain"}, base)
    assert "I-ORG" in plain.labels
    pos = load_task("pos", {"objective": "tagging", "train": "n.conll", "tags": 1}, base)
    assert pos.labels == ("NNP", "VBZ")
    assert pos.metric == "token_accuracy"


def test_tagging_from_lists_and_from_spaced_texts(write: Write) -> None:
    rows = [{"w": ["a", "b"], "t": ["X", "Y"]}, {"w": ["c"], "t": ["X"]}] * 5
    base = write("a.jsonl", "\n".join(map(json.dumps, rows))).parent
    write("a.csv", "w,t\n" + "a b,X Y\n c , X\n" * 5)
    spec = {"objective": "tagging", "tokens": "w", "tags": "t"}
    lists, spaced = (load_task("t", spec | {"train": name}, base) for name in ("a.jsonl", "a.csv"))
    assert lists.fingerprints == spaced.fingerprints
    write("bad.csv", "w,t\na b,X Y\na b,X\n")
    with pytest.raises(SidequestError, match=r"bad\.csv, line 3: 1 tags for 2 words"):
        load_task("t", spec | {"train": "bad.csv"}, base)


# ---- labels ----------------------------------------------------------------------------------------------------------------


def test_label_orders(write: Write) -> None:
    base = write("n.csv", "t,y\n" + "\n".join(f"x{i},{(10, 9, 2)[i % 3]}" for i in range(30))).parent
    spec = {"objective": "classification", "train": "n.csv", "text": "t", "label": "y"}
    assert load_task("n", spec, base).labels == ("2", "9", "10")
    assert load_task("n", spec | {"labels": [9, 10, 2, 7]}, base).labels == ("9", "10", "2", "7")
    named = load_task("n", spec | {"labels": {2: "low", 9: "high", 10: "high"}}, base)
    assert named.labels == ("low", "high")
    assert np.bincount(np.concatenate([r.target for r in named.splits.values()])).tolist() == [10, 20]


@pytest.mark.parametrize("dtype", [pa.int64(), pa.float64(), pa.string(), pa.int8()])
def test_numbers_are_the_same_labels_in_every_type(dtype: pa.DataType) -> None:
    values = pa.array([0, 1, 1, 0, 1] * 4).cast(dtype)
    task = make_task("t", "classification", pa.table({"text": [str(i) for i in range(20)], "label": values}))
    assert task.labels == ("0", "1")


def test_label_faults(write: Write) -> None:
    write("r.csv", reviews(40))
    base = write("t.csv", "body,stars\nx,god\ny,good\nz,god\nw,other\n").parent
    with pytest.raises(SidequestError) as error:
        load_task("r", BASIC | {"report": "t.csv"}, base)
    assert "t.csv, line 2: the labels 'god', 'other' are not in the train split (3 times). Did you mean 'good'?" in str(
        error.value
    )
    write("gap.csv", "body,stars\nx,good\ny,\n")
    with pytest.raises(SidequestError, match=r"gap\.csv, line 3: column 'stars' has no label here \(1 such rows\)"):
        load_task("r", BASIC | {"train": "gap.csv"}, base)
    write("one.csv", "body,stars\n" + "x,good\n" * 8)
    with pytest.raises(SidequestError, match=r"one\.csv: every row has the label 'good'"):
        load_task("r", BASIC | {"train": "one.csv"}, base)
    with pytest.raises(SidequestError, match="labels: 'a' is listed twice"):
        load_task("r", BASIC | {"labels": ["a", "a"]}, base)


@pytest.mark.parametrize(("value", "shown"), [("nan", "'nan'"), ("inf", "'inf'"), ("3,5", "'3,5'"), ("", "''")])
def test_targets_must_be_finite_numbers(write: Write, value: str, shown: str) -> None:
    base = write("r.csv", f'body,price\nx, 1.5\ny,"{value}"\n').parent
    with pytest.raises(SidequestError, match=rf"r\.csv, line 3: column 'price' must be a finite number, found {shown}"):
        load_task("r", {"objective": "regression", "train": "r.csv", "text": "body", "label": "price"}, base)


def test_shuffled_labels_keep_their_counts_and_the_report(write: Write) -> None:
    base = write("r.csv", reviews(400)).parent
    spec = BASIC | {"report": "r.csv"}
    true, shuffled = load_task("r", spec, base), load_task("r", spec | {"shuffle_labels": True}, base)
    together = [np.concatenate([t.splits[s].target for s in ("train", "select")]) for t in (true, shuffled)]
    assert np.bincount(together[0]).tolist() == np.bincount(together[1]).tolist()
    by_id = np.array([int(i % 3 > 0) for i in shuffled.train.ids])
    assert 0.4 < np.mean(shuffled.train.target == by_id) < 0.7  # by chance 5/9
    assert shuffled.fingerprints["report"] == true.fingerprints["report"]
    ner = load_task("n", {"objective": "tagging", "train": write("n.conll", CONLL).name, "shuffle_labels": True}, base)
    tokens, tags = (np.asarray(c.value_lengths()) for c in (ner.train.columns["tokens"], ner.train.target))
    assert np.array_equal(tokens, tags)


# ---- suites ----------------------------------------------------------------------------------------------------------------


def test_all_faults_of_a_suite_come_together(write: Write) -> None:
    write("r.csv", reviews(40))
    write("broken.csv", b"body,stars\nx,good\ncaf\xe9,bad\n")
    suite = write(
        "suite.yaml",
        """
suite: s
primary: reviews
goal: best
tasks:
  reviews: {objective: classification, train: r.csv, text: boddy, label: starz}
  missing: {objective: classification, train: none.csv, report: broken.csv, text: body, label: stars}
  typo: {objectiv: classification, train: r.csv}
  metric: {objective: classification, train: r.csv, text: body, label: stars, metric: pearson}
  cat: {catalog: rtee}
model: {kind: polled}
train: {epoch: 3}
""",
    )
    with pytest.raises(SidequestError) as error:
        load_suite(suite)
    message = str(error.value)
    for part in (
        "goal: input should be 'primary' or 'average'; found 'best'",
        "model: kind: unknown model kind",
        "train: unknown setting 'epoch'. Did you mean 'epochs'?",
        "reviews (train): " + str(suite.parent / "r.csv") + ": there is no column 'boddy'. Did you mean 'body'?",
        "there is no column 'starz'. Did you mean 'stars'?",
        "missing (train): " + str(suite.parent / "none.csv") + ": no such file",
        "broken.csv, line 3: byte 0xe9",
        "unknown setting 'objectiv'. Did you mean 'objective'?",
        "metric: metric 'pearson' does not fit the objective classification",
        "cat: unknown catalog entry 'rtee'. Did you mean 'rte'?",
    ):
        assert part in message, part


def test_a_suite_file(write: Write) -> None:
    write("data/r.csv", reviews(200))
    path = write(
        "suite.yaml",
        """
suite: mine
primary: z
seed: 3
tasks:
  b: {objective: regression, train: data/r.csv, text: body, label: price}
  a: {objective: classification, train: {file: data/r.csv, encoding: latin-1}, text: body, label: stars, kind: mood}
  z: {objective: classification, train: data/r.csv, text: body, label: stars, metric: [macro_f1, accuracy]}
model: {kind: pooled}
train: {epochs: 5}
""",
    )
    suite = load_suite(str(path))
    assert list(suite.tasks) == ["z", "a", "b"]
    assert (suite.name, suite.primary, suite.seed, suite.goal, suite.path) == ("mine", "z", 3, "primary", path)
    assert suite.defaults == {"model": {"kind": "pooled"}, "train": {"epochs": 5}}
    assert suite["z"].metrics == ("macro_f1", "accuracy")
    assert suite["a"].kind == "mood"
    assert "report" in suite["z"].splits
    assert "report" not in suite["a"].splits


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("primary: a\ntasks:\n  a: {}\n  a: {}\n", "'a' is written twice.*line 4"),
        ("tasks: [", "not a YAML file"),
        ("- a\n", "found list"),
        ("primary: a\ntasks: {}\n", "tasks: dictionary should have at least 1 item"),
        ("primary: b\ntasks: {a: {catalog: rte, path: none}}\n", "primary: no task is called 'b'; tasks are a"),
        ("primary: a\ntasks: {a: 3}\n", "tasks.a: input should be a mapping; found 3"),
        ("primary: a b\ntasks: {a b: {catalog: rte}}\n", "letters, digits, - and _, .*found 'a b'"),
        (
            "primary: a\ntasks: {a: {objective: tagging, train: a.csv, text: x}}\n",
            "`text:` means nothing for a tagging task",
        ),
        ("primary: a\ntasks: {a: {catalog: rte, path: p, labels: [yes, no]}}\n", "put such labels in quotes"),
    ],
)
def test_malformed_suite_files(write: Write, text: str, message: str) -> None:
    with pytest.raises(SidequestError) as error:
        load_suite(write("suite.yaml", text))
    assert re.search(message, str(error.value)), str(error.value)


def test_names_that_are_no_suites() -> None:
    with pytest.raises(SidequestError, match=r"nothing\.yaml: no such suite file"):
        load_suite("nothing.yaml")
    with pytest.raises(SidequestError, match="Did you mean 'digits'"):
        load_suite("digit")


def test_overlap_with_the_primary_can_be_dropped(write: Write) -> None:
    write("r.csv", reviews(200))
    tasks = {"p": BASIC, "a": BASIC | {"label": "price", "objective": "regression"}}
    keep = load_suite(write("keep.yaml", json.dumps({"primary": "p", "tasks": tasks})))
    drop = load_suite(write("drop.yaml", json.dumps({"primary": "p", "drop_overlap": True, "tasks": tasks})))
    seen = {*keep["p"].splits["select"].ids, *keep["p"].splits["report"].ids}
    expected = [i for i in keep["a"].train.ids if i not in seen]
    assert 0 < len(expected) < len(keep["a"].train)
    assert drop["a"].train.ids.tolist() == expected
    assert drop["p"].fingerprints == keep["p"].fingerprints
    assert "rows left out" in drop["a"].notes[-1]


def test_the_primary_s_own_overlap_can_be_dropped(write: Write) -> None:
    rows = reviews(60).splitlines()
    write("t.csv", "\n".join([*rows, rows[3], rows[4]]))
    write("s.csv", "\n".join([rows[0], rows[10], rows[11], *reviews(20, 100).splitlines()[1:]]))
    write("r.csv", "\n".join([rows[0], rows[11], rows[3], *reviews(20, 200).splitlines()[1:]]))
    tasks = {"p": BASIC | {"train": "t.csv", "select": "s.csv", "report": "r.csv"}, "a": BASIC | {"train": "t.csv"}}

    def loaded(drop: object) -> Any:
        return load_suite(write("s.yaml", json.dumps({"primary": "p", "drop_overlap": drop, "tasks": tasks})))

    both, others, neither = loaded(True), loaded("others"), loaded(False)
    assert others["p"].fingerprints == neither["p"].fingerprints
    assert len(neither["p"].train) - len(both["p"].train) == 4  # rows 3 (twice), 10 and 11
    assert len(neither["p"].splits["select"]) - len(both["p"].splits["select"]) == 1  # row 11 is in report
    assert both["p"].fingerprints["report"] == neither["p"].fingerprints["report"]
    assert "train: 4 rows left out, because they are select or report rows of p" in both["p"].notes
    assert [
        m
        for m in (
            p.message
            for p in check_suite(
                write("s.yaml", json.dumps({"primary": "p", "drop_overlap": True, "tasks": tasks}))
            ).problems
        )
        if "also in" in m
    ] == []
    tasks["p"] = tasks["p"] | {"select": "r.csv"}
    with pytest.raises(SidequestError, match="p: `drop_overlap:` leaves no select row"):
        loaded(True)


# ---- memory and prediction -------------------------------------------------------------------------------------------------


def test_tasks_from_memory() -> None:
    pandas = pytest.importorskip("pandas")
    texts, labels = [f"text {i}" for i in range(50)], [i % 2 for i in range(50)]
    lists = make_task("t", "classification", {"text": texts, "label": labels})
    frame = pandas.DataFrame({"body": texts, "stars": labels})
    framed = make_task("t", "classification", frame, text="body", label="stars")
    arrays = make_task("t", "classification", {"text": np.array(texts), "label": np.array(labels)})
    assert lists.fingerprints == framed.fingerprints == arrays.fingerprints
    images = np.zeros((50, 8, 8), dtype=np.float64)
    image = make_task(
        "i",
        "regression",
        {"image": images, "label": np.arange(50.0)},
        report={"image": images[:5], "label": np.arange(5)},
    )
    assert image.form is Form.IMAGE
    assert image.train.columns["image"].shape[1:] == (1, 8, 8)
    assert len(image.splits["report"]) == 5
    tags = make_task("n", "tagging", {"tokens": [["a", "b"], ["c"]] * 4, "tags": [["O", "B-X"], ["O"]] * 4})
    assert tags.metric == "span_f1"


def test_memory_faults() -> None:
    with pytest.raises(SidequestError, match=r"t\[train\]: columns must have one length, found .*'text': 2"):
        make_task("t", "classification", {"text": ["a", "b"], "label": [1]})
    with pytest.raises(SidequestError, match=r"t\[train\]: row 1: column 'text' has no value here"):
        make_task("t", "classification", {"text": ["a", None], "label": [1, 2]})
    with pytest.raises(SidequestError, match="unknown setting 'lable'"):
        make_task("t", "classification", {"text": ["a", "b"], "y": [1, 2]}, lable="y")
    with pytest.raises(SidequestError, match="found int"):
        make_task("t", "classification", 3)


def test_too_few_rows_to_carve_are_refused() -> None:
    rows = {"text": ["a", "b", "c", "d"], "label": [0, 1, 0, 1]}
    assert len(make_task("t", "classification", rows).splits["select"]) == 1
    with pytest.raises(SidequestError, match=r"t\[train\]: 4 rows are too few to carve select; add rows"):
        make_task("t", "classification", rows, primary=True)
    with pytest.raises(SidequestError, match="column 'text' should hold texts, found the type binary"):
        make_task("t", "classification", rows | {"text": [b"\xff", b"", b"", b""]})


def test_a_hugging_face_dataset_in_memory_and_on_disk(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    features = datasets.Features({"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["z", "a"])})
    data = datasets.Dataset.from_dict(
        {"text": [f"t{i}" for i in range(20)], "label": [i % 2 for i in range(20)]}, features=features
    )
    memory = make_task("t", "classification", data)
    assert memory.labels == ("z", "a")
    datasets.DatasetDict({"train": data, "test": data}).save_to_disk(tmp_path / "saved")
    spec = {"objective": "classification", "saved": "saved", "report": "test", "text": "text", "label": "label"}
    saved = load_task("t", spec, tmp_path)
    assert saved.fingerprints["train"] == memory.fingerprints["train"]
    assert len(saved.splits["report"]) == 20


def test_rows_to_predict_are_read_like_the_tasks_own_files(write: Write) -> None:
    write("r.csv", b"body;stars\n" + "\n".join(f"caf\xe9 {i};{i % 2}" for i in range(20)).encode("latin-1"))
    spec = {
        "objective": "classification",
        "train": "r.csv",
        "text": "{body}!",
        "label": "stars",
        "delimiter": ";",
        "encoding": "latin-1",
    }
    base = write("new.csv", "body\ncafé\n".encode("latin-1")).parent
    task = load_task("r", spec, base)
    inputs = json.loads(json.dumps(task.inputs))  # it travels with an exported model
    rows = read_rows(base / "new.csv", inputs)
    assert rows.columns["text"].to_pylist() == ["café!"]
    assert rows.target is None
    assert read_rows(write("new.jsonl", '{"body": "thé"}\n'), inputs).columns["text"].to_pylist() == ["thé!"]
    with pytest.raises(SidequestError, match=r"there is no column 'body'\. Did you mean 'bodie'"):
        read_rows(write("bad.csv", "bodie;x\na;b\n"), inputs)


def test_unlabelled_rows_are_refused_or_left_out_and_counted(write: Write) -> None:
    rows = [f"text {i},{'' if i % 5 == 0 else '-' if i == 7 else 'ab'[i % 2]}" for i in range(60)]
    path = write("a.csv", "\n".join(["text,label", *rows]))
    spec: dict[str, Any] = {"objective": "classification", "train": path.name, "text": "text", "label": "label"}
    with pytest.raises(SidequestError, match=r"line 2: .*no label here \(12 such rows\)\. `unlabelled: drop`"):
        load_task("a", spec, path.parent)
    assert load_task("a", spec | {"unlabelled": "drop"}, path.parent).labels == ("-", "a", "b")
    task = load_task("a", spec | {"unlabelled": "drop", "no_label": "-"}, path.parent)
    assert task.labels == ("a", "b")
    assert "train: 13 rows without a label left out" in task.notes
    ids = np.sort(np.concatenate([rows.ids for rows in task.splits.values()]))
    assert ids.tolist() == [i for i in range(60) if i % 5 and i != 7]  # an id is still the row's number in its file
    with pytest.raises(SidequestError, match=r"say `unlabelled: drop` with it"):
        load_task("a", spec | {"no_label": ["-"]}, path.parent)
    empty = write("b.csv", "text,label\nx,\ny,\n")
    with pytest.raises(SidequestError, match="no row has a label in column 'label'"):
        load_task("a", spec | {"train": empty.name, "unlabelled": "drop"}, path.parent)


def test_unlabelled_numbers_and_rows_in_memory() -> None:
    data = {"text": [f"t{i}" for i in range(40)], "label": [None if i == 3 else float(i) for i in range(40)]}
    task = make_task("n", "regression", data, unlabelled="drop")
    assert sum(map(len, task.splits.values())) == 39
    assert 3 not in np.concatenate([rows.ids for rows in task.splits.values()])


def test_percentages_are_numbers_if_all_are(write: Write) -> None:
    base = write("p.csv", "text,score\n" + "".join(f"text {i},{i / 2}%\n" for i in range(60))).parent
    spec = {"objective": "regression", "train": "p.csv", "text": "text", "label": "score"}
    assert set(load_task("p", spec, base).train.target.tolist()) <= {i / 2 for i in range(60)}
    write("p.csv", "text,score\na,1%\nb,2%\nc,3\n")
    with pytest.raises(
        SidequestError, match=r"line 2: column 'score' must be a finite number, found '1%' \(2 such rows"
    ):
        load_task("p", spec, base)


def test_numbers_with_a_decimal_comma(write: Write) -> None:
    """Refused with what to say; read when it is said; a point is then refused."""
    base = write("r.csv", reviews(100).replace(",", ";").replace(".", ",")).parent
    spec = {"objective": "regression", "train": "r.csv", "text": "body", "label": "price", "delimiter": ";"}
    with pytest.raises(SidequestError, match=r"found '0,0' \(100 such rows\)\. `decimal: ','` reads numbers"):
        load_task("r", spec, base)
    task = load_task("r", spec | {"decimal": ","}, base)
    assert task.train.target.tolist() == [i / 10 for i in task.train.ids]
    (base / "r.csv").write_text((base / "r.csv").read_text().replace("0,3", "0.3"))
    with pytest.raises(
        SidequestError, match=r"found '0\.3' \(1 such rows\)\. With `decimal: ','` a number has no point"
    ):
        load_task("r", spec | {"decimal": ","}, base)
    with pytest.raises(SidequestError, match="`decimal:` means nothing for a classification task"):
        load_task("r", spec | {"decimal": ",", "objective": "classification"}, base)
