"""The type of a task in a word, which `heu-type` compares: from the names of its columns, its labels and its file."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from sidequest.tasks.guessing.names import word_set, words_of

INFERENCE = word_set(
    """
    entailment contradiction neutral not_entailment entails contradicts non-entailment entailed
    """
)
EMOTIONS = word_set(
    """
    joy sadness anger fear surprise disgust love happy happiness sad angry afraid excited guilt shame trust anticipation
    optimism admiration amusement annoyance approval caring confusion curiosity desire disappointment disapproval
    embarrassment excitement gratitude grief nervousness pride realization relief remorse frustration worry boredom hate
    """
)
SENTIMENTS = word_set("positive negative pos neg")
# Words in the name of the label, of the task or among the labels → kind; the first that matches.
WORDS: dict[str, frozenset[str]] = {
    "inference": word_set("entailment nli rte snli mnli qnli wnli inference"),
    "paraphrase": word_set("duplicate paraphrase paraphrases duplicates mrpc qqp"),
    "spam": word_set("spam ham phishing"),
    "emotion": word_set("emotion emotions feeling mood"),
    "sentiment": word_set("sentiment sentiments polarity stars rating ratings satisfaction sst"),
    "toxicity": frozenset(
        ("toxic", "toxicity", "hate", "hateful", "offensive", "abusive", "insult", "obscene", "hatespeech")
    ),
    "irony": word_set("sarcasm sarcastic irony ironic"),
    "stance": word_set("stance"),
    "acceptability": word_set("acceptability acceptable cola"),
    "intent": word_set("intent intents"),
    "topic": frozenset(
        ("topic", "topics", "news", "newsgroup", "newsgroups", "section", "queue", "department", "genre", "genres")
    ),
    "similarity": word_set("similarity relatedness sts stsb"),
}


def guess_kind(
    objective: str, label_names: Collection[str], labels: Collection[str], texts: Iterable[str], task: str
) -> tuple[str, str]:
    """(the kind, why). label_names: the columns that hold the label; labels: its values, none for numbers."""
    if objective in ("tagging", "multiple-choice"):
        return objective, "the objective says so"
    text_names = [text.lower() for text in texts]
    lowered = {label.lower() for label in labels}
    names = list(label_names)
    if len(lowered & INFERENCE) >= 2 or {"entailment"} & lowered:
        return "inference", "the labels are those of entailment"
    if "hypothesis" in text_names:
        return "inference", "a text is called hypothesis"
    if len(lowered & EMOTIONS) >= 2:
        return "emotion", "the labels are emotions"
    if len(lowered & SENTIMENTS) >= 2:
        return "sentiment", "the labels are sentiments"
    if hit := _match(lowered):
        return hit, "the labels say so"
    if hit := _match(_words(names)):
        return hit, f"the label is called {names[0]}"
    if "question" in text_names and len(text_names) > 1:
        return "question-answering", f"{text_names[1]} belongs to a question"
    if hit := _match(_words([task])):
        return hit, f"the task is called {task}"
    if objective == "regression":
        return (
            ("similarity", "a number for two texts") if len(text_names) > 1 else ("regression", "a number for a text")
        )
    return ("pair" if len(text_names) > 1 else "single-text"), "nothing says more; name it better if you can"


def _match(words: Collection[str]) -> str | None:
    return next((kind for kind, known in WORDS.items() if not known.isdisjoint(words)), None)


def _words(names: Iterable[str]) -> set[str]:
    return {word for name in names for word in words_of(name)}
