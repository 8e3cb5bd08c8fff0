"""What columns are called in real files: names of labels, texts and pairs, and words that are about a row and not its label."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence


def in_order(words: str) -> tuple[str, ...]:
    """The words of a text, in order."""
    return tuple(words.split())


def word_set(words: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(words.split())


# Whole names, the likeliest first.
LABEL_NAMES = in_order(
    """
    label labels gold_label stance target class category categories intent emotion emotions sentiment polarity topic topics stars
    rating score similarity is_duplicate quality gold answer_key answerkey tags y
    """
)
# Words inside a name: `entailment_judgment`, `Class Index`, `toxicity_level`.
LABEL_WORDS = word_set(
    """
    label labels class classes category categories target emotion emotions sentiment sentiments polarity topic topics intent
    intents rating ratings stars score scores judgment judgement judgments entailment similarity relatedness stance toxicity
    toxic hate hateful offensive abusive spam sarcasm sarcastic irony ironic humor gold truth verdict outcome status priority
    severity queue department section type tag relation duplicate paraphrase acceptability acceptable correct satisfaction
    grade level quality mood feeling genre genres mean average avg
    """
)
# About a row, an author or its collection: such a column has few values too, but is seldom what a user wants to predict.
METADATA_WORDS = word_set(
    """
    speaker author user username name source domain split fold subset language lang locale gender sex age country city state
    location region season episode year month day date time created updated timestamp version url link license licence annotator
    annotators annotation worker rater raters reviewer file filename path platform device count counts length len num number
    words tokens chars votes vote upvotes likes retweets retweet favorites helpful views followers verified subreddit publication
    publisher brand product asin store model batch page line position offset order rank std stdev error variance confidence
    agreement n sd se
    """
)
TEXT_NAMES = in_order(
    """
    text sentence body review content comment utterance message tweet post document article abstract description
    passage excerpt essay transcript question query premise headline title subject instruction prompt input
    """
)
# The first text and the names that the second may have.
PAIR_NAMES: dict[str, tuple[str, ...]] = {
    "premise": ("hypothesis",),
    "context": ("hypothesis", "response", "question", "reply"),
    "question": ("sentence", "passage", "context", "answer", "paragraph", "document", "response", "body"),
    "query": ("passage", "document", "product_title", "title", "text", "answer", "response"),
    "claim": ("evidence", "text", "sentence"),
    "title": ("description", "body", "text", "content", "abstract", "review", "summary", "article", "selftext"),
    "headline": ("short_description", "body", "article", "text", "content", "description"),
    "subject": ("body", "message", "text", "content"),
    "summary": ("text", "review", "body", "description"),
    "review_title": ("review_body", "review_text", "review"),
    "post": ("reply", "response", "comment"),
    "prompt": ("response", "answer", "completion", "essay"),
    "text": ("text_b", "context", "reply"),
}
# Endings that number two texts of one name: sentence_A and sentence_B, question1 and question2, "#1 String" and "#2 String".
PAIR_MARKS = (("1", "2"), ("a", "b"), ("left", "right"), ("first", "second"), ("0", "1"), ("one", "two"))
TOKEN_NAMES, TAG_NAMES = (
    ("tokens", "words"),
    ("tags", "ner_tags", "pos_tags", "chunk_tags", "upos", "labels", "ner", "pos"),
)
CHOICE_LIST_NAMES = ("choices", "options", "endings", "alternatives", "candidates", "answers")  # columns of lists
CHOICE_PATTERN = re.compile(r"^(?i:choice|option|ending|answer|alternative|sol)[ _]?[0-9a-eA-E]$|^[A-E]$")
ID_PATTERN = re.compile(
    r"^(id|ids|idx|index|guid|uuid|row|[a-z]?u?id\d*|sr no\.?|no\.?|unnamed: \d+|#)$"
    r"|(^|[ _-])(?i:id|ids|idx|uuid)$|[a-z](ID|Id)s?$"
)
CHAT_NAMES = word_set(
    """
    messages conversations conversation dialog dialogue turns
    """
)
GENERATION_NAMES = word_set(
    """
    output response completion chosen rejected summary highlights translation answers answer target_text
    """
)
COMMON_NAMES = frozenset({*LABEL_NAMES, *TEXT_NAMES, *PAIR_NAMES, "id", "idx", "index", "tokens", "words"}) - {
    "y",
    "first",
}


def words_of(name: str) -> list[str]:
    """The words of a name in lower case: `entailment_judgment`, `Class Index` and `gradeLevel` have two each."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    return [word for word in re.split(r"[^a-z0-9]+", spaced.lower()) if word]


def singular(name: str) -> str:
    """`titles` as `title`, `summaries` as `summary`; of a name in lower case."""
    if name.endswith("ies"):
        return name[:-3] + "y"
    return name[:-1] if name.endswith("s") and not name.endswith("ss") else name


def is_id_name(name: str) -> bool:
    return bool(ID_PATTERN.search(name if not name.isupper() else name.lower())) or name.lower() in (
        "id",
        "index",
        "idx",
    )


def numbered_pair(names: Sequence[str]) -> tuple[str, str] | None:
    """The first two names that differ only in what numbers them."""
    for first, second in itertools.combinations(names, 2):
        parts = [
            [part for word in words_of(name) for part in re.findall(r"[a-z]+|\d+", word)] for name in (first, second)
        ]
        differing = [pair for pair in zip(*parts, strict=False) if pair[0] != pair[1]]
        if len(parts[0]) == len(parts[1]) > 1 and len(differing) == 1 and differing[0] in PAIR_MARKS:
            return first, second
    return None
