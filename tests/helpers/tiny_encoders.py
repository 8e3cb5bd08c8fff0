"""Tiny random models of every architecture, as transformers' own classes; wide weights keep gradients far from zero."""

from __future__ import annotations

import torch
import transformers

WIDTH = {"hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 32}
TEXT = WIDTH | {"vocab_size": 50, "max_position_embeddings": 40, "pad_token_id": 0, "num_labels": 3}
CONFIGURATIONS = {
    "bert": TEXT,
    "roberta": TEXT | {"type_vocab_size": 1},
    "electra": TEXT | {"embedding_size": 12},
    "distilbert": {"dim": 24, "n_layers": 3, "n_heads": 4, "hidden_dim": 32}
    | {name: TEXT[name] for name in ("vocab_size", "max_position_embeddings", "pad_token_id", "num_labels")},
    "albert": TEXT | {"embedding_size": 12},
    "mpnet": TEXT,
    "deberta-v2": TEXT | {"relative_attention": True, "pos_att_type": ["p2c", "c2p"]},
    "modernbert": TEXT | {"global_attn_every_n_layers": 2, "local_attention": 4},
    "vit": WIDTH | {"image_size": 8, "patch_size": 4, "num_channels": 1, "num_labels": 3},
}


def tiny_model(architecture: str, task: str = "SequenceClassification", dtype=torch.float64, **changes):
    """A model of `AutoModelFor<task>`, in training mode, as after a step of training."""
    config = transformers.AutoConfig.for_model(architecture, **CONFIGURATIONS[architecture] | changes)
    kind = "ImageClassification" if architecture == "vit" else task
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        model = getattr(transformers, f"AutoModelFor{kind}").from_config(config)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(0.2 * torch.randn_like(parameter))
    return model.to(dtype).train()


def tiny_batch(architecture: str, lengths=(9, 4, 14, 1, 7), seed: int = 0):
    """Inputs of different lengths, padded to the longest, and labels."""
    generator = torch.Generator().manual_seed(seed)
    rows = len(lengths)
    labels = torch.randint(0, 3, (rows,), generator=generator)
    if architecture == "vit":
        return {"pixel_values": torch.randn(rows, 1, 8, 8, generator=generator, dtype=torch.float64)}, labels
    ids = torch.randint(5, 50, (rows, max(lengths)), generator=generator)
    mask = (torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]).long()
    return {"input_ids": ids * mask, "attention_mask": mask}, labels


def alone(inputs: dict[str, torch.Tensor], row: int) -> dict[str, torch.Tensor]:
    """One row as a batch of its own, without padding."""
    one = {name: value[row : row + 1] for name, value in inputs.items()}
    if "attention_mask" in one:
        length = int(one["attention_mask"].sum())
        one = {name: value[:, :length] for name, value in one.items()}
    return one
