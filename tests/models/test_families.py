"""Which model a suite gets."""

from __future__ import annotations

import dataclasses
import subprocess
import sys

import pytest

from sidequest.errors import SettingsError
from sidequest.model_settings import KIND_SETTINGS, BiLstmSettings, PooledSettings, model_settings
from sidequest.models.convnet import ConvFamily
from sidequest.models.hf import HfFamily
from sidequest.models.kinds import KINDS, family_class
from sidequest.runs.setup import Setup
from sidequest.tasks.suite import Suite
from sidequest.tasks.task import Form
from tests.helpers.sample_models import make_task


def test_auto_is_convnet_for_images_and_hf_otherwise(encoders):
    images = Suite.of(make_task("a", Form.IMAGE), [make_task("b", Form.IMAGE)])
    assert isinstance(Setup.of(images).family, ConvFamily)
    texts = Suite.of(make_task("a"), [make_task("b", Form.TOKENS)])
    assert isinstance(Setup.of(texts, {"encoder": str(encoders())}).family, HfFamily)


def test_a_setting_of_another_kind_is_refused_with_those_of_this_one():
    with pytest.raises(
        SettingsError, match=r"hidden has no effect on model\.kind=hf, which takes dropout, encoder, freeze"
    ):
        model_settings({"kind": "hf", "hidden": 9})
    with pytest.raises(SettingsError, match=r"freeze has no effect on model\.kind=pooled"):
        model_settings({"kind": "pooled", "freeze": 1})
    with pytest.raises(SettingsError, match=r"unknown setting 'hiden'. Did you mean 'hidden'"):
        model_settings({"kind": "pooled", "hiden": 1})
    with pytest.raises(SettingsError, match=r"unknown model kind 'poled'. Did you mean 'pooled'"):
        model_settings({"kind": "poled"})


def test_what_the_one_class_of_0_1_wrote_is_still_read():
    former = {
        "encoder": "minilm", "factory": None, "max_length": 128, "layers": None, "freeze": 0, "pooling": "native",
        "precision": "auto", "hidden": None, "depth": None, "dropout": None, "lora": None,
    }  # fmt: skip
    for kind, cls in KIND_SETTINGS.items():
        then = {"pooling": "native"} if kind == "hf" else {}  # what it wrote as the default is still what it means
        assert model_settings({"kind": kind, **former}) == cls(**then)
    assert model_settings({"kind": "pooled", **former, "hidden": 16}) == PooledSettings(hidden=16)


def test_kinds_and_their_families_agree():
    assert list(KIND_SETTINGS) == list(KINDS)
    for name in KINDS:
        family = family_class(name)
        assert (family.kind, family.Settings, family.powers) == (name, KIND_SETTINGS[name], KINDS[name].powers)


def test_a_model_section_is_for_its_own_kind():
    suite = dataclasses.replace(
        Suite.of(make_task("a")), defaults={"model": {"kind": "pooled", "hidden": 16, "max_length": 64}}
    )
    assert Setup.of(suite).model == PooledSettings(hidden=16, max_length=64)
    assert Setup.of(suite, "bilstm").model == BiLstmSettings(max_length=64)
    assert Setup.of(suite, {"dropout": 0.5}).model == PooledSettings(hidden=16, max_length=64, dropout=0.5)
    assert Setup.of(suite, PooledSettings(depth=2)).model == PooledSettings(hidden=16, max_length=64, depth=2)


@pytest.mark.parametrize("model", [3, ["pooled"]])
def test_settings_of_another_type_are_refused(model):
    with pytest.raises(SettingsError, match="model: a dictionary or a ModelSettings, found"):
        Setup.of(Suite.of(make_task("a")), model)


def test_importing_the_package_is_cheap():
    code = "import sys, sidequest.models; assert not {'torch', 'transformers', 'datasets'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
