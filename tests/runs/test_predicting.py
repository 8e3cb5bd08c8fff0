"""Predictions of a user's file: in its order, with what the user asked for, scored where there are labels."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sidequest.errors import SidequestError
from sidequest.model_settings import HfSettings
from sidequest.models import family as make_family
from sidequest.runs.predicting import as_bytes, as_csv, check_format, predict_file
from sidequest.tasks import load_task
from sidequest.tasks.suite import Suite
from tests.helpers.sample_models import stir

WORDS = ("the", "cat", "dog", "on", "a", "mat", "tree", "good", "bad")


def text(i: int) -> str:
    return " ".join(WORDS[(i * k) % 9] for k in range(2, 2 + 1 + i % 7))


def exported(task, encoder: Path, directory: Path) -> Path:
    family = make_family(Suite.of(task), HfSettings(encoder=str(encoder)))
    family.export(stir(family.build(0)), task, directory)
    return directory


def classifier(tmp_path: Path, encoder: Path, **spec) -> Path:
    rows = [f'"{text(i)}",{("bad", "good")[i % 2]},k{i}' for i in range(30)]
    (tmp_path / "train.csv").write_text("\n".join(["body,stars,key", *rows]))
    wanted = {"objective": "classification", "train": "train.csv", "text": "body", "label": "stars", **spec}
    return exported(load_task("mood", wanted, tmp_path), encoder, tmp_path / "model")


def parsed(content: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(content)))


def test_rows_keep_their_order_number_and_inputs(encoders, tmp_path):
    model = classifier(tmp_path, encoders())
    predicted = predict_file([model], tmp_path / "train.csv")
    columns = predicted.columns()
    assert list(columns) == ["id", "body", "label"]
    assert columns["body"] == [text(i) for i in range(30)]
    assert set(predicted.scores) == {"accuracy"}
    truth = [("bad", "good")[i % 2] for i in range(30)]
    assert predicted.scores["accuracy"] == np.mean([a == b for a, b in zip(columns["label"], truth, strict=True)])
    rows = parsed(as_csv(predicted.columns(probabilities=True, inputs=False, keep=["key", "stars"])))
    assert list(rows[0]) == ["id", "key", "stars", "label", "probability_bad", "probability_good"]
    assert rows[7]["key"] == "k7"
    for row in rows:
        assert float(row["probability_bad"]) + float(row["probability_good"]) == pytest.approx(1, abs=1e-5)
        assert float(row[f"probability_{row['label']}"]) >= 0.5
    assert predict_file([tmp_path], tmp_path / "train.csv").columns() == columns  # the directory of the run will do
    with pytest.raises(SidequestError, match=r"--keep kee: .*train\.csv has no such column. Did you mean 'key'\?"):
        predicted.columns(keep=["kee"])


def test_rows_with_labels_are_scored_and_others_only_predicted(encoders, tmp_path):
    model = classifier(tmp_path, encoders(), labels={"bad": "negative", "good": "positive"})
    (tmp_path / "some.csv").write_text("body,stars\nthe cat,good\na dog,\nthe mat,bad\n")
    predicted = predict_file([model], tmp_path / "some.csv")
    assert predicted.rows.labelled.tolist() == [0, 2]
    said = predicted.columns()["label"]
    assert predicted.scores["accuracy"] == np.mean([said[0] == "positive", said[2] == "negative"])
    (tmp_path / "none.csv").write_text("body\nthe cat\n")
    assert predict_file([model], tmp_path / "none.csv").scores is None
    (tmp_path / "odd.csv").write_text("body,stars\nthe cat,godo\n")
    odd = predict_file([model], tmp_path / "odd.csv")
    assert odd.scores is None
    assert (
        "odd.csv, line 2: the label 'godo' is not among the model's labels (1 times). Did you mean 'good'?"
        in odd.rows.unscored
    )
    (tmp_path / "other.csv").write_text("bodie,stars\nthe cat,good\n")
    with pytest.raises(SidequestError, match="there is no column 'body'"):
        predict_file([model], tmp_path / "other.csv")


def test_rows_that_are_not_read_whole_are_counted(encoders, tmp_path):
    model = classifier(tmp_path, encoders())
    assert predict_file([model], tmp_path / "train.csv").cut == 0
    (tmp_path / "long.csv").write_text("body\nthe cat\n" + "the cat " * 100 + "\n")
    assert predict_file([model], tmp_path / "long.csv").cut == 1


def test_a_name_that_is_taken_is_told_apart(encoders, tmp_path):
    rows = [json.dumps({"label": text(i), "y": i % 2}) for i in range(30)]
    (tmp_path / "t.jsonl").write_text("\n".join(rows))
    spec = {"objective": "classification", "train": "t.jsonl", "text": "label", "label": "y"}
    model = exported(load_task("t", spec, tmp_path), encoders(), tmp_path / "m")
    columns = predict_file([model], tmp_path / "t.jsonl").columns()
    assert list(columns) == ["id", "label", "predicted_label"]
    assert set(columns["predicted_label"]) <= {"0", "1"}


def test_tags_and_their_probabilities_in_every_format(encoders, tmp_path):
    sentences = [text(i).split() for i in range(20)]
    lines = ["\n".join(f"{word} {'I-X' if len(word) > 3 else 'O'}" for word in words) for words in sentences]
    (tmp_path / "t.conll").write_text("\n\n".join(lines) + "\n")
    model = exported(load_task("t", {"objective": "tagging", "train": "t.conll"}, tmp_path), encoders(), tmp_path / "m")
    predicted = predict_file([model], tmp_path / "t.conll")
    assert set(predicted.scores) == {"span_f1", "token_accuracy"}  # IOB1 in the file is IOB2 in the model
    columns = predicted.columns(probabilities=True)
    assert columns["tokens"] == sentences
    row = parsed(as_csv(columns))[3]
    tags = row["tags"].split()
    assert len(tags) == len(row["tokens"].split()) == len(sentences[3])
    for number, tag in enumerate(tags):
        shares = {name: float(row[f"probability_{name}"].split()[number]) for name in ("B-X", "I-X", "O")}
        assert max(shares, key=shares.get) == tag
    table = pq.read_table(pa.BufferReader(as_bytes(columns, ".parquet")))
    assert table["tags"].to_pylist() == columns["tags"]
    jsonl = as_bytes(columns, ".jsonl").decode().splitlines()
    assert json.loads(jsonl[3])["probabilities"][0].keys() == {"B-X", "I-X", "O"}
    # A file of words alone has one column: the last one is no tag.
    (tmp_path / "words.conll").write_text("the\ncat\n")
    assert predict_file([model], tmp_path / "words.conll").rows.unscored == ""


def test_choices_have_a_number_and_the_name_that_files_give_them(encoders, tmp_path):
    rows = [{"q": "the cat", "a": "on", "b": text(i), "y": "AB"[i % 2]} for i in range(20)]
    (tmp_path / "c.jsonl").write_text("\n".join(map(json.dumps, rows)))
    spec = {"objective": "multiple-choice", "text": "q", "choices": ["a", "b"], "label": "y", "labels": ["A", "B"]}
    model = exported(load_task("c", spec | {"train": "c.jsonl"}, tmp_path), encoders(), tmp_path / "m")
    predicted = predict_file([model], tmp_path / "c.jsonl")
    columns = predicted.columns(probabilities=True)
    assert list(columns) == ["id", "q", "choices", "choice", "label", "probabilities"]
    assert columns["label"] == ["AB"[i] for i in columns["choice"]]
    assert set(predicted.scores) == {"accuracy"}
    assert list(parsed(as_csv(columns))[0])[-2:] == ["probability_0", "probability_1"]


def test_numbers_and_the_end_of_a_file(encoders, tmp_path):
    (tmp_path / "n.csv").write_text("\n".join(["text,y", *(f"{text(i)},{i / 3}" for i in range(20))]))
    spec = {"objective": "regression", "train": "n.csv", "text": "text", "label": "y"}
    model = exported(load_task("n", spec, tmp_path), encoders(), tmp_path / "m")
    predicted = predict_file([model], tmp_path / "n.csv")
    assert set(predicted.scores) == {"pearson", "spearman", "r2"}
    content = as_csv(predicted.columns(probabilities=True))
    assert content.startswith("id,text,value\n0,")
    assert content.endswith("\n")
    assert len(content.splitlines()) == 21
    assert float(parsed(content)[4]["value"]) == predicted.predictions.values[4]


def test_an_unknown_suffix_is_told_before_any_work():
    with pytest.raises(
        SidequestError, match=r"said\.xlsx: predictions are written as \.csv, \.jsonl, \.parquet, found '\.xlsx'"
    ):
        check_format(Path("said.xlsx"))
    assert check_format(None) == ".csv"
