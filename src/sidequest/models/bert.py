"""BERT and its tokeniser without `transformers`: the same states, for a start-up of one second instead of four.

A frozen encoder is only asked for its states. Where it is a plain BERT (as MiniLM and most sentence encoders are), thirty lines
compute them from the weights. Whatever is unusual about a directory is left to `transformers`, which also says what is wrong
with a broken one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor
from torch.nn import functional

PLAIN = {"model_type": "bert", "hidden_act": "gelu", "position_embedding_type": "absolute", "is_decoder": False}
NO_LIMIT = int(1e30)  # how transformers writes that a tokeniser takes texts of any length


class LayerStates(NamedTuple):
    """last_hidden_state: [n, length, width]; hidden_states: the embeddings and the output of every layer, if asked for."""

    last_hidden_state: Tensor
    hidden_states: tuple[Tensor, ...] | None


@dataclass(frozen=True)
class Bert:
    """Embeddings and encoder layers, without a pooler. weights: by the names that BERT's files give them."""

    weights: Mapping[str, Tensor]
    layers: int
    heads: int
    eps: float

    def to(self, device: torch.device) -> Bert:
        return replace(self, weights={name: tensor.to(device) for name, tensor in self.weights.items()})

    def __call__(self, input_ids: Tensor, attention_mask: Tensor, output_hidden_states: bool = False) -> LayerStates:
        places = torch.arange(input_ids.shape[1], device=input_ids.device)
        words = functional.embedding(input_ids, self.weights["embeddings.word_embeddings.weight"])
        words = words + self.weights["embeddings.token_type_embeddings.weight"][0]
        x = self._norm("embeddings", words + self.weights["embeddings.position_embeddings.weight"][places])
        seen = [x]
        allowed = attention_mask[:, None, None, :].bool()
        for layer in range(self.layers):
            x = self._layer(f"encoder.layer.{layer}", x, allowed)
            seen.append(x)
        return LayerStates(x, tuple(seen) if output_hidden_states else None)

    def _layer(self, name: str, x: Tensor, allowed: Tensor) -> Tensor:
        n, length, width = x.shape
        q, k, v = (
            self._linear(f"{name}.attention.self.{part}", x).view(n, length, self.heads, -1).transpose(1, 2)
            for part in ("query", "key", "value")
        )
        mixed = functional.scaled_dot_product_attention(q, k, v, attn_mask=allowed)
        mixed = mixed.transpose(1, 2).reshape(n, length, width)
        x = self._norm(f"{name}.attention.output", self._linear(f"{name}.attention.output.dense", mixed) + x)
        inner = functional.gelu(self._linear(f"{name}.intermediate.dense", x))
        return self._norm(f"{name}.output", self._linear(f"{name}.output.dense", inner) + x)

    def _linear(self, name: str, x: Tensor) -> Tensor:
        return functional.linear(x, self.weights[f"{name}.weight"], self.weights[f"{name}.bias"])

    def _norm(self, name: str, x: Tensor) -> Tensor:
        weight, bias = self.weights[f"{name}.LayerNorm.weight"], self.weights[f"{name}.LayerNorm.bias"]
        return functional.layer_norm(x, x.shape[-1:], weight, bias, self.eps)


def read_config(directory: Path, layers: int | None = None) -> SimpleNamespace | None:
    """The configuration of a plain BERT, or None. layers: only so many of the first."""
    written = _read_json(directory / "config.json")
    config: dict[str, Any] = PLAIN | {"layer_norm_eps": 1e-12, "type_vocab_size": 2} | written
    needed = ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "vocab_size")
    if any(config[name] != value for name, value in PLAIN.items()) or "model_type" not in written:
        return None
    if any(not isinstance(config.get(name), int) for name in (*needed, "max_position_embeddings")):
        return None
    if layers is not None and layers > config["num_hidden_layers"]:
        return None
    return SimpleNamespace(**(config | {"num_hidden_layers": layers or config["num_hidden_layers"]}))


def read_weights(directory: Path, config: Any) -> Bert | None:
    """The encoder, or None if the files do not hold what a plain BERT needs."""
    try:
        with safe_open(str(directory / "model.safetensors"), framework="pt") as file:
            stored = {_current_name(name): file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        weights = {name: stored[name].float() for name in _names(config.num_hidden_layers)}
    except (OSError, KeyError, SafetensorError):
        return None
    width = config.hidden_size
    tables = {
        "word": config.vocab_size,
        "position": config.max_position_embeddings,
        "token_type": config.type_vocab_size,
    }
    if any([*weights[f"embeddings.{name}_embeddings.weight"].shape] != [rows, width] for name, rows in tables.items()):
        return None
    return Bert(weights, config.num_hidden_layers, config.num_attention_heads, config.layer_norm_eps)


def _current_name(name: str) -> str:
    """Names of older files, and of files that hold heads beside the encoder, as they are written today."""
    name = name.removeprefix("bert.")
    return name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")


def _names(layers: int) -> list[str]:
    names = [f"embeddings.{part}_embeddings.weight" for part in ("word", "position", "token_type")]
    modules = ["embeddings.LayerNorm"]
    for layer in range(layers):
        parts = (*(f"attention.self.{part}" for part in ("query", "key", "value")), "intermediate.dense")
        outputs = [f"{place}.{part}" for place in ("attention.output", "output") for part in ("dense", "LayerNorm")]
        modules += [f"encoder.layer.{layer}.{part}" for part in (*parts, *outputs)]
    return [*names, *(f"{module}.{part}" for module in modules for part in ("weight", "bias"))]


class WordPieces:
    """The part of a transformers tokeniser that texts need, over `tokenizer.json` alone."""

    is_fast = True

    def __init__(self, directory: Path, settings: Mapping[str, Any]) -> None:
        from tokenizers import Tokenizer

        self._pieces = Tokenizer.from_file(str(directory / "tokenizer.json"))
        self._pieces.no_padding()
        self.model_max_length = int(settings.get("model_max_length") or NO_LIMIT)
        self.pad_token_id, self.unk_token_id = (self._pieces.token_to_id(name) for name in ("[PAD]", "[UNK]"))

    def __call__(
        self, first: Sequence[str], second: Sequence[str] | None = None, *, max_length: int | None = None, **_: Any
    ) -> dict[str, list[list[int]]]:
        """`input_ids` and `token_type_ids`; the longer text of a pair gives way to max_length."""
        if max_length is None:
            self._pieces.no_truncation()
        else:
            self._pieces.enable_truncation(max_length, strategy="longest_first")
        texts = first if second is None else list(zip(first, second, strict=True))
        found = self._pieces.encode_batch(list(texts))
        return {"input_ids": [row.ids for row in found], "token_type_ids": [row.type_ids for row in found]}


def read_tokeniser(directory: Path) -> WordPieces | None:
    """The tokeniser of a plain BERT, or None if its files say anything that `tokenizer.json` does not."""
    settings, pieces = _read_json(directory / "tokenizer_config.json"), _read_json(directory / "tokenizer.json")
    normalizer = pieces.get("normalizer") or {}
    agrees = (
        settings.get("tokenizer_class") in ("BertTokenizer", "BertTokenizerFast")
        and normalizer.get("type") == "BertNormalizer"
        and bool(settings.get("do_lower_case", True)) == normalizer.get("lowercase")
        and settings.get("strip_accents") == normalizer.get("strip_accents")
        and bool(settings.get("tokenize_chinese_chars", True)) == normalizer.get("handle_chinese_chars")
        and all(settings.get(f"{name}_token", f"[{name.upper()}]") == f"[{name.upper()}]" for name in ("pad", "unk"))
    )
    try:
        return WordPieces(directory, settings) if agrees else None
    except Exception:  # tokenizers raises no class of its own; transformers will say what is wrong
        return None


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}
