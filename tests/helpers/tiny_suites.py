"""A tiny BERT on disk with a tokeniser of whole words, and tasks of every form for it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from sidequest.model_settings import HfSettings
from sidequest.runs.setup import Setup
from sidequest.settings import TrainSettings
from sidequest.tasks.suite import Suite
from sidequest.tasks.task import Form, Objective, Task
from tests.helpers.sentence_tasks import examples_of, task_of
from tests.helpers.tiny_encoders import TEXT

WORDS = [f"w{i}" for i in range(40)]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def save_word_tokenizer(directory: Path, words: list[str]) -> int:
    """A tokeniser of whole words, into a directory; the size of its vocabulary, the words coming last in it."""
    vocabulary = {word: index for index, word in enumerate([*SPECIAL, *words])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names).save_pretrained(directory)
    return len(vocabulary)


def tiny_encoder(directory: Path) -> Path:
    """Wide random weights: heads differ, and so do rows."""
    save_word_tokenizer(directory, WORDS)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        model = transformers.BertModel(transformers.BertConfig(**TEXT))
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(0.1 * torch.randn_like(parameter))
    model.save_pretrained(directory)
    return directory


def task(name: str, form: Form = Form.TEXT, objective: Objective = Objective.CLASSIFICATION, rows: int = 40) -> Task:
    """Random rows; the target is a function of the words, so that there is something to learn."""
    splits = {}
    for index, (split, count) in enumerate({"train": rows, "select": 20, "report": 20}.items()):
        rng = np.random.default_rng([sum(name.encode()), index])
        sentences = [rng.choice(40, rng.integers(2, 12)) for _ in range(count)]
        texts = [" ".join(WORDS[word] for word in sentence) for sentence in sentences]
        splits[split] = examples_of(sentences, texts, form, objective, ("w1 w2", "w3"))
    return task_of(name, form, objective, splits)


def every_objective() -> list[Task]:
    return [
        task("pairs", Form.PAIR),
        task("value", objective=Objective.REGRESSION),
        task("several", objective=Objective.MULTILABEL),
        task("tags", Form.TOKENS, Objective.TAGGING),
        task("choice", Form.CHOICES, Objective.CHOICE, rows=30),
    ]


def tiny_setup(encoder: Path, tasks: list[Task], **train: object) -> Setup:
    suite = Suite.of(tasks[0], tasks[1:], name="tiny")
    settings = {"epochs": 1, "batch_size": 8, "learning_rate": 1e-3, **train}
    return Setup(suite, HfSettings(encoder=str(encoder)), TrainSettings(**settings))
