"""A small random BERT whose words are those of the planted suite; suites of every form for it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
import transformers
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from sidequest.model_settings import model_settings
from sidequest.runs.setup import Setup
from sidequest.settings import TrainSettings
from sidequest.tasks.planted_words import FEATURES
from sidequest.tasks.suite import Suite
from sidequest.tasks.task import Form, Objective, Task
from tests.helpers.sentence_tasks import examples_of, task_of

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def planted_vocabulary() -> list[str]:
    words = {",", ".", "and", "an"}
    for feature in FEATURES.values():
        words |= {*feature.present, *feature.absent, *" ".join(feature.clauses).replace("_", "").split()}
    return sorted(words)


def save_tokeniser(directory: Path) -> list[str]:
    """A tokeniser of whole words; its vocabulary."""
    vocabulary = [*SPECIAL, *planted_vocabulary()]
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(vocabulary)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names).save_pretrained(directory)
    return vocabulary


def new_bert(vocabulary: list[str], width: int, layers: int) -> transformers.BertModel:
    size = {"hidden_size": width, "num_hidden_layers": layers, "num_attention_heads": 4, "intermediate_size": 32}
    config = transformers.BertConfig(vocab_size=len(vocabulary), max_position_embeddings=64, pad_token_id=0, **size)
    return transformers.BertModel(config)


def word_encoder(directory: Path) -> Path:
    """Wide random weights: rows differ."""
    vocabulary = save_tokeniser(directory)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        model = new_bert(vocabulary, 24, 2)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(0.1 * torch.randn_like(parameter))
    model.save_pretrained(directory)
    return directory


def bag_of_words(directory: Path, width: int = 128) -> Path:
    """An encoder whose mean state is the mean of word vectors, in which words that say the same lie together: a stand-in for a
    pretrained one that reads the planted suite in no time."""
    vocabulary = save_tokeniser(directory)
    rng = torch.Generator().manual_seed(7)
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        model = new_bert(vocabulary, width, 1)
        for parameter in model.encoder.parameters():
            if parameter.ndim > 1:
                parameter.zero_()
        model.embeddings.position_embeddings.weight.zero_()
        model.embeddings.token_type_embeddings.weight.zero_()
        table = model.embeddings.word_embeddings.weight
        table.copy_(torch.randn(table.shape, generator=rng))
        for feature in FEATURES.values():
            for words in (feature.present, feature.absent):
                meaning = torch.randn(width, generator=rng)
                for word in words:
                    table[vocabulary.index(word)] += 2 * meaning
    model.save_pretrained(directory)
    return directory


def word_task(
    name: str, form: Form = Form.TEXT, objective: Objective = Objective.CLASSIFICATION, rows: int = 40, empty: int = 0
) -> Task:
    """Random words, each task with a taste of its own for some of them; the first `empty` texts are empty."""
    words = planted_vocabulary()
    splits = {}
    for index, (split, count) in enumerate({"train": rows, "select": 20, "report": 20}.items()):
        rng = np.random.default_rng([sum(name.encode()), index])
        taste = np.random.default_rng(sum(name.encode())).dirichlet(np.full(len(words), 0.1))
        sentences = [rng.choice(len(words), rng.integers(2, 12), p=taste) for _ in range(count)]
        texts = [" ".join(words[word] for word in sentence) for sentence in sentences]
        if split == "train":
            texts[:empty] = [""] * empty
        splits[split] = examples_of(sentences, texts, form, objective, ("the day", "a man"))
    return task_of(name, form, objective, splits)


def every_form() -> list[Task]:
    return [
        word_task("primary", rows=30),
        word_task("pairs", Form.PAIR, rows=50),
        word_task("value", objective=Objective.REGRESSION, rows=45),
        word_task("tags", Form.TOKENS, Objective.TAGGING, rows=45),
        word_task("choice", Form.CHOICES, Objective.CHOICE, rows=40),
    ]


def word_setup(encoder: Path, tasks: list[Task], model: dict[str, object] | None = None, **train: object) -> Setup:
    suite = Suite.of(tasks[0], tasks[1:], name="words")
    settings = {"epochs": 1, "batch_size": 8, "learning_rate": 1e-3, **train}
    # float32 on every machine: the tests compare with loops of their own
    chosen = {"kind": "hf", "precision": "fp32", "encoder": str(encoder), **(model or {})}
    return Setup(suite, model_settings(chosen), TrainSettings(**settings))
