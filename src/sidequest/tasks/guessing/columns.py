"""Which columns are texts and which the label, what is asked, and why this was guessed and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sidequest.errors import DataError
from sidequest.tasks.guessing.facts import Facts, facts_of
from sidequest.tasks.guessing.kinds import guess_kind
from sidequest.tasks.guessing.labels import (
    LIKELY,
    SHOWN,
    Label,
    label_candidates,
    likely_metric,
    name_score,
    why_no_label,
    why_no_text,
)
from sidequest.tasks.guessing.names import (
    CHOICE_LIST_NAMES,
    CHOICE_PATTERN,
    PAIR_NAMES,
    TAG_NAMES,
    TEXT_NAMES,
    TOKEN_NAMES,
    numbered_pair,
    singular,
)
from sidequest.tasks.guessing.word_tags import written_tags
from sidequest.tasks.readers import Table
from sidequest.tasks.targets import uses_iob
from sidequest.tasks.unlabelled import labelled_rows


@dataclass
class ColumnGuess:
    """Fields of a suite file and a remark on some; `phrase` says what the task is."""

    fields: dict[str, Any]
    phrase: str
    remarks: dict[str, str] = field(default_factory=dict)


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
    numbers = {name.lower(): name for name, column in table.columns.items() if _is_whole_list(column)}
    word_table = list(table.columns) == [str(i) for i in range(len(table.columns))] and "0" in lists
    columns: dict[str, Any] = {}
    if "form" in lists and "upos" in lists:
        tags, remark = "UPOS", "CoNLL-U: parts of speech; XPOS, FEATS and DEPREL could be tags too"
    elif word_table:
        columns = {"tokens": 0, "tags": -1}
        tags, remark = list(table.columns)[-1], f"the last of {len(table.columns)} columns"
    else:
        tokens = next((lists[name] for name in TOKEN_NAMES if name in lists), None)
        both = numbers | lists  # Hugging Face's files have tags as numbers
        found = [both[name] for name in TAG_NAMES if name in both and both[name] != tokens]
        if tokens is None or not found:
            return _written_tagging(table)
        tags = found[0]
        columns, remark = {"tokens": tokens, "tags": tags}, _chosen_for(["its name"], found[1:])
    is_numbered = tags in numbers.values()
    metric = "span_f1" if not is_numbered and uses_iob(table.columns[tags]) else "token_accuracy"
    if is_numbered:
        remark += "; `labels: {0: O, 1: B-PER, …}` would name the numbers, and with names there is `metric: span_f1`"
    fields = {"objective": "tagging", **columns, "metric": metric}
    what = "the last column" if word_table else tags
    return ColumnGuess(fields, f"tagging by {what}", {"tags" if columns else "objective": remark})


def _written_tagging(table: Table) -> ColumnGuess | None:
    if (found := written_tags(table)) is None:
        return None
    tokens, tags = found
    fields = {"objective": "tagging", "tokens": tokens, "tags": tags, "metric": "span_f1"}
    remark = _chosen_for([f"tags of spans, in every row as many as {tokens} has words"], [])
    return ColumnGuess(fields, f"tagging by {tags}", {"tags": remark})


def _choices(table: Table, facts: list[Facts]) -> ColumnGuess | None:
    choices = sorted(fact.name for fact in facts if CHOICE_PATTERN.match(fact.name) and not fact.numeric)
    most, listed = len(choices), _choice_list(table) if len(choices) < 2 else None
    if listed is not None:
        choices, most = [listed], int(pc.max(pc.list_value_length(table.columns[listed])).as_py())
    rest = [fact for fact in facts if fact.name not in choices]
    labels = [fact for fact in rest if 2 <= fact.distinct <= most and fact.form == "plain" and not fact.is_id]
    if most < 2 or not labels:
        return None
    label = max(labels, key=lambda fact: (name_score(fact)[0], fact.position))
    texts, why_text = _texts([fact for fact in rest if fact is not label])
    if not texts:
        return None
    fields: dict[str, Any] = {
        "objective": "multiple-choice",
        "text": texts[0].name,
        "choices": choices if listed is None else listed,
        "label": label.name,
    }
    values = sorted(label.values)
    remarks = {
        "text": why_text,
        "choices": "chosen for their names" if listed is None else f"lists of up to {most} texts, chosen for its name",
        "label": _chosen_for(["values that count the choices"], []),
    }
    if "0" not in values:  # counted from 1, or lettered
        fields["labels"] = sorted(value for value, _ in label.counts)
        remarks["labels"] = "the label names the choices in this order"
    fields["metric"] = "accuracy"
    return ColumnGuess(fields, f"multiple choice among {', '.join(choices)}", remarks)


# ---- labels --------------------------------------------------------------------------------------------------------------------


def _labelled_texts(table: Table, facts: list[Facts]) -> ColumnGuess:
    candidates = label_candidates(facts)
    if not candidates or candidates[0].score < LIKELY:
        raise DataError(why_no_label(facts, candidates), file=table.source)
    label, others = candidates[0], candidates[1:]
    taken = {fact.name for fact in label.columns}
    texts, why_texts = _texts([fact for fact in facts if fact.name not in taken])
    if not texts:
        raise DataError(why_no_text(facts), file=table.source)
    names = [fact.name for fact in texts]
    fields: dict[str, Any] = {"objective": label.objective, **dict(zip(("text", "text_b"), names, strict=False))}
    unused = [other for other in others if not {fact.name for fact in other.columns} & {*taken, *names}]
    remarks = {"text": why_texts, "label": _chosen_for(label.reasons, [str(other) for other in unused])}
    if len(texts) > 1:
        remarks["text_b"] = "the second text of the pair; without this line the model sees the first alone"
    _label_fields(label, fields, remarks)
    fields["metric"] = likely_metric(label)
    what = {"regression": "regression of {label} on {texts}"}.get(label.objective, "{objective} of {texts} by {label}")
    phrase = what.format(objective=label.objective, label=label.name, texts=" and ".join(names))
    if label.objective == "classification":
        phrase += f" ({label.columns[0].distinct} labels)"
    return ColumnGuess(fields, phrase, remarks)


def _label_fields(label: Label, fields: dict[str, Any], remarks: dict[str, str]) -> None:
    """`label` or `labels`, and what is special about them."""
    first = label.columns[0]
    if len(label.columns) > 1:
        fields["labels"] = [fact.name for fact in label.columns]
        remarks["labels"] = remarks.pop("label")
        return
    fields["label"] = first.name
    if label.separator is not None:
        fields["label_separator"] = label.separator
    if label.objective == "regression" and first.comma:
        fields["decimal"] = ","
        remarks["decimal"] = (
            f"numbers such as {first.counts[0][0]}; if these are two labels: multi-label, `label_separator`"
        )
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


# ---- texts ---------------------------------------------------------------------------------------------------------------------


def _usual_pair(by_name: Mapping[str, Facts]) -> list[Facts] | None:
    """Two columns whose names say that they belong together, such as premise and hypothesis."""
    for first, seconds in PAIR_NAMES.items():
        second = next((by_name[name] for name in seconds if name in by_name), None)
        if first in by_name and second is not None:
            return [by_name[first], second]
    return None


def _texts(facts: list[Facts]) -> tuple[list[Facts], str]:
    """One text or a pair, and why."""
    able = [fact for fact in facts if _can_be_text(fact)]
    by_name = {singular(fact.name.lower()): fact for fact in able} | {fact.name.lower(): fact for fact in able}
    full = [fact for fact in able if fact.filled >= 0.95 * fact.rows]
    chosen: list[Facts] = []
    if (numbered := numbered_pair([fact.name for fact in full])) is not None:
        chosen = [by_name[name.lower()] for name in numbered]
    elif (pair := _usual_pair({name: fact for name, fact in by_name.items() if fact in full})) is not None:
        chosen = pair
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


def _choice_list(table: Table) -> str | None:
    """The column whose lists are the alternatives of each row."""
    names = {name.lower(): name for name, column in table.columns.items() if _is_text_list(column)}
    usual = [names[name] for name in CHOICE_LIST_NAMES if name in names]
    return next((name for name in usual if (pc.min(pc.list_value_length(table.columns[name])).as_py() or 0) >= 2), None)


def _is_text_list(column: Any) -> bool:
    return isinstance(column, pa.Array) and pa.types.is_list(column.type) and pa.types.is_string(column.type.value_type)


def _is_whole_list(column: Any) -> bool:
    return (
        isinstance(column, pa.Array) and pa.types.is_list(column.type) and pa.types.is_integer(column.type.value_type)
    )
