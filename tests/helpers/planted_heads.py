"""An encoder whose heads are known, and tasks that need known heads: what GradTS supposes, made true by construction.

Every sentence has one word of each of 12 groups, in random order. Each head looks at the word of one group, in an order of its
own per layer. A task's label is the majority of the signs of five words, one of each group that it asks about; so it needs the
heads that look there, and two tasks are as related as the groups they share. All tasks have the same sentences: nothing but
labels can tell them apart.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import torch
import transformers

from sidequest.tasks.examples import Examples
from sidequest.tasks.suite import Suite
from sidequest.tasks.task import Form, Objective, Task
from tests.helpers.tiny_suites import save_word_tokenizer

GROUPS, WORDS_PER_GROUP, LAYERS, SIZE = 12, 6, 2, 8
WIDTH = GROUPS * SIZE
# A dimension that every token has, and asks with. Those before it mark groups, those after it carry words.
MARK = GROUPS
ASKED = {
    "target": (0, 1, 2, 3, 4),
    "same": (0, 1, 2, 3, 4),
    "close": (0, 1, 2, 5, 6),
    "distant": (0, 5, 6, 7, 8),
    "foreign": (5, 6, 7, 8, 9),
    "shuffled": (0, 1, 2, 3, 4),
}
RELATEDNESS = {"same": 1.0, "close": 0.6, "distant": 0.2, "foreign": 0.0}


def planted_encoder(directory: Path, seed: int) -> Path:
    words = [f"g{group}w{word}" for group in range(GROUPS) for word in range(WORDS_PER_GROUP)]
    vocabulary = save_word_tokenizer(directory, words)
    rng = torch.Generator().manual_seed(seed)
    config = transformers.BertConfig(
        vocab_size=vocabulary,
        hidden_size=WIDTH,
        num_hidden_layers=LAYERS,
        num_attention_heads=GROUPS,
        intermediate_size=WIDTH,
        max_position_embeddings=32,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    model = transformers.BertModel(config)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.copy_(0.05 * torch.randn(parameter.shape, generator=rng))
        model.embeddings.position_embeddings.weight.zero_()
        model.embeddings.token_type_embeddings.weight.zero_()
        table = model.embeddings.word_embeddings.weight
        table[:, : MARK + 1] = 0.0
        table[:, MARK] = 4.0
        for index in range(len(words)):
            token = vocabulary - len(words) + index
            table[token, index // WORDS_PER_GROUP] = 4.0
            table[token, MARK + 1 :] = torch.randn(WIDTH - MARK - 1, generator=rng)
        for layer in model.encoder.layer:
            looks_at = torch.randperm(GROUPS, generator=rng)
            attention = layer.attention.self
            query, key = torch.zeros(WIDTH, WIDTH), torch.zeros(WIDTH, WIDTH)
            for head in range(GROUPS):
                query[head * SIZE, MARK] = 5.0
                key[head * SIZE, looks_at[head]] = 5.0
            attention.query.weight.copy_(query)
            attention.key.weight.copy_(key)
            attention.value.weight.copy_(0.2 * torch.randn(WIDTH, WIDTH, generator=rng))
            layer.attention.output.dense.weight.copy_(0.2 * torch.randn(WIDTH, WIDTH, generator=rng))
            for output in (layer.attention.output.dense, layer.output.dense):
                output.weight[: MARK + 1] = 0.0  # what marks groups stays as it is from layer to layer
    model.save_pretrained(directory)
    return directory


def planted_task(name: str, rows: int, seed: int) -> Task:
    splits = {}
    for index, (split, count) in enumerate({"train": rows, "select": 100}.items()):
        rng = np.random.default_rng([seed, sum(name.encode()), index])
        word = rng.integers(0, WORDS_PER_GROUP, (count, GROUPS))
        order = rng.permuted(np.tile(np.arange(GROUPS), (count, 1)), axis=1)
        texts = [" ".join(f"g{g}w{word[row, g]}" for g in order[row]) for row in range(count)]
        target = (word[:, list(ASKED[name])] % 2).sum(1) > len(ASKED[name]) // 2
        labels = rng.permutation(target) if name == "shuffled" else target
        splits[split] = Examples({"text": pa.array(texts)}, labels.astype(np.int64), np.arange(count))
    return Task(name, Objective.CLASSIFICATION, Form.TEXT, splits, ("few", "most"))


def planted_suite(rows: int, seed: int) -> Suite:
    tasks = [planted_task(name, rows, seed) for name in ASKED]
    return Suite.of(tasks[0], tasks[1:], name="planted-heads")
