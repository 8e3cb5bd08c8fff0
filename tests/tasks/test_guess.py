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
            "kind": "sentiment",
        },
        "prices": {
            "objective": "regression",
            "train": "sub/prices.jsonl",
            "text": "text",
            "label": "price",
            "metric": ["pearson", "spearman"],
            "kind": "regression",
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
        "kind": "inference",
    }
    assert "  test.tsv has no labels and is not used" in notes


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
    assert any("odd: left out" in note and "column 'y' has 30 labels in 30 rows" in note for note in notes)
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


# ---- headers of public files, and what they mean ---------------------------------------------------------------------------

SENTENCE = [
    "river",
    "stone",
    "bridge",
    "cold",
    "bright",
    "morning",
    "light",
    "march",
    "old",
    "under",
    "we",
    "saw",
    "them",
]


def sentence(i: int, words: int = 9) -> str:
    return " ".join(SENTENCE[(i * 7 + k * k) % len(SENTENCE)] for k in range(words)) + f" {i}"


def marks(i: int, k: int) -> int:
    return int((i * (k + 3)) % 7 == 0)


TOXIC = ["toxic", "severe_toxic", "obscene", "threat", "insult", "identity_hate"]
HEADERS: dict[str, tuple[str, Callable[[int], list[Any]], dict[str, Any]]] = {
    "0/1 columns are the labels of one task": (
        "id,comment_text," + ",".join(TOXIC),
        lambda i: [f"c{i}", sentence(i), *(marks(i, k) for k in range(6))],
        {"objective": "multi-label", "text": "comment_text", "labels": TOXIC, "kind": "toxicity"},
    ),
    "confidences, reasons that are mostly empty and places are not the label": (
        "tweet_id,airline_sentiment,airline_sentiment_confidence,negativereason,airline,gold,retweet_count,text,tweet_created",
        lambda i: [
            *(
                10**15 + i,
                ("neutral", "positive", "negative")[i % 3],
                i / 200,
                "Late" if i % 3 == 2 else "",
                "ABC"[i % 3],
            ),
            *("", i % 5, sentence(i), f"2015-02-{1 + i % 28:02} 11:35:52"),
        ],
        {"text": "text", "label": "airline_sentiment", "kind": "sentiment", "unlabelled": None},
    ),
    "counts of votes are not classes": (
        ",count,hate_speech,offensive_language,neither,class,tweet",
        lambda i: [i, 3 + i % 6, i % 4, i % 5, i % 3, i % 3, sentence(i)],
        {"text": "tweet", "label": "class"},
    ),
    "a summary and a text are a pair": (
        "Id,ProductId,HelpfulnessNumerator,Score,Time,Summary,Text",
        lambda i: [i, f"B{i % 50}", i % 4, 1 + i % 5, 1303862400 + i, sentence(i, 3), sentence(i, 20)],
        {"text": "Summary", "text_b": "Text", "label": "Score"},
    ),
    "a score of two sentences is a similarity, and a genre beside it is not the label": (
        "genre,filename,year,score,sentence1,sentence2",
        lambda i: [("news", "forums")[i % 2], "ab"[i % 2], 2012 + i % 3, i % 26 / 5, sentence(i), sentence(i + 1)],
        {"objective": "regression", "text": "sentence1", "text_b": "sentence2", "label": "score", "kind": "similarity"},
    ),
    "a title that is often empty is no first text": (
        ",Age,Title,Review Text,Rating,Recommended IND,Division Name",
        lambda i: [
            i,
            20 + i % 50,
            sentence(i, 3) if i % 3 else "",
            sentence(i),
            1 + i % 5,
            i % 2,
            ("General", "Petite")[i % 2],
        ],
        {"text": "Review Text", "text_b": None, "label": "Rating"},
    ),
    "several labels in one text": (
        "text,emotions,id",
        lambda i: [
            sentence(i),
            "|".join(sorted({("joy", "fear", "love", "hope", "rage")[(i + k * k) % 5] for k in range(1 + i % 3)})),
            f"e{i}",
        ],
        {"objective": "multi-label", "text": "text", "label": "emotions", "label_separator": "|", "kind": "emotion"},
    ),
    "lettered choices": (
        "question,A,B,C,D,answer",
        lambda i: [sentence(i), *(sentence(i + k, 2) for k in range(4)), "ABCD"[i % 4]],
        {
            "objective": "multiple-choice",
            "choices": ["A", "B", "C", "D"],
            "label": "answer",
            "labels": ["A", "B", "C", "D"],
        },
    ),
    "labels with spaces between them, and names in the plural": (
        "titles,summaries,terms",
        lambda i: [
            sentence(i, 3),
            sentence(i, 14),
            " ".join(("cs.CL", "cs.LG", "stat.ML", "math.OC")[(i + k * k) % 4] for k in range(1 + i % 3)),
        ],
        {"objective": "multi-label", "text": "titles", "text_b": "summaries", "label": "terms", "label_separator": " "},
    ),
    "labels of two words are no two labels": (
        "text,thing",
        lambda i: [
            sentence(i),
            f"{('red', 'blue', 'green', 'grey')[i % 4]} {('car', 'bike', 'boat', 'cart')[i // 4 % 4]}",
        ],
        {"objective": "classification", "label": "thing"},
    ),
    "a mean with its deviation and number of ratings": (
        "Phrase,Conc.M,Conc.SD,N",
        lambda i: [sentence(i), 1 + i % 61 / 10, 0.2 + i % 9 / 9, 20 + i % 11],
        {"objective": "regression", "text": "Phrase", "label": "Conc.M"},
    ),
    "a stance towards a target": (
        "ID,Target,Tweet,Stance",
        lambda i: [i, ("Atheism", "Climate")[i % 2], sentence(i), ("AGAINST", "FAVOR", "NONE")[i % 3]],
        {"text": "Tweet", "label": "Stance", "kind": "stance"},
    ),
    "a tag for each word of a text": (
        "sentence,word_labels",
        lambda i: [sentence(i, 3), f"O {('B-PER', 'B-LOC')[i % 2]} I-PER O"],
        {"objective": "tagging", "tokens": "sentence", "tags": "word_labels", "metric": "span_f1"},
    ),
    "percentages are numbers": (
        "headline,funniness",
        lambda i: [sentence(i), f"{i / 4}%"],
        {"objective": "regression", "text": "headline", "label": "funniness"},
    ),
    "instructions with a category are texts with a label": (
        "instruction,context,response,category",
        lambda i: [
            sentence(i),
            "" if i % 2 else sentence(i, 14),
            sentence(i, 15),
            ("open_qa", "closed_qa", "writing")[i % 3],
        ],
        {"text": "instruction", "text_b": None, "label": "category"},
    ),
}


@pytest.mark.parametrize("lesson", HEADERS)
def test_headers_of_public_files(write: Write, lesson: str) -> None:
    header, row, expected = HEADERS[lesson]
    tasks, _ = guess(write, write("a.csv", table(header, 210, row)))
    assert {key: tasks["a"].get(key) for key in expected} == expected


def test_fasttext_and_a_list_inside_an_object_are_seen(write: Write) -> None:
    lines = write("lines.txt", "".join(f"__label__{'ab'[i % 2]} {sentence(i)}\n" for i in range(60)))
    items = [{"comment": sentence(i), "mood": ("good", "bad")[i % 2]} for i in range(60)]
    inside = write("inside.json", json.dumps({"version": 1, "data": items}, indent=1))
    tasks, _ = guess(write, lines, inside)
    assert [tasks["lines"].get(key) for key in ("format", "text", "label")] == ["fasttext", "text", "label"]
    assert [tasks["inside"].get(key) for key in ("format", "text", "label")] == [None, "comment", "mood"]


def test_records_without_a_label_are_named(write: Write) -> None:
    items = {"data": [{"title": f"t{i}", "paragraphs": [{"context": "x"}]} for i in range(60)]}
    with pytest.raises(SidequestError, match="paragraphs holds records; what is in them needs columns of its own"):
        guess_suite([write("a.json", json.dumps(items))])


def test_a_label_beside_conversations_says_what_to_do(write: Write) -> None:
    chat = {"messages": [{"role": "user", "content": "hello"}]}
    path = write("a.jsonl", "\n".join(json.dumps(chat | {"rating": "ab"[i % 2]}) for i in range(60)))
    with pytest.raises(SidequestError, match="'messages' holds conversations; write each as one text"):
        guess_suite([path])


def test_without_a_header_two_columns_of_texts_are_a_pair_and_codes_are_no_labels(write: Write) -> None:
    pair = write(
        "pair.tsv", "".join(f"{sentence(i)}\t{sentence(i + 2)}\t{('entails', 'neutral')[i % 2]}\n" for i in range(60))
    )
    coded = write("coded.tsv", "".join(f"src{i % 9}\t{i % 2}\t\t{sentence(i)}\n" for i in range(60)))
    tasks, _ = guess(write, pair, coded)
    assert [tasks["pair"].get(key) for key in ("header", "text", "text_b", "label", "kind")] == [
        False,
        "0",
        "1",
        "2",
        "inference",
    ]
    assert [tasks["coded"].get(key) for key in ("text", "text_b", "label")] == ["3", None, "1"]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ({"instruction": sentence, "output": lambda i: sentence(i, 15)}, "column 'output' holds texts to write"),
        ({"prompt": sentence, "chosen": sentence, "rejected": sentence}, "column 'chosen' holds texts to write"),
        ({"text": sentence, "labels": lambda i: str({"joy": i % 3})}, "column 'labels' holds records"),
        ({"conversations": lambda i: [{"from": "human", "value": sentence(i)}]}, "holds conversations"),
        (
            {"text": sentence, "speaker": lambda i: f"S{i % 3}"},
            r"speaker \(3 values\) could be one, but the name speaks against",
        ),
    ],
)
def test_files_without_a_label_are_refused_with_a_reason(
    write: Write, rows: dict[str, Callable[[int], Any]], message: str
) -> None:
    lines = [json.dumps({key: make(i) for key, make in rows.items()}) for i in range(60)]
    with pytest.raises(SidequestError, match=message):
        guess_suite([write("a.jsonl", "\n".join(lines))])


def test_how_odd_tables_are_read(write: Write) -> None:
    rows = "".join(f'{i},"{sentence(i)}",{"ab"[i % 2]}\n' for i in range(60))
    cases = {
        "r.csv": (f"text,label\n{rows}", {"skip_rows": 1, "header": ["row", "text", "label"]}),
        "bad.csv": (f"row,text,label\n{rows}60,too,many,fields\n", {"bad_rows": "skip"}),
        "late.csv": (f"Made by hand\n\n# of 2024; all rows\nrow,text,label\n{rows}", {"skip_rows": 3}),
        "utf16.csv": (f"row,text,label\n{rows}".encode("utf-16"), {"encoding": "utf-16"}),
    }
    for name, (content, expected) in cases.items():
        tasks, _ = guess(write, write(name, content))
        (task,) = tasks.values()
        assert {key: task.get(key) for key in expected} == expected
        assert (task["text"], task["label"]) == ("text", "label")


def test_names_and_values_of_any_kind_leave_a_suite_file_that_loads(write: Write) -> None:
    names = ["te\nxt: {a}", "#la\u2028bel\x07 'x'", "[b]"]
    lines = [
        json.dumps(dict(zip(names, (sentence(i), ("# yes", "\u0085no:", "[")[i % 3], i), strict=True)))
        for i in range(60)
    ]
    tasks, notes = guess(write, write("odd name#1.jsonl", "\n".join(lines)))
    (task,) = tasks.values()
    assert (task["text"], task["label"]) == (names[0], names[1])
    assert all(note.isprintable() for note in notes)


def test_each_file_is_read_once(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    from sidequest.tasks.readers import text as reading

    opened: list[str] = []
    read_bytes = Path.read_bytes

    def counted(path: Path) -> bytes:
        opened.append(path.name)
        return read_bytes(path)

    files = [write("r/train.csv", REVIEWS), write("r/test.csv", REVIEWS), write("café.tsv", REVIEWS.replace(",", "\t"))]
    monkeypatch.setattr(reading.Path, "read_bytes", counted)
    guess_suite([files[0].parent, files[2]])
    assert sorted(opened) == ["café.tsv", "test.csv", "train.csv"]


def test_lists_of_labels_written_as_texts_are_lists(write: Write) -> None:
    written = ('"[3, 14]"', "[7]", "[3 7]", "[]", "\"['joy', 'anger']\"", '"[""joy""]"')
    path = write(
        "emotions.csv", table("text,labels", 60, lambda i: [f"a text of {i} words", written[i % len(written)]])
    )
    tasks, _ = guess(write, path)
    assert tasks["emotions"]["objective"] == "multi-label"
    assert "label_separator" not in tasks["emotions"]
    task = load_suite(path.parent / "suite.yaml").tasks["emotions"]
    assert set(task.labels) == {"3", "14", "7", "joy", "anger"}
    assert sum(int(split.target.sum()) for split in task.splits.values()) == 10 * (2 + 1 + 2 + 0 + 2 + 1)


def test_tags_as_numbers_are_tags(write: Write) -> None:
    rows = [{"id": i, "tokens": ["Anna", "runs", str(i)], "ner_tags": [1, 0, i % 3]} for i in range(40)]
    path = write("people.jsonl", "\n".join(map(json.dumps, rows)))
    tasks, notes = guess(write, path)
    found = {key: tasks["people"][key] for key in ("objective", "tokens", "tags", "metric")}
    assert found == {"objective": "tagging", "tokens": "tokens", "tags": "ner_tags", "metric": "token_accuracy"}
    assert "`labels: {0: O, 1: B-PER, …}` would name the numbers" in "\n".join(notes)


def test_a_column_of_lists_holds_the_choices(write: Write) -> None:
    rows = [{"question": f"what is {i}", "choices": [f"a {i}", f"b {i}", "c"], "answer": i % 3} for i in range(40)]
    tasks, _ = guess(write, write("quiz.jsonl", "\n".join(map(json.dumps, rows))))
    found = {key: tasks["quiz"][key] for key in ("objective", "text", "choices", "label")}
    assert found == {"objective": "multiple-choice", "text": "question", "choices": "choices", "label": "answer"}


def test_decimal_commas_do_not_hide_the_semicolons(write: Write) -> None:
    rows = table("ad,price,topic", 60, lambda i: [f"a fine thing number {i}", f"{i};{i % 90 + 10}", "ab"[i % 2]], "|")
    path = write("ads.csv", rows.replace(";", ",").replace("|", ";"))
    tasks, _ = guess(write, path)
    assert tasks["ads"]["delimiter"] == ";"
    assert tasks["ads"]["label"] == "topic"
    path.write_text(path.read_text().replace(";a\n", "\n").replace(";b\n", "\n").replace(";topic", ""))
    tasks, notes = guess(write, path)
    found = {key: tasks["ads"][key] for key in ("objective", "label", "decimal")}
    assert found == {"objective": "regression", "label": "price", "decimal": ","}
    assert "numbers such as 0,10; if these are two labels" in "\n".join(notes)
