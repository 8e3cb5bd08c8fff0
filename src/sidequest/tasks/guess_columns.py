"""Guesses about one table: how its file is written, which columns are texts and labels, and what is asked."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sidequest.errors import DataError
from sidequest.tasks.readers import ReadSettings, Table, guess_format, read_file
from sidequest.tasks.readers.text import read_text

LABEL_NAMES = (
    *("label", "labels", "gold_label", "target", "class", "category", "intent", "emotion", "sentiment", "polarity"),
    *("topic", "stars", "rating", "score", "similarity", "is_duplicate", "quality", "y"),
)
TEXT_NAMES = (
    *("text", "sentence", "body", "review", "content", "comment", "utterance", "message", "tweet", "document"),
    *("question", "query", "premise", "title"),
)
PAIR_NAMES = (
    *(("sentence1", "sentence2"), ("premise", "hypothesis"), ("question1", "question2"), ("text_a", "text_b")),
    *(
        ("text", "text_b"),
        ("text1", "text2"),
        ("question", "sentence"),
        ("query", "passage"),
        ("#1 string", "#2 string"),
    ),
)
TOKEN_NAMES, TAG_NAMES = ("tokens", "words"), ("tags", "ner_tags", "pos_tags", "chunk_tags", "upos", "labels")
CHOICE_PATTERN = re.compile(r"^(choice|option|ending|answer|alternative)[ _]?[0-9a-e]$", re.IGNORECASE)
ID_PATTERN = re.compile(r"^(id|idx|index|guid|uid|uuid|row|sr no\.?|.*[ _]id)$", re.IGNORECASE)
MANY_VALUES = 20  # whole numbers with more values than this are a scale, not classes


@dataclass(frozen=True)
class Facts:
    """What the values of one column look like."""

    name: str
    distinct: int
    rows: int
    words: float
    numeric: bool
    whole: bool

    @property
    def is_id(self) -> bool:
        return bool(ID_PATTERN.match(self.name)) or (self.whole and self.distinct == self.rows > MANY_VALUES)


def sniff(path: Path) -> tuple[dict[str, Any], Table]:
    """Reading settings that differ from the defaults, as fields of a suite file; and the table that they read."""
    fields: dict[str, Any] = {}
    format = guess_format(path)
    if format in ("parquet", "saved"):
        return {}, read_file(path)
    try:
        text = read_text(path)
    except DataError as error:
        named = re.search(r"encoding: ([\w-]+)", str(error))
        if named is None:
            raise
        fields["encoding"] = named[1]
        text = read_text(path, named[1])
    if format is None:
        format = fields["format"] = _format_of(text, path)
    if format in ("csv", "tsv"):
        fields |= _delimited_fields(text, format)
    if "header" not in fields and format in ("csv", "tsv") and _first_row_is_data(path, fields):
        fields["header"] = False
    return fields, read_file(path, ReadSettings(**fields))


def guess_fields(table: Table) -> tuple[dict[str, Any], str]:
    """Objective, columns and metric as fields of a suite file, and one phrase that says what was found."""
    if "FORM" in table.columns or _is_word_table(table):
        return _tagging({}, table, "tags" if "FORM" in table.columns else "the last column")
    lists = {name.lower(): name for name, column in table.columns.items() if _is_text_list(column)}
    tokens = next((lists[name] for name in TOKEN_NAMES if name in lists), None)
    tags = next((lists[name] for name in TAG_NAMES if name in lists), None)
    if tokens and tags:
        return _tagging({"tokens": tokens, "tags": tags}, table, tags)
    facts = {name: _facts(name, column) for name, column in table.columns.items() if name not in lists.values()}
    label = _label_column(facts)
    if label is None:
        raise DataError(f"no column looks like a label; columns are {', '.join(table.columns)}", file=table.source)
    choices = sorted(name for name in facts if CHOICE_PATTERN.match(name))
    texts = _text_columns({name: fact for name, fact in facts.items() if name != label and name not in choices})
    if not texts:
        raise DataError(f"no column looks like a text; columns are {', '.join(table.columns)}", file=table.source)
    columns = dict(zip(("text", "text_b"), texts, strict=False))
    if len(choices) > 1:
        fields = {
            "objective": "multiple-choice",
            "text": texts[0],
            "choices": choices,
            "label": label,
            "metric": "accuracy",
        }
        return fields, f"multiple choice among {', '.join(choices)}"
    fact = facts[label]
    if fact.numeric and (not fact.whole or fact.distinct > MANY_VALUES):
        phrase = f"regression of {label} on {' and '.join(texts)}"
        return {"objective": "regression", **columns, "label": label, "metric": ["pearson", "spearman"]}, phrase
    counts = np.asarray(pc.value_counts(table.columns[label]).field("counts"))
    even = counts.max() / counts.sum() <= 0.75
    metric: Any = "accuracy" if even else ["macro_f1", "accuracy"]  # accuracy alone would praise the majority class
    phrase = f"classification of {' and '.join(texts)} by {label} ({fact.distinct} labels)"
    return {"objective": "classification", **columns, "label": label, "metric": metric}, phrase


def has_labels(table: Table, fields: dict[str, Any]) -> bool:
    """Whether a split can be scored: the label column is there, filled, and not constant (as in benchmarks' hidden tests)."""
    column = fields.get("label", fields.get("tags"))
    if column is None or "label" not in fields:
        return True
    if column not in table.columns:
        return False
    values = table.columns[column]
    return (
        values.null_count == 0
        and len(pc.unique(values)) > 1
        and not pc.any(pc.equal(values.cast(pa.string()), "")).as_py()
    )


def _tagging(columns: dict[str, Any], table: Table, what: str) -> tuple[dict[str, Any], str]:
    from sidequest.tasks.targets import uses_iob

    tags = table.column(columns.get("tags", "UPOS" if "UPOS" in table.columns else -1))
    metric = "span_f1" if uses_iob(tags) else "token_accuracy"
    return {"objective": "tagging", **columns, "metric": metric}, f"tagging by {what}"


def _is_word_table(table: Table) -> bool:
    return list(table.columns) == [str(i) for i in range(len(table.columns))] and _is_text_list(table.columns["0"])


def _is_text_list(column: Any) -> bool:
    return isinstance(column, pa.Array) and pa.types.is_list(column.type) and pa.types.is_string(column.type.value_type)


def _facts(name: str, column: pa.Array) -> Facts:
    if pa.types.is_nested(column.type):
        return Facts(name, len(column), len(column), 0.0, False, False)
    distinct = len(pc.unique(column))
    texts = pc.fill_null(column.cast(pa.string()), "")
    words = float(np.mean(np.asarray(pc.list_value_length(pc.utf8_split_whitespace(texts)))))
    try:
        numbers = np.asarray(pc.utf8_trim_whitespace(texts).cast(pa.float64()))
        numeric, whole = bool(np.isfinite(numbers).all()), bool(np.all(numbers == np.floor(numbers)))
    except pa.ArrowInvalid:
        numeric = whole = False
    return Facts(name, distinct, len(column), words, numeric, numeric and whole)


def _label_column(facts: dict[str, Facts]) -> str | None:
    by_lower = {name.lower(): name for name in facts}
    for name in LABEL_NAMES:
        fact = facts.get(by_lower.get(name, ""))
        if fact is not None and fact.distinct > 1 and (fact.numeric or fact.distinct <= max(2, fact.rows / 2)):
            return fact.name
    few = [f.name for f in facts.values() if not f.is_id and 1 < f.distinct <= max(2, f.rows / 5) and f.words <= 3]
    numbers = [f.name for f in facts.values() if f.numeric and not f.is_id and f.distinct > 1]
    return next(reversed(few or numbers), None)


def _text_columns(facts: dict[str, Facts]) -> list[str]:
    by_lower = {name.lower(): name for name in facts}
    for pair in PAIR_NAMES:
        if all(name in by_lower for name in pair):
            return [by_lower[name] for name in pair]
    for name in TEXT_NAMES:
        if name in by_lower:
            return [by_lower[name]]
    texts = [f for f in facts.values() if not f.numeric and not f.is_id and f.distinct > max(1, f.rows / 20)]
    return [max(texts, key=lambda f: f.words).name] if texts else []


def _format_of(text: str, path: Path) -> str:
    """The format of a file whose name does not tell it."""
    lines = text.split("\n")[:2000]
    filled = [line.rstrip("\r") for line in lines if line.strip()]
    if not filled:
        raise DataError("the file is empty", file=path)
    if filled[0].lstrip().startswith("{"):
        return "jsonl"
    if all(len(line.split("\t")) == 10 for line in filled if not line.startswith("#")):
        return "conllu"
    blanks = len(lines) - len(filled)
    if blanks > len(lines) / 100 and len({len(line.split()) for line in filled}) == 1 and len(filled[0].split()) > 1:
        return "conll"
    if "\t" in filled[0]:
        return "tsv"
    if "," in filled[0]:
        return "csv"
    raise DataError("can't guess the format; name it with `format:`", file=path)


def _delimited_fields(text: str, format: str) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    first = text.split("\n", 1)[0]
    if format == "csv" and "," not in first and (other := next((mark for mark in ";\t|" if mark in first), None)):
        fields["delimiter"] = other
    delimiter = fields.get("delimiter", "," if format == "csv" else "\t")
    if format == "tsv" and '"' in text:
        # In a quoting file every field with a quote is quoted as a whole, and quotes inside it are doubled.
        mark = re.escape(delimiter)
        outside = re.sub(rf'(?:^|(?<={mark}))"(?:[^"]|"")*"(?=\r?$|{mark})', "", text, flags=re.MULTILINE)
        if '"' in outside:
            fields["quoting"] = "none"
    return fields


def _first_row_is_data(path: Path, fields: dict[str, Any]) -> bool:
    table = read_file(path, ReadSettings(**fields, header=False))
    first = [column[0].as_py() for column in table.columns.values()]
    if any(not name or len(name.split()) > 5 or _is_number(name) for name in first) or len(set(first)) < len(first):
        return True
    return len(first) == 1


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
