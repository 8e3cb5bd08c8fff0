"""Which column, or which columns, could be the label: every candidate with a score and its reasons."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sidequest.tasks.guessing.facts import Facts
from sidequest.tasks.guessing.kinds import EMOTIONS, INFERENCE, SENTIMENTS
from sidequest.tasks.guessing.names import CHAT_NAMES, GENERATION_NAMES, LABEL_NAMES, LABEL_WORDS, METADATA_WORDS

ROWS_PER_LABEL = 2  # on average; a column with fewer names its rows instead of grouping them
LIKELY = -40  # a column that scores less is not taken for a label: its name speaks of something else
ONE_HOT_COLUMNS = 3  # this many neighbouring 0/1 columns are the labels of one multi-label task
BALANCED = 0.75  # above this share of one class, accuracy would praise whoever always says it
SHOWN = 5


@dataclass(frozen=True)
class Label:
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


def label_candidates(facts: list[Facts]) -> list[Label]:
    """Everything that could be the label, the likeliest first."""
    one_hot = _one_hot(facts)
    inside = {fact.name for fact in one_hot.columns} if one_hot is not None else set()
    candidates = [one_hot] if one_hot is not None else []
    for fact in facts:
        if fact.name not in inside and (candidate := _label_candidate(fact, len(facts))) is not None:
            candidates.append(candidate)
    return sorted(candidates, key=lambda candidate: -candidate.score)


def _label_candidate(fact: Facts, columns: int) -> Label | None:
    score, reason = name_score(fact)
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
        return Label((fact,), "multi-label", score + 20, (*reasons, f"lists of {_few_values(fact)}"))
    if fact.is_scale:
        return Label((fact,), "regression", score - 15, (*reasons, f"{fact.distinct} different numbers"))
    if (separated := _separated(fact)) is not None:
        return Label((fact,), "multi-label", score + 10, (*reasons, "several labels in one text"), separated)
    few = fact.distinct * (ROWS_PER_LABEL if named else 5) <= max(2 * ROWS_PER_LABEL, fact.filled) or fact.distinct == 2
    if not few or fact.words > 4:
        return None
    if fact.values & INFERENCE or len(fact.values & EMOTIONS) > 1 or fact.values & (SENTIMENTS | {"spam"}):
        score += 30
        reasons.append("usual labels")
    score += 10 if fact.position == columns - 1 else 8 if fact.position == 0 else 0
    score -= 0 if named else 5 * math.log2(fact.distinct)  # nameless columns of few values are likelier
    return Label((fact,), "classification", score, (*reasons, f"{_few_values(fact)} in {fact.filled} rows"))


def name_score(fact: Facts) -> tuple[float, str]:
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


def _one_hot(facts: list[Facts]) -> Label | None:
    """The longest run of neighbouring columns that hold only 0 and 1 (or only true and false)."""
    best: list[Facts] = []
    run: list[Facts] = []
    for fact in facts:
        binary = fact.form == "plain" and fact.is_binary and name_score(fact)[0] > -50
        same = bool(run) and (run[-1].values <= {"0", "1"}) == (fact.values <= {"0", "1"})
        run = [*(run if same else []), fact] if binary else []
        best = max(best, run, key=len)
    if len(best) < ONE_HOT_COLUMNS:
        return None
    ones = sum(count for fact in best for value, count in fact.counts if value.lower() in ("1", "true"))
    reasons = [f"{len(best)} neighbouring columns hold only 0 and 1"]
    if ones == best[0].rows:
        reasons.append("as many ones as rows (if every row has exactly one, a column of classes would do)")
    return Label(tuple(best), "multi-label", 75, tuple(reasons))


def _separated(fact: Facts) -> str | None:
    """The mark between several labels in one text, if the pieces are few and short and the texts are many."""
    for mark in ",;| ":
        pieces = {piece.strip() for value, _ in fact.counts for piece in value.split(mark)}
        several = sum(count for value, count in fact.counts if mark in value)
        if mark == " " and (fact.filled - several) * 50 <= fact.filled:
            continue  # labels of two words, such as `red car`
        if several * 50 > fact.filled and len(pieces) * 2 < fact.distinct and len(pieces) * 5 <= fact.filled:
            return mark if all(len(piece.split()) <= 3 for piece in pieces) else None
    return None


def likely_metric(label: Label) -> str | list[str]:
    if label.objective == "regression":
        return ["pearson", "spearman"]
    if label.objective == "multi-label":
        return ["micro_f1", "macro_f1", "subset_accuracy"]
    counts = [count for _, count in label.columns[0].counts]
    return "accuracy" if counts[0] <= BALANCED * sum(counts) else ["macro_f1", "accuracy"]


def why_no_text(facts: list[Facts]) -> str:
    names = ", ".join(fact.name for fact in facts)
    chat = next((fact.name for fact in facts if fact.form == "nested" and fact.name.lower() in CHAT_NAMES), None)
    if chat is not None:
        return (
            f"column {chat!r} holds conversations; write each as one text into a column of its own. Columns are {names}"
        )
    return f"no column looks like a text; columns are {names}"


def why_no_label(facts: list[Facts], candidates: Sequence[Label]) -> str:
    names = ", ".join(fact.name for fact in facts)
    chat = [f for f in facts if f.form == "nested" and f.name.lower() in CHAT_NAMES]
    if chat:
        return (
            f"column {chat[0].name!r} holds conversations, and no column says what to predict about them. Models here "
            "learn labels, numbers or tags, not replies; to judge conversations, write their text and a label into columns"
        )
    crowded = [f for f in facts if name_score(f)[0] >= 50 and f.form == "plain" and not f.numeric and f.distinct > 2]
    if crowded:
        first = crowded[0]
        return (
            f"column {first.name!r} has {first.distinct} labels in {first.filled} rows: such a column names its rows, "
            f"and nothing can be learned about a label with one example. Columns are {names}"
        )
    written = [f.name for f in facts if f.form == "nested" and name_score(f)[0] >= 50]
    if written:
        return (
            f"column {written[0]!r} holds records. For several labels in a row write lists such as ['a', 'b'], or texts such as "
            "'a;b' with `label_separator:`"
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
    nested = [fact.name for fact in facts if fact.form == "nested"]
    inside = (
        f". {', '.join(nested)} hold{'s' * (len(nested) == 1)} records; what is in them needs columns of its own"
        if nested
        else ""
    )
    return f"no column looks like a label; columns are {names}{unlikely}{inside}"


def _few_values(fact: Facts) -> str:
    shown = ", ".join(value[:20] for value, _ in fact.counts[:3]) + (", …" if fact.distinct > 3 else "")
    return f"{fact.distinct} different values ({shown})"
