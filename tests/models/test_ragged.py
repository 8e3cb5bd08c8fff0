"""Flat arrays against plain Python loops."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from sidequest.models.base import head_key, seed_of, spread_choices
from sidequest.models.ragged import Ragged, concatenate, mask, ranges

ROWS = [[3, 1], [], [4, 1, 5, 9], [2], []]


def test_rows_are_padded_as_by_hand():
    ragged = Ragged.of_rows(ROWS, np.int32)
    assert ragged.lengths.tolist() == [2, 0, 4, 1, 0]
    assert ragged.pad(np.array([2, 0, 1]), -7).tolist() == [[4, 1, 5, 9], [3, 1, -7, -7], [-7] * 4]
    assert ragged.pad(np.array([3, 3]), 0, longest=2).tolist() == [[2, 0], [2, 0]]
    assert ragged.pad(np.array([1, 4]), 0).shape == (2, 0)


@pytest.mark.parametrize("seed", range(5))
def test_ranges_are_concatenated_aranges(seed):
    rng = np.random.default_rng(seed)
    starts, lengths = rng.integers(0, 50, 20), rng.integers(0, 6, 20)
    expected = np.concatenate([np.arange(s, s + n) for s, n in zip(starts, lengths, strict=True)])
    assert np.array_equal(ranges(starts, lengths), expected)
    assert ranges(starts[:0], lengths[:0]).shape == (0,)


def test_parts_join():
    joined = concatenate([Ragged.of_rows(ROWS[:2], np.int32), Ragged.of_rows(ROWS[2:], np.int32)])
    whole = Ragged.of_rows(ROWS, np.int32)
    assert np.array_equal(joined.values, whole.values)
    assert np.array_equal(joined.offsets, whole.offsets)


def test_mask_is_true_inside():
    assert mask(np.array([2, 0, 1]), 3).tolist() == [[True, True, False], [False] * 3, [True, False, False]]


def test_choices_are_spread_over_rows():
    logits = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0], requires_grad=True)
    out = spread_choices(logits, torch.tensor([2, 3]))
    assert out[0, :2].tolist() == [1, 2]
    assert out[1].tolist() == [3, 4, 5]
    assert out.softmax(-1)[0, 2] == 0
    torch.nn.functional.cross_entropy(out, torch.tensor([1, 0])).backward()
    assert torch.isfinite(logits.grad).all()


def test_head_keys_differ_and_have_no_dots():
    names = ["a.b", "a%2Eb", "a%b", "ab", "keys"]
    keys = [head_key(name) for name in names]
    assert len(set(keys)) == len(names)
    assert not any("." in key for key in keys)


def test_seeds_are_functions_of_their_names():
    assert (
        seed_of(1, "a") == 7_297_780_294_385_259_649
    )  # the same in every process and every version: seeds are part of results
    assert len({seed_of(0, "a"), seed_of(1, "a"), seed_of(0, "b"), seed_of(0, "a", "b"), seed_of(0, "ab")}) == 5
