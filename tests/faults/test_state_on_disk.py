"""A learner saved to disk and loaded by a fresh process trains on to the same bits: every family, dtype and memory layout."""

import functools

import pytest
import torch

from sidequest.testing import check_learner
from tests.helpers.sample_models import make_encoder
from tests.helpers.small_learners import (
    ForgetsLayout,
    ForgetsMomentum,
    KeepsStateInTheProcess,
    convnet_that,
    learner_of,
    odd_learner,
)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    made = {}

    def of(architecture):
        if architecture not in made:
            made[architecture] = str(make_encoder(tmp_path_factory.mktemp(architecture) / architecture, architecture))
        return made[architecture]

    return of


FAMILIES = [("convnet", None), ("hf", "bert"), ("hf", "vit"), ("bilstm", "bert"), ("pooled", "bert")]
LAYOUTS = {"channels-last": torch.channels_last, "contiguous": torch.contiguous_format}
QUICK = {("hf", "adamw"), (torch.bfloat16, "channels-last", "adamw")}


def quick_or_slow(*case):
    """Some run in every test; all with `make test-faults`."""
    chosen = bool({case, (case[0], case[-1])} & QUICK) and "vit" not in case
    return pytest.param(*case, marks=() if chosen else pytest.mark.slow)


@pytest.mark.parametrize(
    ("kind", "architecture", "optimizer"),
    [quick_or_slow(*family, optimizer) for family in FAMILIES for optimizer in ("adamw", "sgd")],
)
def test_every_family_continues_from_disk(kind, architecture, optimizer, encoder):
    check_learner(functools.partial(learner_of, kind, architecture and encoder(architecture), optimizer))


@pytest.mark.parametrize(
    ("dtype", "layout", "optimizer"),
    [
        quick_or_slow(dtype, layout, optimizer)
        for dtype in (torch.float32, torch.float64, torch.bfloat16)
        for layout in LAYOUTS
        for optimizer in ("adamw", "sgd")
    ],
)
def test_every_dtype_and_layout_continues_from_disk(dtype, layout, optimizer):
    check_learner(functools.partial(odd_learner, dtype, LAYOUTS[layout], optimizer))


@pytest.mark.parametrize(
    ("planted", "says"),
    [
        (ForgetsLayout, "a loaded learner must train on"),
        (ForgetsMomentum, "a loaded learner must train on"),
        (KeepsStateInTheProcess, "loaded in a fresh process"),
    ],
)
def test_the_check_finds_a_state_that_comes_back_wrong(planted, says):
    with pytest.raises(AssertionError, match=says):
        check_learner(functools.partial(convnet_that, planted))
