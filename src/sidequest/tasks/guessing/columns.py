"""Which columns are texts and which the label, what is asked, and why this was guessed and nothing else."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from sidequest.errors import DataError
from sidequest.tasks.guessing.facts import Facts, facts_of
from sidequest.tasks.guessing.kinds import EMOTIONS, INFERENCE, SENTIMENTS, guess_kind
from sidequest.tasks.guessing.names import (
    CHAT_NAMES,
    CHOICE_PATTERN,
    GENERATION_NAMES,
    LABEL_NAMES,
    LABEL_WORDS,
    METADATA_WORDS,
    PAIR_NAMES,
    TAG_NAMES,
    TEXT_NAMES,
    TOKEN_NAMES,
    numbered_pair,
)
from sidequest.tasks.readers import Table
from sidequest.tasks.targets import uses_iob
from sidequest.tasks.unlabelled import labelled_rows

ROWS_PER_LABEL = 2  # on average; a column with fewer names its rows instead of grouping them
LIKELY = -40  # a column that scores less is not taken for a label: its name speaks of something else
ONE_HOT_COLUMNS = 3  # so many neighbouring 0/1 columns are the labels of one multi-label task
BALANCED = 0.75  # above this share of one class, accuracy would praise whoever always says it
SHOWN = 5


@dataclass
class ColumnGuess:
    """Fields of a suite file and a remark on some; `phrase` says what the task is."""

    fields: dict[str, Any]
    phrase: str
    remarks: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class _Label:
    """A way to read the label: one column, or several 0/1 columns. reasons: what speaks for it."""

    columns: tuple[Facts, ...]
    objective: str
    score: float
    reasons: tuple[str, ...]
    separator: str | None = None

    @property
    def name(self) -> str:
        names = [fact.name for fact in self.columns]
        return names[0] if len(names) == 1 else f"{names[0]} … {names[-1]}"

    def __str__(self) -> str:
        if len(self.columns) > 1:
            return f"{self.name} ({len(self.columns)} columns of 0 and 1)"
        return f"{self.name} (a number)" if self.objective == "regression" else str(self.columns[0])


def guess_columns(table: Table, task: str) -> ColumnGuess:
    """Objective, columns, metric and kind for a table. task: its name, which may tell the kind."""
    facts = [facts_of(name, i, column) for i, (name, column) in enumerate(table.columns.items())]
    guess = _tagging(table) or _choices(table, facts) or _labelled_texts(table, facts)
    fields = guess.fields
    columns = fields.get("label", fields.get("labels", ()))
    names = [columns] if isinstance(columns, str) else list(columns)
    by_name = {fact.name: fact for fact in facts}
    is_number = fields["objective"] == "regression"
    values = names if len(names) > 1 else [] if is_number or not names else by_name[names[0]].values
    texts = [fields[key] for key in ("text", "text_b") if key in fields]
    fields["kind"], guess.remarks["kind"] = guess_kind(fields["objective"], names, values, texts, task)
    return guess


def has_labels(table: Table, fields: dict[str, Any]) -> bool:
    """Whether a split can be scored: the label columns are there, filled, and not constant (as in benchmarks' hidden tests)."""
    if fields["objective"] == "tagging":
        return True
    columns = [fields["label"]] if "label" in fields else list(fields["labels"])
    if any(column not in table.columns for column in columns):
        return False
    dropped = fields.get("unlabelled") == "drop"
    labelled = labelled_rows(table, columns, fields.get("no_label", ()))
    if not (labelled.any() if dropped else labelled.all()):
        return False
    return any(facts_of(column, 0, table.columns[column]).distinct > 1 for column in columns)


# ---- tags and choices ----------------------------------------------------------------------------------------------------------


def _tagging(table: Table) -> ColumnGuess | None:
    lists = {name.lower(): name for name, column in table.columns.items() if _is_text_list(column)}
    word_table = list(table.columns) == [str(i) for i in range(len(table.columns))] and "0" in lists
    columns: dict[str, Any] = {}
    if "form" in lists and "upos" in lists:
        tags, remark = "UPOS", "CoNLL-U: parts of speech; XPOS, FEATS and DEPREL could be tags too"
    elif word_table:
        columns = {"tokens": 0, "tags": -1}
        tags, remark = list(table.columns)[-1], f"the last of {len(table.columns)} columns"
    else:
        tokens = next((lists[name] for name in TOKEN_NAMES if name in lists), None)
        found = [lists[name] for name in TAG_NAMES if name in lists and lists[name] != tokens]
        if tokens is None or not found:
            return None
        tags = found[0]
        columns, remark = {"tokens": tokens, "tags": tags}, _chosen_for(["its name"], found[1:])
    metric = "span_f1" if uses_iob(table.columns[tags]) else "token_accuracy"
    fields = {"objective": "tagging", **columns, "metric": metric}
    what = "the last column" if word_table else tags
    return ColumnGuess(fields, f"tagging by {what}", {"tags" if columns else "objective": remark})


def _choices(table: Table, facts: list[Facts]) -> ColumnGuess | None:
    choices = sorted(fact.name for fact in facts if CHOICE_PATTERN.match(fact.name) and not fact.numeric)
    rest = [fact for fact in facts if fact.name not in choices]
    labels = [fact for fact in rest if 2 <= fact.distinct <= len(choices) and not fact.is_id]
    if len(choices) < 2 or not labels:
        return None
    label = max(labels, key=lambda fact: (_name_score(fact)[0], fact.position))
    texts, why_text = _texts([fact for fact in rest if fact is not label])
    if not texts:
        return None
    fields: dict[str, Any] = {
        "objective": "multiple-choice",
        "text": texts[0].name,
        "choices": choices,
        "label": label.name,
    }
    values = sorted(label.values)
    remarks = {
        "text": why_text,
        "choices": "chosen for their names",
        "label": _chosen_for(["values that count the choices"], []),
    }
    if "0" not in values:  # counted from 1, or lettered
        fields["labels"] = sorted(value for value, _ in label.counts)
        remarks["labels"] = "the label names the choices in this order"
    fields["metric"] = "accuracy"
    return ColumnGuess(fields, f"multiple choice among {', '.join(choices)}", remarks)


# ---- labels --------------------------------------------------------------------------------------------------------------------


def _labelled_texts(table: Table, facts: list[Facts]) -> ColumnGuess:
    candidates = _label_candidates(facts)
    if not candidates or candidates[0].score < LIKELY:
        raise DataError(_why_no_label(facts, candidates), file=table.source)
    label, others = candidates[0], candidates[1:]
    taken = {fact.name for fact in label.columns}
    texts, why_texts = _texts([fact for fact in facts if fact.name not in taken])
    if not texts:
        raise DataError(f"no column looks like a text; columns are {', '.join(table.columns)}", file=table.source)
    names = [fact.name for fact in texts]
    fields: dict[str, Any] = {"objective": label.objective, **dict(zip(("text", "text_b"), names, strict=False))}
    unused = [other for other in others if not {fact.name for fact in other.columns} & {*taken, *names}]
    remarks = {"text": why_texts, "label": _chosen_for(label.reasons, [str(other) for other in unused])}
    if len(texts) > 1:
        remarks["text_b"] = "the second text of the pair; without this line the model sees the first alone"
    _label_fields(label, fields, remarks)
    fields["metric"] = _metric(label)
    what = {"regression": "regression of {label} on {texts}"}.get(label.objective, "{objective} of {texts} by {label}")
    phrase = what.format(objective=label.objective, label=label.name, texts=" and ".join(names))
    if label.objective == "classification":
        phrase += f" ({label.columns[0].distinct} labels)"
    return ColumnGuess(fields, phrase, remarks)


def _label_fields(label: _Label, fields: dict[str, Any], remarks: dict[str, str]) -> None:
    """`label` or `labels`, and what is special about them."""
    first = label.columns[0]
    if len(label.columns) > 1:
        fields["labels"] = [fact.name for fact in label.columns]
        remarks["labels"] = remarks.pop("label")
        return
    fields["label"] = first.name
    if label.separator is not None:
        fields["label_separator"] = label.separator
    if label.objective == "multi-label":
        if first.filled < first.rows:
            fields["allow_empty"] = True
            remarks["allow_empty"] = f"{first.rows - first.filled} of {first.rows} rows have no label"
        return
    if first.filled < first.rows:
        fields["unlabelled"] = "drop"
        remarks["unlabelled"] = f"{first.rows - first.filled} of {first.rows} rows have no label and are left out"
        if first.missing:
            fields["no_label"] = [text for text, _ in first.missing]
            remarks["no_label"] = "taken for a missing label"


def _label_candidates(facts: list[Facts]) -> list[_Label]:
    """Everything that could be the label, the likeliest first."""
    one_hot = _one_hot(facts)
    inside = {fact.name for fact in one_hot.columns} if one_hot is not None else set()
    candidates = [one_hot] if one_hot is not None else []
    for fact in facts:
        if fact.name not in inside and (candidate := _label_candidate(fact, len(facts))) is not None:
            candidates.append(candidate)
    return sorted(candidates, key=lambda candidate: -candidate.score)


def _label_candidate(fact: Facts, columns: int) -> _Label | None:
    score, reason = _name_score(fact)
    named = score >= 50
    reasons = [reason] if reason else []
    if (
        fact.form == "nested"
        or fact.distinct < 2
        or fact.written_as_text
        or fact.filled * (10 if named else 2) < fact.rows
    ):
        return None
    if fact.is_id and not named:
        return None
    if fact.form == "list":
        if fact.distinct * ROWS_PER_LABEL > fact.rows or fact.words > 4:
            return None
        return _Label((fact,), "multi-label", score + 20, (*reasons, f"lists of {_few_values(fact)}"))
    if fact.is_scale:
        return _Label((fact,), "regression", score - 15, (*reasons, f"{fact.distinct} different numbers"))
    if (separated := _separated(fact)) is not None:
        return _Label((fact,), "multi-label", score + 10, (*reasons, "several labels in one text"), separated)
    few = fact.distinct * (ROWS_PER_LABEL if named else 5) <= max(2 * ROWS_PER_LABEL, fact.filled) or fact.distinct == 2
    if not few or fact.words > 4:
        return None
    if fact.values & INFERENCE or len(fact.values & EMOTIONS) > 1 or fact.values & (SENTIMENTS | {"spam"}):
        score += 30
        reasons.append("usual labels")
    score += 10 if fact.position == columns - 1 else 8 if fact.position == 0 else 0
    score -= 0 if named else 5 * math.log2(fact.distinct)  # nameless columns of few values are likelier
    return _Label((fact,), "classification", score, (*reasons, f"{_few_values(fact)} in {fact.filled} rows"))


def _name_score(fact: Facts) -> tuple[float, str]:
    """How much a name speaks for a label: a whole name more than a word in it; words about the row against it."""
    lower, words = fact.name.lower(), fact.name_words
    if lower in LABEL_NAMES:
        return 100 - LABEL_NAMES.index(lower), "its name"
    about = METADATA_WORDS.intersection(words)
    if LABEL_WORDS.intersection(words):
        return (55 - 80 * bool(about) - 20 * fact.is_id), "its name"
    if about:
        return -80.0, ""
    return (50.0, "its name") if words[:1] in (["is"], ["has"]) and fact.distinct == 2 else (0.0, "")


def _one_hot(facts: list[Facts]) -> _Label | None:
    """The longest run of neighbouring columns that hold only 0 and 1 (or only true and false)."""
    best: list[Facts] = []
    run: list[Facts] = []
    for fact in facts:
        binary = fact.form == "plain" and fact.is_binary and _name_score(fact)[0] > -50
        same = bool(run) and (run[-1].values <= {"0", "1"}) == (fact.values <= {"0", "1"})
        run = [*(run if same else []), fact] if binary else []
        best = max(best, run, key=len)
    if len(best) < ONE_HOT_COLUMNS:
        return None
    ones = sum(count for fact in best for value, count in fact.counts if value.lower() in ("1", "true"))
    reasons = [f"{len(best)} neighbouring columns hold only 0 and 1"]
    if ones == best[0].rows:
        reasons.append("as many ones as rows (if every row has exactly one, a column of classes would do)")
    return _Label(tuple(best), "multi-label", 75, tuple(reasons))


def _separated(fact: Facts) -> str | None:
    """The mark between several labels in one text, if the pieces are few and short and the texts are many."""
    for mark in ",;|":
        pieces = {piece.strip() for value, _ in fact.counts for piece in value.split(mark)}
        several = sum(count for value, count in fact.counts if mark in value)
        if several * 50 > fact.filled and len(pieces) * 2 < fact.distinct and len(pieces) * 5 <= fact.filled:
            return mark if all(len(piece.split()) <= 3 for piece in pieces) else None
    return None


def _metric(label: _Label) -> str | list[str]:
    if label.objective == "regression":
        return ["pearson", "spearman"]
    if label.objective == "multi-label":
        return ["micro_f1", "macro_f1"]
    counts = [count for _, count in label.columns[0].counts]
    return "accuracy" if counts[0] <= BALANCED * sum(counts) else ["macro_f1", "accuracy"]


def _why_no_label(facts: list[Facts], candidates: Sequence[_Label]) -> str:
    names = ", ".join(fact.name for fact in facts)
    chat = [f for f in facts if f.form == "nested" and f.name.lower() in CHAT_NAMES]
    if chat:
        return (
            f"column {chat[0].name!r} holds conversations, and no column says what to predict about them. Models here "
            "learn labels, numbers or tags, not replies; to judge conversations, write their text and a label into columns"
        )
    crowded = [f for f in facts if _name_score(f)[0] >= 50 and f.form == "plain" and not f.numeric and f.distinct > 2]
    if crowded:
        first = crowded[0]
        return (
            f"column {first.name!r} has {first.distinct} labels in {first.filled} rows: such a column names its rows, "
            f"and nothing can be learned about a label with one example. Columns are {names}"
        )
    written = [f.name for f in facts if f.form == "nested" and _name_score(f)[0] >= 50]
    if written:
        return (
            f"column {written[0]!r} holds records, or lists written as texts. For several labels in a row write real lists "
            "to jsonl or parquet, or texts such as 'a;b' with `label_separator:`"
        )
    generated = [f.name for f in facts if f.name.lower() in GENERATION_NAMES and f.words > 3]
    if generated:
        return (
            f"column {generated[0]!r} holds texts to write, and no column looks like a label; models here learn labels, "
            f"numbers or tags. Columns are {names}"
        )
    unlikely = (
        f"; {', '.join(map(str, candidates[:SHOWN]))} could be one, but the name speaks against it"
        if candidates
        else ""
    )
    return f"no column looks like a label; columns are {names}{unlikely}"


# ---- texts ---------------------------------------------------------------------------------------------------------------------


def _texts(facts: list[Facts]) -> tuple[list[Facts], str]:
    """One text or a pair, and why."""
    able = [fact for fact in facts if _can_be_text(fact)]
    by_name = {fact.name.lower(): fact for fact in able}
    full = [fact for fact in able if fact.filled >= 0.95 * fact.rows]
    chosen: list[Facts] = []
    if (numbered := numbered_pair([fact.name for fact in full])) is not None:
        chosen = [by_name[name.lower()] for name in numbered]
    for first, seconds in PAIR_NAMES.items() if not chosen else ():
        second = next((by_name[name] for name in seconds if name in by_name and by_name[name] in full), None)
        if first in by_name and by_name[first] in full and second is not None:
            chosen = [by_name[first], second]
            break
    reason = "two names that make a pair"
    if not chosen and all(fact.name.isdecimal() for fact in facts):  # without a header there are no names to go by
        long = [fact for fact in full if fact.words >= 3]
        chosen, reason = (long, "the only two columns of texts") if len(long) == 2 else ([], "")
    if not chosen:
        named = next((by_name[name] for name in TEXT_NAMES if name in by_name and by_name[name] in full), None)
        longest = max(able, key=lambda fact: fact.words, default=None)
        best = named if named is not None else longest
        chosen = [best] if best is not None else []
        reason = "its name" if named is not None else "the longest texts"
    others = [f"{f.name} ({f.words:.0f} words)" for f in able if f not in chosen and f.words >= 2]
    return chosen, _chosen_for([reason], others)


def _can_be_text(fact: Facts) -> bool:
    if fact.form != "plain" or fact.numeric or fact.written_as_text or fact.filled * 2 < fact.rows:
        return False
    varied = fact.distinct > max(1, fact.rows / 20) or fact.words >= 4  # answers and questions may repeat
    return varied and fact.distinct > 1 and not (fact.is_id and fact.words <= 1.2)


def _chosen_for(reasons: Iterable[str], others: Sequence[str]) -> str:
    shown = ", ".join(others[:SHOWN]) + (", …" if len(others) > SHOWN else "")
    return f"chosen for {', '.join(reasons)}; " + (f"other candidates: {shown}" if others else "no other candidate")


def _few_values(fact: Facts) -> str:
    shown = ", ".join(value[:20] for value, _ in fact.counts[:3]) + (", …" if fact.distinct > 3 else "")
    return f"{fact.distinct} different values ({shown})"


def _is_text_list(column: Any) -> bool:
    return isinstance(column, pa.Array) and pa.types.is_list(column.type) and pa.types.is_string(column.type.value_type)
