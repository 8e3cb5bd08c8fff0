"""What the values of a column look like."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sidequest.tasks.guessing.names import is_id_name, words_of
from sidequest.tasks.targets import without_percent
from sidequest.tasks.written_lists import written_list

MANY_VALUES = 20  # whole numbers with more values than this are a scale, not classes
# Texts that files write where there is no label. `none` and `unknown` are labels often enough.
NO_LABEL = ("-", "NA", "N/A", "n/a", "nan", "NaN", "NAN", "null", "NULL", "?", "<NA>", "#N/A")
DATES = (
    r"\d{4}-\d\d?-\d\d?([ T].*)?|\d\d?[/.]\d\d?[/.]\d{2,4}([ T].*)?|(Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? .*\d\d:\d\d.*"
)
NEVER_TEXT = rf"^(https?://\S+|{DATES}|\d\d?:\d\d(:\d\d.*)?)$"


@dataclass(frozen=True)
class Facts:
    """One column: its plain values as texts, or for a column of lists the texts in all lists.

    filled: in how many rows it holds a value; missing: the texts that stand for no label and how often each occurs.
    counts: how often each distinct value occurs, the most frequent first.
    words: the mean number of words of a value.
    form: `plain`, `list` (of texts or numbers), or `nested` (records: nothing that a label or a text can be).
    """

    name: str
    position: int
    rows: int
    form: str
    filled: int = 0
    missing: tuple[tuple[str, int], ...] = ()
    counts: tuple[tuple[str, int], ...] = ()
    words: float = 0.0
    numeric: bool = False
    whole: bool = False
    comma: bool = False  # numbers with a decimal comma
    written_as_text: bool = False  # a date, a time or an address

    @property
    def distinct(self) -> int:
        return len(self.counts)

    @functools.cached_property
    def values(self) -> frozenset[str]:
        """The distinct values in lower case, if they are few."""
        return frozenset(value.lower() for value, _ in self.counts[:300])

    @property
    def is_id(self) -> bool:
        """A name that says so, or a different short value in every row."""
        short = self.whole or (not self.numeric and self.words <= 1.2)
        return is_id_name(self.name) or (short and self.distinct == self.filled > MANY_VALUES)

    @property
    def is_scale(self) -> bool:
        return self.numeric and (not self.whole or self.distinct > MANY_VALUES)

    @property
    def name_words(self) -> list[str]:
        return words_of(self.name)

    @property
    def is_binary(self) -> bool:
        """Only 0 and 1, or only true and false."""
        return self.filled == self.rows and (
            self.values in ({"0", "1"}, {"false", "true"}) or self.values in ({"0"}, {"1"})
        )

    def __str__(self) -> str:
        return f"{self.name} ({self.distinct} values)"


def facts_of(name: str, position: int, column: Any) -> Facts:
    if isinstance(column, np.ndarray):
        return Facts(name, position, len(column), "nested")
    rows = len(column)
    form = "plain"
    if pa.types.is_list(column.type):
        form = "list"
        lengths = np.asarray(pc.fill_null(pc.list_value_length(column), 0), dtype=np.int64)
        filled = int((lengths > 0).sum())
        column = column.flatten()
    if pa.types.is_nested(column.type) or pa.types.is_binary(column.type):
        return Facts(name, position, rows, "nested")
    texts = pc.utf8_trim_whitespace(pc.fill_null(column.cast(pa.string()), ""))
    if (
        len(texts) and pc.all(pc.match_substring_regex(texts, r"^([\[{].*[\]}])?$")).as_py()
    ):  # lists or records as texts
        lists = [written_list(text) for text in texts.to_pylist()]
        if form == "list" or any(values is None for values in lists):
            return Facts(name, position, rows, "nested")
        return facts_of(name, position, pa.array(lists, type=pa.list_(pa.string())))
    if form == "plain":
        texts = _whole_numbers(column, texts)
    absent = pc.is_in(texts, pa.array(NO_LABEL))
    missing = tuple((entry["values"], entry["counts"]) for entry in pc.value_counts(texts.filter(absent)).to_pylist())
    texts = texts.filter(pc.and_(pc.invert(absent), pc.not_equal(texts, "")))
    if form == "plain":
        filled = len(texts)
    table = pc.value_counts(texts)
    order = np.argsort(-np.asarray(table.field("counts")), kind="stable")
    counts = [(entry["values"], entry["counts"]) for entry in table.take(pa.array(order)).to_pylist()]
    words = np.asarray(pc.list_value_length(pc.utf8_split_whitespace(texts)))
    numbers = without_percent(texts)
    numeric, whole = _numeric(numbers)
    comma = not numeric and form == "plain" and _has_decimal_commas(numbers)
    dated = len(texts) > 0 and bool(pc.all(pc.match_substring_regex(texts, NEVER_TEXT)).as_py())
    mean = float(words.mean()) if len(words) else 0.0
    return Facts(
        name, position, rows, form, filled, missing, tuple(counts), mean, numeric or comma, whole, comma, dated
    )


def _whole_numbers(column: pa.Array, texts: pa.Array) -> pa.Array:
    """JSON's and parquet's 1.0 as 1, as the labels of a task will be written."""
    return pc.replace_substring_regex(texts, r"^(-?\d+)\.0$", r"\1") if pa.types.is_floating(column.type) else texts


def _has_decimal_commas(texts: pa.Array) -> bool:
    """Whether all are numbers if a comma stands before decimals."""
    if not len(texts) or not pc.all(pc.match_substring_regex(texts, r"^[+-]?\d+(,\d+)?$")).as_py():
        return False
    return bool(pc.any(pc.match_substring(texts, ",")).as_py())


def _numeric(texts: pa.Array) -> tuple[bool, bool]:
    if not len(texts):
        return False, False
    try:
        numbers = np.asarray(texts.cast(pa.float64()))
    except pa.ArrowInvalid:
        return False, False
    finite = bool(np.isfinite(numbers).all())
    return finite, finite and bool(np.all(numbers == np.floor(numbers)))
