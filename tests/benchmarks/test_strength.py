"""The benchmark that judges sidequest's `single` by plain alternatives: its arithmetic, its journal and its alternatives."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sidequest.tasks.memory import make_task
from sidequest.tasks.task import Task

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(autouse=True)
def benchmarks_can_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))


def cell(contender: str, seed: int, score: float, select: float | None = None, primary: str = "p"):
    from strength_parts.journal import Cell

    rows = {"train": 3, "select": 1, "report": 5}
    return Cell(
        f"{primary}{contender}{seed}", primary, contender, seed, "accuracy", score, {}, select, rows, 1.0, "", ""
    )


def judged(ours: list[float], other: list[float]):
    from strength_parts.table import entries, verdicts

    cells = [cell("pooled", seed, score, 0.5) for seed, score in enumerate(ours)]
    cells += [cell("probe", seed, score) for seed, score in enumerate(other)]
    return verdicts(entries(cells), ["pooled"], ["probe"])[0]


def test_a_verdict_is_the_paired_difference_and_its_standard_error() -> None:
    ours, other = np.array([0.70, 0.72, 0.65]), np.array([0.71, 0.75, 0.67])
    verdict = judged(ours.tolist(), other.tolist())
    assert verdict.difference == pytest.approx((ours - other).mean())
    assert verdict.standard_error == pytest.approx((ours - other).std(ddof=1) / math.sqrt(3))
    assert verdict.below


def test_below_means_by_more_than_one_standard_error() -> None:
    assert not judged([0.70, 0.80, 0.60], [0.72, 0.75, 0.66]).below  # -0.01 with an error of 0.033
    assert judged([0.70, 0.70, 0.70], [0.71, 0.72, 0.71]).below
    assert not judged([0.71, 0.72, 0.71], [0.70, 0.70, 0.70]).below
    assert judged([0.70], [0.71]).below, "one seed has no standard error to hide behind"


def test_the_kind_is_chosen_on_select_and_the_alternative_on_report() -> None:
    from strength_parts.table import entries, verdicts

    cells = [cell("pooled", 0, score=0.2, select=0.9), cell("hf", 0, score=0.8, select=0.3)]
    cells += [cell("probe", 0, 0.5), cell("cosine", 0, 0.6)]
    verdict = verdicts(entries(cells), ["pooled", "hf"], ["cosine", "probe"], "select")[0]
    assert (verdict.ours.contender, verdict.best.contender) == ("pooled", "cosine")
    swapped = [replace(each, select=None if each.select is None else 1.2 - each.select) for each in cells]
    assert verdicts(entries(swapped), ["pooled", "hf"], ["cosine", "probe"], "select")[0].ours.contender == "hf"


def test_the_advised_kind_is_the_first_that_fits_whatever_select_and_report_say() -> None:
    from strength_parts.table import Kinds, entries, markdown, verdicts

    cells = [cell("pooled", 0, 0.2, select=0.1), cell("hf", 0, 0.8, select=0.9), cell("probe", 0, 0.5)]
    cells += [
        cell("bilstm", 0, 0.3, 0.1, "tags"),
        cell("hf", 0, 0.9, 0.9, "tags"),
        cell("probe", 0, 0.5, primary="tags"),
    ]
    cells += [cell("final-pooled", 0, 0.7), cell("final-hf", 0, 0.1)]
    table, own = entries(cells), ["pooled", "bilstm", "hf"]
    assert [each.ours.contender for each in verdicts(table, own, ["probe"])] == ["pooled", "bilstm"]
    assert [each.ours.contender for each in verdicts(table, own, ["probe"], "select")] == ["hf", "hf"]
    kinds = Kinds(own, [], ["final-pooled", "final-hf"], ["final-tuned-pooled"], ["probe"], ["train-probe"])
    shown = markdown(table, kinds)
    assert "| p | final-pooled | 0.700 | probe | 0.500 | +0.200 ± nan | not below |" in shown
    assert "tuned" not in shown, "a table without any cell is not shown"


def test_the_overall_means_are_over_primaries_that_have_both_sides() -> None:
    from strength_parts.table import entries, overall

    cells = [cell("pooled", 0, 0.6, 0.5), cell("probe", 0, 0.5), cell("cosine", 0, 0.3)]
    cells += [
        cell("pooled", 0, 0.8, 0.5, "q"),
        cell("probe", 0, 0.9, primary="q"),
        cell("probe", 0, 0.1, primary="alone"),
    ]
    means = overall(entries(cells), ["pooled"], ["cosine", "probe"])
    assert means == pytest.approx(
        {"sidequest": 0.7, "mean of the alternatives": (0.4 + 0.9) / 2, "best alternative": (0.5 + 0.9) / 2}
    )


def test_an_alternative_from_train_alone_does_not_see_the_rows_of_select() -> None:
    from strength_parts.contenders import ALTERNATIVES, TRAIN_ONLY

    digits = make_digits()
    turned = {**digits.splits, "select": replace(digits.splits["select"], target=digits.splits["select"].target[::-1])}
    named = {each.name: each for each in (*ALTERNATIVES, *TRAIN_ONLY)}
    for name, sees in (("svm", True), ("train-svm", False)):
        scores = [named[name].run(task, 0).report for task in (digits, replace(digits, splits=turned))]
        assert (scores[0] != scores[1]) is sees


def test_both_sides_of_a_verdict_learn_from_the_same_rows() -> None:
    from strength_parts.contenders import ALTERNATIVES, KINDS, TRAIN_ONLY

    sections = KINDS.sections()
    assert [*sections["verdicts"].others] == [each.name for each in TRAIN_ONLY]
    assert [*sections["final_verdicts"].others] == [each.name for each in ALTERNATIVES]
    assert all(name.startswith("final-") for name in sections["final_verdicts"].own)


def make_digits() -> Task:
    from strength_parts.primaries import SMALL

    return SMALL[0].load(0, Path())


def words_task(**changes: list) -> Task:
    texts = [f"it is number {i}" for i in range(16)]
    rows = {"text": texts, "label": [i % 2 for i in range(16)]} | changes
    return make_task("words", "classification", rows, report={"text": texts[:4], "label": [0, 1, 0, 1]}, primary=True)


def test_a_cell_is_known_by_the_content_of_its_rows_and_by_its_settings() -> None:
    from strength_parts.journal import cell_key
    from strength_parts.primaries import content

    rows = content(words_task())
    renumbered = words_task()
    moved = {split: replace(part, ids=part.ids + 1000) for split, part in renumbered.splits.items()}
    key = cell_key("probe", {"version": 1}, rows, 0)
    assert key == cell_key("probe", {"version": 1}, content(replace(renumbered, splits=moved)), 0)
    other_label = content(words_task(label=[1 - i % 2 for i in range(16)]))
    others = [("svm", {"version": 1}, rows, 0), ("probe", {"version": 2}, rows, 0), ("probe", {"version": 1}, rows, 1)]
    assert key not in {cell_key(*other) for other in [*others, ("probe", {"version": 1}, other_label, 0)]}


def test_a_second_run_computes_only_what_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import strength

    journal, output = tmp_path / "cells.jsonl", tmp_path / "table.md"
    arguments = ["--small", "--only", "small-digits", "--journal", str(journal), "--output", str(output)]
    assert strength.main([*arguments, "--contenders", "probe,svm", "--seeds", "1"]) == 0
    first = journal.read_text()
    with journal.open("a") as file:
        file.write('{"key": "half a li')  # a process was killed here
        file.write("\n")
    capsys.readouterr()
    assert strength.main([*arguments, "--contenders", "probe,svm,convnet", "--seeds", "1"]) == 0
    lines = journal.read_text().splitlines()
    assert journal.read_text().startswith(first)
    assert [json.loads(line)["contender"] for line in lines if line.endswith("}")] == ["probe", "svm", "convnet"]
    numbers = json.loads(output.with_suffix(".json").read_text())
    assert set(numbers["scores"]["small-digits"]) == {"probe", "svm", "convnet"}
    assert numbers["more_rows_verdicts"][0]["kind"] == "convnet"
    assert numbers["verdicts"] == [], "no alternative has learned from train alone"
    assert "| small-digits | 45 + 15 / 200 | accuracy |" in output.read_text()
    assert strength.main([*arguments, "--contenders", "svm", "--list", "--seeds", "2"]) == 0
    listed = capsys.readouterr().out
    assert "seed 1  missing" in listed
    assert "seed 0  missing" not in listed


def test_a_table_keeps_its_cells_when_the_journal_is_lost(tmp_path: Path) -> None:
    import strength
    from strength_parts.journal import Journal

    output = tmp_path / "table.md"

    def written(journal: str, *cells) -> dict:
        for each in cells:
            Journal(tmp_path / journal).add(each)
        arguments = ["--small", "--known", "--journal", str(tmp_path / journal), "--output", str(output)]
        assert strength.main(arguments) == 0
        return json.loads(output.with_suffix(".json").read_text())["scores"]["small-digits"]

    written("first", cell("convnet", 0, 0.7, 0.6, "small-digits"), cell("svm", 0, 0.5, primary="small-digits"))
    later = written("second", cell("svm", 0, 0.8, primary="small-digits"), cell("svm", 1, 0.9, primary="small-digits"))
    assert later["convnet"]["scores"] == {"0": 0.7}
    assert later["svm"]["scores"] == {"0": 0.8, "1": 0.9}, "what was computed last counts"


def test_an_unknown_name_is_refused_and_absent_files_are_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import strength

    assert strength.main(["--only", "stbs", "--data", str(tmp_path)]) == 2
    assert "stsb" in capsys.readouterr().err
    journal = str(tmp_path / "cells.jsonl")
    assert strength.main(["--only", "stsb", "--data", str(tmp_path), "--journal", journal]) == 0
    assert "stsb: left out" in capsys.readouterr().out


def test_there_are_twelve_primaries_of_every_form_and_their_sizes_are_those_of_the_table(shared_data: Path) -> None:
    from strength_parts.primaries import PRIMARIES, available

    there = [primary for primary in PRIMARIES if available(primary, shared_data)]
    assert len(there) >= 12
    one = next(primary for primary in there if primary.name == "stsb")
    tasks = [one.load(seed, shared_data) for seed in (0, 1)]
    sizes = [{split: len(rows) for split, rows in task.splits.items()} for task in tasks]
    assert sizes == [{"train": 300, "select": 100, "report": 500}] * 2
    assert tasks[0].splits["report"].fingerprint() == tasks[1].splits["report"].fingerprint()
    assert tasks[0].train.fingerprint() != tasks[1].train.fingerprint()


@pytest.mark.parametrize("flipped", [False, True])
def test_the_threshold_of_the_cosine_is_the_best_there_is(monkeypatch: pytest.MonkeyPatch, flipped: bool) -> None:
    from strength_parts import plain

    rng = np.random.default_rng(0)
    texts = [f"{value:.6f}" for value in rng.normal(size=40)]
    label = [int((float(text) + rng.normal() > 0.3) ^ flipped) for text in texts]
    report = {"text": texts, "text_b": texts, "label": label}
    task = make_task("pairs", "classification", report, report=report, primary=True)
    rows = task.train
    monkeypatch.setattr(
        plain, "text_features", lambda task, rows: np.array([[float(t)] for t in rows.columns["text"].to_pylist()])
    )
    value, target = plain.text_features(task, rows)[:, 0], np.asarray(rows.target)
    cuts = [-np.inf, *value]
    best = max(max(((value > cut) == target).mean(), ((value <= cut) == target).mean()) for cut in cuts)
    task = replace(task, splits={**task.splits, "report": rows})
    assert (plain.cosine(task, rows, 0) == target).mean() == pytest.approx(best)


OTHERS = ("regression", "pair", "choices")
GOOD, BAD = ("good", "great", "fine", "lovely"), ("bad", "awful", "poor", "nasty")


def sentiment(form: str) -> Task:
    """Rows whose answer is in one word, in every form that the plain loop takes."""
    words = [w for pair in zip(GOOD, BAD, strict=True) for w in pair] * 2
    label = [int(word in GOOD) for word in words]
    texts = [f"a {word} film" for word in words]
    rows: dict[str, list] = {"text": texts, "label": label}
    objective = "classification"
    if form == "regression":
        objective, rows["label"] = "regression", [float(each) for each in label]
    elif form == "pair":
        rows["text_b"] = ["it was good"] * len(texts)
    elif form == "choices":
        objective = "multiple-choice"
        rows = {
            "text": ["praise"] * 16,
            "choices": [[f"a {w} film", "a film"] for w in words],
            "label": [1 - x for x in label],
        }
    elif form == "tagging":
        objective = "tagging"
        rows = {"tokens": [["a", word, "unwatchable"] for word in words], "tags": [["O", str(x), "O"] for x in label]}
    return make_task("film", objective, rows, report=rows, primary=True)


@pytest.mark.parametrize("form", ["text", *(pytest.param(f, marks=pytest.mark.slow) for f in ("tagging", *OTHERS))])
def test_the_plain_loop_learns_what_it_is_shown(form: str) -> None:
    from strength_parts.finetuned import FineTuning

    from sidequest.tasks.metrics import compute

    task = sentiment(form)
    scores = []
    for epochs, rate in ((1, 1e-7), (8, 3e-4)):
        predicted = FineTuning(epochs, rate)(task, task.train, seed=0)
        scores.append(compute(task.metric, predicted, task.splits["report"].target, task.labels))
    assert scores[1] > 0.9
    assert scores[1] > scores[0], "an untrained model does not know it"


@pytest.mark.parametrize("form", ["text", "tagging", *OTHERS])
def test_the_probe_learns_what_it_is_shown(form: str) -> None:
    from strength_parts import plain

    from sidequest.tasks.metrics import compute

    task = sentiment(form)
    assert compute(task.metric, plain.probe(task, task.train, 0), task.splits["report"].target, task.labels) > 0.9
