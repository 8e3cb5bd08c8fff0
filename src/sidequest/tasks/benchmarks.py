"""The benchmarks that the catalog knows: one entry each, plain data.

`kind` is the task type of GLUE (Wang et al. 2019) that GradTS Table 7 uses, and a plain word for the others. The official
development split (CoNLL-2000: test) is the *report* split.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sidequest.tasks.multimnist import Corner
from sidequest.tasks.task import Objective

PAIR = {"text": "sentence1", "text_b": "sentence2", "label": "label"}
PREMISE = {"text": "premise", "text_b": "hypothesis", "label": "label"}
GLUE_FILES = {"train": "train.tsv", "report": "dev.tsv"}
GLUE_READING = {"format": "tsv", "quoting": "none"}
UPOS = (
    *("ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM"),
    *("PART", "PRON", "PROPN", "PUNCT", "SCONJ", "SYM", "VERB", "X"),
)
CHUNKS = ("ADJP", "ADVP", "CONJP", "INTJ", "LST", "NP", "PP", "PRT", "SBAR", "UCP", "VP")
# The hub's converted copy of a dataset that came with a loading script, which is never run.
CONVERTED = {"revision": "refs/convert/parquet"}


@dataclass(frozen=True)
class Benchmark:
    """One benchmark.

    files: split → file name or pattern in the official layout. official, hub: fields of a task spec that hold only there.
    corner: MultiMNIST's task, whose images are made from MNIST's files.
    """

    about: str
    objective: Objective
    kind: str
    metrics: tuple[str, ...]
    files: Mapping[str, str] = field(default_factory=dict)
    labels: tuple[str, ...] | dict[str, str] | None = None
    official: Mapping[str, Any] = field(default_factory=dict)
    hub: Mapping[str, Any] | None = None
    corner: Corner | None = None


def _glue(
    config: str,
    about: str,
    kind: str,
    labels: tuple[str, ...] | dict[str, str] | None,
    *,
    metrics: tuple[str, ...] = ("accuracy",),
    columns: Mapping[str, Any] = PAIR,
    hub_columns: Mapping[str, Any] | None = None,
    report: str = "dev.tsv",
    hub_report: str = "validation",
    **reading: Any,
) -> Benchmark:
    objective = Objective.CLASSIFICATION if labels else Objective.REGRESSION
    source = {"hub": "nyu-mll/glue", "config": config, "train": "train", "report": hub_report}
    return Benchmark(
        f"GLUE: {about}",
        objective,
        kind,
        metrics,
        GLUE_FILES | {"report": report},
        labels,
        GLUE_READING | dict(columns) | reading,
        source | dict(hub_columns or columns),
    )


def _multimnist(corner: Corner) -> Benchmark:
    return Benchmark(
        f"MultiMNIST: the {corner} digit of two",
        Objective.CLASSIFICATION,
        "image",
        ("accuracy",),
        labels=tuple("0123456789"),
        corner=corner,
    )


ENTRIES: dict[str, Benchmark] = {
    "cola": _glue(
        "cola",
        "acceptability of a sentence",
        "single-sentence",
        {"0": "unacceptable", "1": "acceptable"},
        metrics=("matthews", "accuracy"),
        columns={"text": "sentence", "label": "label"},
        header=["source", "label", "star", "sentence"],
    ),
    "sst2": _glue(
        "sst2",
        "sentiment of a sentence",
        "single-sentence",
        {"0": "negative", "1": "positive"},
        columns={"text": "sentence", "label": "label"},
    ),
    "mrpc": _glue(
        "mrpc",
        "paraphrases in news",
        "paraphrase",
        {"0": "not_equivalent", "1": "equivalent"},
        metrics=("accuracy", "f1"),
        columns={"text": "#1 String", "text_b": "#2 String", "label": "Quality"},
        hub_columns=PAIR,
    ),
    "stsb": _glue(
        "stsb",
        "similarity of two sentences, 0 to 5",
        "similarity",
        None,
        metrics=("pearson", "spearman"),
        columns=PAIR | {"label": "score"},
        hub_columns=PAIR,
    ),
    "qqp": _glue(
        "qqp",
        "duplicate questions",
        "paraphrase",
        {"0": "not_duplicate", "1": "duplicate"},
        metrics=("accuracy", "f1"),
        columns={"text": "question1", "text_b": "question2", "label": "is_duplicate"},
        hub_columns={"text": "question1", "text_b": "question2", "label": "label"},
        bad_rows="skip",  # the official files have a few rows that are broken in two
    ),
    "mnli": _glue(
        "mnli",
        "entailment over genres; report: matched",
        "inference",
        ("entailment", "neutral", "contradiction"),
        columns=PAIR | {"label": "gold_label"},
        hub_columns=PREMISE,
        report="dev_matched.tsv",
        hub_report="validation_matched",
    ),
    "qnli": _glue(
        "qnli",
        "does the sentence answer the question",
        "inference",
        ("entailment", "not_entailment"),
        columns={"text": "question", "text_b": "sentence", "label": "label"},
    ),
    "rte": _glue("rte", "textual entailment", "inference", ("entailment", "not_entailment")),
    "wnli": _glue("wnli", "entailment by pronoun", "inference", {"0": "not_entailment", "1": "entailment"}),
    "cb": Benchmark(
        "SuperGLUE: commitment to a clause",
        Objective.CLASSIFICATION,
        "inference",
        ("accuracy", "macro_f1"),
        {"train": "train.jsonl", "report": "val.jsonl"},
        ("entailment", "contradiction", "neutral"),
        {"format": "jsonl", **PREMISE},
        {"hub": "aps/super_glue", "config": "cb", "train": "train", "report": "validation", **PREMISE},
    ),
    "copa": Benchmark(
        "SuperGLUE: the likelier cause or effect",
        Objective.CHOICE,
        "reasoning",
        ("accuracy",),
        {"train": "train.jsonl", "report": "val.jsonl"},
        None,
        {
            "format": "jsonl",
            "text": "{premise} What was the {question}?",
            "choices": ["choice1", "choice2"],
            "label": "label",
        },
        {
            "hub": "aps/super_glue",
            "config": "copa",
            "train": "train",
            "report": "validation",
            "text": "{premise} What was the {question}?",
            "choices": ["choice1", "choice2"],
            "label": "label",
            "labels": ["choice1", "choice2"],
        },
    ),
    "meld": Benchmark(
        "MELD: emotion of a line of dialogue",
        Objective.CLASSIFICATION,
        "emotion",
        ("weighted_f1", "accuracy"),
        {"train": "train_sent_emo.csv", "report": "dev_sent_emo.csv"},
        ("neutral", "surprise", "fear", "sadness", "joy", "disgust", "anger"),
        {"format": "csv", "text": "Utterance", "label": "Emotion"},
    ),
    "conll2000": Benchmark(
        "CoNLL-2000: chunking; report: test",
        Objective.TAGGING,
        "tagging",
        ("span_f1", "token_accuracy"),
        {"train": "train.txt", "report": "test.txt"},
        ("O", *(f"{prefix}-{kind}" for kind in CHUNKS for prefix in "BI")),
        {"format": "conll", "tokens": 0, "tags": 2},
        {
            "hub": "eriktks/conll2000",
            **CONVERTED,
            "train": "train",
            "report": "test",
            "tokens": "tokens",
            "tags": "chunk_tags",
        },
    ),
    "conll2003": Benchmark(
        "CoNLL-2003: named entities; report: testa",
        Objective.TAGGING,
        "tagging",
        ("span_f1", "token_accuracy"),
        {"train": "eng.train", "report": "eng.testa"},
        ("O", *(f"{prefix}-{kind}" for kind in ("PER", "ORG", "LOC", "MISC") for prefix in "BI")),
        {"format": "conll", "tokens": 0, "tags": 3},
        {
            "hub": "eriktks/conll2003",
            **CONVERTED,
            "train": "train",
            "report": "validation",
            "tokens": "tokens",
            "tags": "ner_tags",
        },
    ),
    "ud": Benchmark(
        "Universal Dependencies: parts of speech (UPOS)",
        Objective.TAGGING,
        "tagging",
        ("token_accuracy", "macro_f1"),
        {"train": "*-ud-train.conllu", "report": "*-ud-dev.conllu"},
        UPOS,
        {"format": "conllu", "tokens": "FORM", "tags": "UPOS"},
        {
            "hub": "universal-dependencies/universal_dependencies",
            "config": "en_ewt",
            **CONVERTED,
            "train": "train",
            "report": "validation",
            "tokens": "tokens",
            "tags": "upos",
        },
    ),
    "multimnist-top-left": _multimnist("top-left"),
    "multimnist-bottom-right": _multimnist("bottom-right"),
}
