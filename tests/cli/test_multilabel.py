"""Several labels per row, the whole way: from a user's files by init, check, select, train and predict to scored predictions."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

pytestmark = pytest.mark.integration
WORDS = [f"w{i}" for i in range(40)]
TOPICS = {"art": ("w1", "w2", "w3"), "sport": ("w11", "w12", "w13"), "war": ("w21", "w22", "w23")}
FILLERS = [word for word in WORDS if not any(word in words for words in TOPICS.values())]


def rows(seed: int, count: int) -> list[tuple[str, list[str]]]:
    """Texts of random words, and the topics whose words occur in them."""
    rng = np.random.default_rng(seed)
    out = []
    for _ in range(count):
        topics = [topic for topic in TOPICS if rng.random() < 0.45] or ["art"]
        words = [*rng.choice(FILLERS, 4), *(str(rng.choice(TOPICS[topic])) for topic in topics for _ in range(2))]
        out.append((" ".join(rng.permutation(words)), topics))
    return out


def write_lists(path: Path, content: list[tuple[str, list[str]]]) -> Path:
    path.write_text("".join(json.dumps({"body": text, "topics": topics}) + "\n" for text, topics in content))
    return path


def write_columns(path: Path, content: list[tuple[str, list[str]]]) -> Path:
    lines = [f"{text},{','.join(str(int(topic in topics)) for topic in TOPICS)}" for text, topics in content]
    path.write_text("\n".join([f"body,{','.join(TOPICS)}", *lines]) + "\n")
    return path


def trained(run, suite: Path, out: Path, encoder: Path, *options: str) -> dict[str, float]:
    settings = ["--set", "train.epochs=30", "--set", "train.patience=null", "--set", "train.learning_rate=0.003"]
    code, _, errors = run("select", suite, "-m", "all", "-o", out, "--model", "pooled", "--encoder", encoder, *settings)
    assert code == 0, errors
    code, text, errors = run("train", out, *options)
    assert code == 0, errors
    assert ("calibrated on select: temperature" in text) == ("--calibrate" in options)
    return json.loads((out / "scores.json").read_text())


def test_lists_from_init_to_predict(run, encoder, tmp_path):
    train = write_lists(tmp_path / "news_train.jsonl", rows(0, 300))
    test = write_lists(tmp_path / "news_test.jsonl", rows(1, 60))
    other = write_lists(tmp_path / "blog.jsonl", rows(2, 200))
    suite, out = tmp_path / "suite.yaml", tmp_path / "run"
    code, _, errors = run("init", train, test, other, "--primary", "news", "-o", suite)
    assert code == 0, errors
    assert suite.read_text().count("objective: multi-label") == 2
    code, text, errors = run("check", suite)
    assert code == 0, errors
    assert "art" in text
    scores = trained(run, suite, out, encoder, "--calibrate")
    assert scores["report"]["micro_f1"] > scores["majority"] + 0.1
    assert "micro_f1" in (out / "report.html").read_text()
    card = json.loads((out / "model" / "sidequest.json").read_text())
    assert card["calibration"]["temperature"] > 0
    assert card["task"]["objective"] == "multi-label"

    code, text, errors = run("predict", out / "model", test, "-o", tmp_path / "said.jsonl", "--probabilities")
    assert code == 0, errors
    said = [json.loads(line) for line in (tmp_path / "said.jsonl").read_text().splitlines()]
    assert f"micro_f1 {scores['report']['micro_f1']:.4f}" in text
    assert "all rows have labels" in text
    assert [row["id"] for row in said] == list(range(60))
    assert [row["body"] for row in said] == [text for text, _ in rows(1, 60)]
    for row in said:
        assert row["labels"] == [topic for topic in TOPICS if row["probabilities"][topic] > 0.5]
    right = np.mean([row["labels"] == topics for row, (_, topics) in zip(said, rows(1, 60), strict=True)])
    assert right == pytest.approx(scores["report"]["subset_accuracy"])

    code, text, _ = run("predict", out / "model", test, "-o", tmp_path / "said.csv", "--no-inputs", "--keep", "topics")
    assert code == 0
    content = (tmp_path / "said.csv").read_text()
    assert content.endswith("\n")
    assert not content.endswith("\n\n")
    with (tmp_path / "said.csv").open(newline="") as file:
        first = next(csv.DictReader(file))
    assert first == {"id": "0", "topics": ";".join(rows(1, 60)[0][1]), "labels": ";".join(said[0]["labels"])}
    code, text, _ = run("predict", out / "model", test, "-o", tmp_path / "said.parquet", "--json")
    assert code == 0
    assert json.loads(text)["scores"] == pytest.approx(scores["report"])
    assert pq.read_table(tmp_path / "said.parquet")["labels"].to_pylist() == [row["labels"] for row in said]

    # Without labels, and with a label that the model does not know: predicted all the same.
    (tmp_path / "new.jsonl").write_text('{"body": "w1 w2 w30"}\n')
    code, text, errors = run("predict", out / "model", tmp_path / "new.jsonl")
    assert code == 0
    assert text.startswith("id,body,labels\n0,w1 w2 w30,")
    assert errors == ""
    write_lists(tmp_path / "odd.jsonl", [("w1 w2", ["art", "wars"])])
    code, text, errors = run("predict", out / "model", tmp_path / "odd.jsonl")
    assert code == 0
    assert "not scored" in errors
    assert "line 1: the label 'wars' is not among the model's labels (1 times). Did you mean 'war'?" in errors


def test_zero_one_columns_come_back_as_such(run, encoder, tmp_path):
    train = write_columns(tmp_path / "news_train.csv", rows(0, 200))
    test = write_columns(tmp_path / "news_test.csv", rows(1, 40))
    suite = tmp_path / "suite.yaml"
    code, _, errors = run("init", train, test, "--primary", "news", "-o", suite)
    assert code == 0, errors
    scores = trained(run, suite, tmp_path / "run", encoder)
    code, _, errors = run("predict", tmp_path / "run" / "model", test, "-o", tmp_path / "said.csv")
    assert code == 0, errors
    with (tmp_path / "said.csv").open(newline="") as file:
        said = list(csv.DictReader(file))
    assert list(said[0]) == ["id", "body", *TOPICS]
    right = np.mean(
        [
            all(row[t] == str(int(t in topics)) for t in TOPICS)
            for row, (_, topics) in zip(said, rows(1, 40), strict=True)
        ]
    )
    assert right == pytest.approx(scores["report"]["subset_accuracy"])
    broken = test.read_text().replace(",1\n", ",2\n", 1)
    test.write_text(broken)
    code, text, errors = run("check", suite)
    assert code == 2
    assert "column 'war' must be 0 or 1, found '2'" in errors + text
