"""`sidequest show`: the right rows in the right groups, and nothing in a text can reach the terminal."""

import json
import sys

import numpy as np
import pyarrow as pa
import pytest

from sidequest.cli import main
from sidequest.cli.show import plain
from sidequest.errors import RunMismatch
from sidequest.recipe import Phase, Recipe, Subset
from sidequest.runs.showing import examples_of
from sidequest.tasks.examples import Examples
from sidequest.tasks.suite import Suite
from sidequest.tasks.task import Form, Objective, Task

NASTY = "[bold red]not markup[/] \x1b[31mnot red\x1b[0m\nsecond line \u202ereversed"


def text_task(name, rows=10):
    texts = pa.array([NASTY if i == 3 else f"{name} text {i}" for i in range(rows)])
    train = Examples({"text": texts}, np.arange(rows) % 2, 100 + np.arange(rows))
    return Task(name, Objective.CLASSIFICATION, Form.TEXT, {"train": train}, ("no", "yes"))


@pytest.fixture
def suite():
    tagged = Examples(
        {"tokens": pa.array([["a", "b"], ["c"]])}, pa.array([[0, 1], [1]], pa.list_(pa.int64())), np.arange(2)
    )
    pair = Examples({"text": pa.array(["x", "y"]), "text_b": pa.array(["", "w"])}, np.array([0.5, 2.0]), np.arange(2))
    choice = Examples({"choices": pa.array([["l", "r"], ["u"]])}, np.array([1, 0]), np.arange(2))
    return Suite.of(
        text_task("main"),
        [
            text_task("aux"),
            Task("tags", Objective.TAGGING, Form.TOKENS, {"train": tagged}, ("O", "B")),
            Task("pair", Objective.REGRESSION, Form.PAIR, {"train": pair}),
            Task("choice", Objective.CHOICE, Form.CHOICES, {"train": choice}),
        ],
    )


def recipe_of(evidence=None, **subsets):
    phase = Phase(
        order="shuffle",
        shares={"main": 1.0, **dict.fromkeys(subsets, 1.0)},
        subsets={name: Subset(ids=tuple(ids)) for name, ids in subsets.items() if ids},
    )
    return Recipe(method="any", primary="main", phases=(phase, Phase(shares={"main": 1})), evidence=evidence or {})


def test_rows_taken_and_not_taken_of_a_subset(suite):
    main_task, aux = examples_of(suite, recipe_of(aux=[101, 103, 105, 107]), 2)
    assert (main_task.name, main_task.primary, main_task.taken, main_task.rows) == ("main", True, 10, 10)
    assert [group.title for group in main_task.groups] == ["examples"]
    assert [group.title for group in aux.groups] == ["taken", "not taken"]
    assert [row.id for row in aux.groups[0].rows] == [101, 107]
    assert [row.id for row in aux.groups[1].rows] == [100, 109]
    assert [row.taken for group in aux.groups for row in group.rows] == [True, True, False, False]
    assert aux.groups[0].rows[0].texts == {"text": "aux text 1"}
    assert aux.groups[0].rows[0].target == "yes"
    assert aux.taken == 4


def test_a_ranking_decides_what_is_shown_also_of_tasks_that_gave_no_row(suite):
    ranked = {
        "aux": {"best": [[104, 2.0], [102, 1.5]], "worst": [[109, -3.0], [108, -2.0]]},
        "pair": {"best": [[1, -5.0]], "worst": [[0, -6.0]]},
    }
    _, aux, pair = examples_of(suite, recipe_of({"ranked": ranked}, aux=[104]), 1)
    assert [group.title for group in aux.groups] == ["best ranked", "worst ranked"]
    assert [(row.id, row.score, row.taken) for group in aux.groups for row in group.rows] == [
        (104, 2.0, True),
        (109, -3.0, False),
    ]
    assert (pair.taken, pair.groups[0].rows[0].texts, pair.groups[0].rows[0].target) == (
        0,
        {"text": "y", "text_b": "w"},
        "2",
    )


def test_every_form_has_texts_and_a_target(suite):
    shown = {task.name: task for task in examples_of(suite, recipe_of(tags=[], pair=[], choice=[]), 5)}
    first = {name: task.groups[0].rows[0] for name, task in shown.items()}
    assert (first["tags"].texts, first["tags"].target) == ({"tokens": "a b"}, "O B")
    assert (first["choice"].texts, first["choice"].target) == ({"choices": "l | r"}, "1")
    assert (first["pair"].texts["text_b"], first["pair"].target) == ("", "0.5")
    assert json.loads(json.dumps([task.to_json() for task in shown.values()]))


def test_another_suite_or_other_rows_are_refused_in_words(suite):
    with pytest.raises(RunMismatch, match="'elsewhere', which the suite lacks"):
        examples_of(suite, recipe_of(elsewhere=[1]), 1)
    with pytest.raises(RunMismatch, match=r"task .aux..*lacks"):
        examples_of(suite, recipe_of({"ranked": {"aux": {"best": [[7, 1.0]], "worst": []}}}), 1)


def test_a_line_is_one_line_of_printable_characters():
    shown = plain(NASTY)
    assert shown.isprintable()
    assert "\\x1b[31mnot red" in shown
    assert "[bold red]not markup[/]" in shown
    assert "\\u202e" in shown


@pytest.fixture
def written(tmp_path):
    """A suite file with a run's recipe beside it."""
    lines = [NASTY if i == 3 else f"sentence {i}" for i in range(12)]
    for name in ("main", "aux"):
        rows = [json.dumps({"text": text, "label": "ab"[i % 2]}) for i, text in enumerate(lines)]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(rows), encoding="utf-8")
    settings = "report: {0}.jsonl\n    objective: classification\n    text: text\n    label: label\n"
    entries = "".join(f"  {name}:\n    train: {name}.jsonl\n    {settings.format(name)}" for name in ("main", "aux"))
    (tmp_path / "suite.yaml").write_text(f"primary: main\ntasks:\n{entries}", encoding="utf-8")
    ranked = {"aux": {"best": [[3, 1.25]], "worst": [[0, -1.0]]}}
    recipe_of({"ranked": ranked, "notes": ["a\x07note"]}, aux=[3]).write(tmp_path / "recipe.json")
    return tmp_path


def call(monkeypatch, capsys, *arguments):
    monkeypatch.setattr(sys, "argv", ["sidequest", *map(str, arguments)])
    with pytest.raises(SystemExit) as caught:
        main()
    captured = capsys.readouterr()
    return int(caught.value.code or 0), captured.out, captured.err


def test_the_command_prints_rows_cut_and_escaped(written, monkeypatch, capsys):
    arguments = ("show", written / "recipe.json", "--suite", written / "suite.yaml", "--width", 40)
    code, out, err = call(monkeypatch, capsys, *arguments)
    assert code == 0, err
    assert "\x1b" not in out
    assert "\x07" not in out
    assert "* +1.250 [b] [bold red]not markup[/]" in out
    line = next(line for line in out.splitlines() if "not markup" in line)
    assert "…" in line
    code, out, _ = call(monkeypatch, capsys, *arguments, "--json")
    aux = json.loads(out)[1]
    assert code == 0
    assert aux["groups"][0]["rows"][0]["texts"]["text"] == NASTY


def test_the_command_says_what_is_missing(written, monkeypatch, capsys):
    code, _, err = call(monkeypatch, capsys, "show", written / "recipe.json")
    assert code == 2
    assert "give --suite" in err
