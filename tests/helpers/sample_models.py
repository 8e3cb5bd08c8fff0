"""Encoders of every supported architecture, small enough to build in milliseconds, with random weights and a tokeniser."""

from __future__ import annotations

import string
from pathlib import Path

import numpy as np
import pyarrow as pa
import torch
import transformers
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from sidequest.tasks.examples import Examples
from sidequest.tasks.task import Form, Objective, Task

VERBS = ("sat", "ran", "is", "was", "runs")
WORDS = (
    *VERBS,
    "the",
    "cat",
    "dog",
    "on",
    "under",
    "a",
    "mat",
    "tree",
    "not",
    "very",
    "good",
    "bad",
    "film",
    "it",
    "fast",
    "slow",
)
SPECIAL = ["<pad>", "<s>", "</s>", "<unk>", "<mask>"]

SMALL = {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 48}
POSITIONS = {"max_position_embeddings": 160}
TEXT_ARCHITECTURES = {
    "bert": SMALL | POSITIONS,
    "roberta": SMALL | POSITIONS | {"type_vocab_size": 1},
    "distilbert": {"dim": 32, "n_layers": 3, "n_heads": 4, "hidden_dim": 48} | POSITIONS,
    "electra": SMALL | POSITIONS | {"embedding_size": 16},
    "albert": SMALL | POSITIONS | {"embedding_size": 16},
    "mpnet": SMALL | POSITIONS,
    "deberta-v2": SMALL | POSITIONS | {"relative_attention": True, "pos_att_type": ["p2c", "c2p"]},
    "modernbert": SMALL | POSITIONS | {"global_attn_every_n_layers": 2, "local_attention": 8},
}


def wordpiece() -> Tokenizer:
    """Whole words of WORDS, single letters for the rest."""
    letters = list(string.ascii_lowercase + string.digits + string.punctuation)
    vocabulary = [*SPECIAL, *WORDS, *letters, *(f"##{letter}" for letter in letters)]
    tokenizer = Tokenizer(models.WordPiece({t: i for i, t in enumerate(dict.fromkeys(vocabulary))}, unk_token="<unk>"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return tokenizer


def bytelevel() -> Tokenizer:
    """Every byte is a token, and a word is known by the space before it, as in RoBERTa."""
    vocabulary = [*SPECIAL, *sorted(pre_tokenizers.ByteLevel.alphabet())]
    tokenizer = Tokenizer(models.BPE({t: i for i, t in enumerate(vocabulary)}, merges=[], unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return tokenizer


def tiny_tokenizer(architecture: str) -> transformers.PreTrainedTokenizerFast:
    tokenizer = bytelevel() if architecture in ("roberta", "modernbert") else wordpiece()
    tokenizer.add_special_tokens(SPECIAL)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> $B:1 </s>:1", special_tokens=[("<s>", 1), ("</s>", 2)]
    )
    names = {
        "pad_token": "<pad>",
        "cls_token": "<s>",
        "sep_token": "</s>",
        "unk_token": "<unk>",
        "mask_token": "<mask>",
    }
    takes = ["input_ids", "attention_mask"]
    if architecture in ("bert", "electra", "albert", "deberta-v2"):
        takes.insert(1, "token_type_ids")
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_input_names=takes, **names)


def make_encoder(directory: Path, architecture: str = "bert", **changes: object) -> Path:
    """A random encoder with wide weights, so that differences between inputs show in its outputs."""
    if architecture == "vit":
        config = transformers.ViTConfig(**SMALL | {"image_size": 16, "patch_size": 4, "num_channels": 3} | changes)
    else:
        tokenizer = tiny_tokenizer(architecture)
        tokenizer.save_pretrained(directory)
        known = TEXT_ARCHITECTURES[architecture] | {"vocab_size": len(tokenizer), "pad_token_id": 0} | changes
        config = transformers.AutoConfig.for_model(architecture, **known)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        model = transformers.AutoModel.from_config(config)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(0.1 * torch.randn_like(parameter))
    model.save_pretrained(directory)
    return directory


def sentences(rng: np.random.Generator, count: int, longest: int = 12) -> list[str]:
    return [" ".join(rng.choice(WORDS, rng.integers(1, longest))) for _ in range(count)]


def make_task(
    name: str, form: Form = Form.TEXT, objective: Objective | None = None, rows: int = 12, seed: int = 0
) -> Task:
    """Random rows of any form; the default objective of a form is the customary one."""
    rng = np.random.default_rng([seed, sum(name.encode())])
    usual = {Form.CHOICES: Objective.CHOICE, Form.TOKENS: Objective.TAGGING}.get(form, Objective.CLASSIFICATION)
    objective = objective or usual
    columns: dict[str, object] = {}
    if form == Form.IMAGE:
        columns["image"] = rng.integers(0, 256, size=(rows, 1, 12, 12), dtype=np.uint8)
    elif form == Form.TOKENS:
        tokens = [text.split() for text in sentences(rng, rows)]
        columns["tokens"] = pa.array(tokens, type=pa.list_(pa.string()))
    else:
        columns["text"] = pa.array(sentences(rng, rows))
        if form == Form.PAIR:
            columns["text_b"] = pa.array(sentences(rng, rows))
        if form == Form.CHOICES:
            columns["choices"] = pa.array([sentences(rng, int(rng.integers(2, 5))) for _ in range(rows)])
    labels: tuple[str, ...] = ("no", "yes", "maybe")
    target: object
    if objective == Objective.TAGGING:
        target = pa.array([rng.integers(0, 3, len(row)).tolist() for row in tokens], type=pa.list_(pa.int64()))
    elif objective == Objective.REGRESSION:
        target, labels = 50 + 20 * rng.normal(size=rows), ()
    elif objective == Objective.CHOICE:
        target, labels = rng.integers(0, 2, rows), ()
    elif objective == Objective.MULTILABEL:
        target = rng.integers(0, 2, (rows, 3)).astype(np.uint8)
    else:
        target = rng.integers(0, 3, rows)
    return Task(name, objective, form, {"train": Examples(columns, target, np.arange(rows))}, labels)


def batch_of(family, task: Task, positions=None):
    """A batch of a task's train rows, all of them unless told."""
    return family.inputs(task, task.train).collate(
        np.arange(len(task.train)) if positions is None else np.array(positions)
    )


def stir(model: torch.nn.Module, seed: int = 3) -> torch.nn.Module:
    """Move every parameter away from its initial value, as training would, so that a lost one shows."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=generator))
    return model.eval()
