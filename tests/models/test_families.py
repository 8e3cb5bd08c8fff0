"""Which model a suite gets."""

from __future__ import annotations

import subprocess
import sys

import pytest

from sidequest.errors import SettingsError
from sidequest.models import USED_SETTINGS
from sidequest.models import family as make_family
from sidequest.models.convnet import ConvFamily
from sidequest.models.hf import HfFamily
from sidequest.settings import ModelSettings
from sidequest.tasks.suite import Suite
from sidequest.tasks.task import Form
from tests.helpers.sample_models import make_task


def test_auto_is_convnet_for_images_and_hf_otherwise(encoders):
    images = Suite.of(make_task("a", Form.IMAGE), [make_task("b", Form.IMAGE)])
    assert isinstance(make_family(images, ModelSettings()), ConvFamily)
    texts = Suite.of(make_task("a"), [make_task("b", Form.TOKENS)])
    assert isinstance(make_family(texts, ModelSettings(encoder=str(encoders()))), HfFamily)


def test_a_setting_without_effect_is_told(encoders):
    suite = Suite.of(make_task("a"))
    with pytest.raises(SettingsError, match=r"model\.hidden=9 has no effect on model\.kind=hf"):
        make_family(suite, ModelSettings(kind="hf", encoder=str(encoders()), hidden=9))
    with pytest.raises(SettingsError, match=r"model\.freeze=1 has no effect on model\.kind=pooled"):
        make_family(suite, ModelSettings(kind="pooled", encoder=str(encoders()), freeze=1))


def test_every_setting_is_used_by_some_kind():
    assert set().union(*USED_SETTINGS.values()) | {"kind"} == set(ModelSettings.model_fields)


def test_importing_the_package_is_cheap():
    code = "import sys, sidequest.models; assert not {'torch', 'transformers', 'datasets'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
