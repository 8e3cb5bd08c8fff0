"""Windows over long texts: every token is there, neighbours overlap, and short texts are untouched."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from sidequest.models.encoders import load_tokeniser, resolve
from sidequest.models.ragged import Ragged
from sidequest.models.windows import Marks, merged, segment_means, windows_of

MARKED = Marks(1, 1)


def texts_of(lengths: list[int]) -> Ragged:
    """Token ids that tell text and place: 1000 · text + place."""
    rows = [[1000 * text + place for place in range(length)] for text, length in enumerate(lengths)]
    return Ragged.of_rows(rows, np.int32)


def rows(ragged: Ragged) -> list[list[int]]:
    return [ragged.values[a:b].tolist() for a, b in zip(ragged.offsets, ragged.offsets[1:], strict=False)]


def test_a_long_text_is_read_whole_and_a_short_one_as_it_is():
    windows = windows_of(texts_of([5, 12, 10]), 10, MARKED)  # room for 8 between the marks, 2 of them shared
    assert windows.counts.tolist() == [1, 2, 1]
    assert rows(windows.ids) == [
        list(range(5)),
        [1000, *range(1001, 1009), 1011],
        [1000, *range(1003, 1011), 1011],
        list(range(2000, 2010)),
    ]


@pytest.mark.parametrize("case", range(30))
def test_every_token_is_in_a_window_and_none_is_too_long(case):
    rng = np.random.default_rng(case)
    marks = Marks(int(rng.integers(0, 3)), int(rng.integers(0, 3)))
    most = int(rng.integers(marks.before + marks.after + 1, 40))
    texts = texts_of(rng.integers(marks.before + marks.after, 200, 12).tolist())
    windows = windows_of(texts, most, marks)
    assert windows.ids.lengths.max() <= most
    assert np.array_equal(windows.ids.values, texts.values[windows.source])
    assert set(windows.source) == set(range(len(texts.values)))
    each = np.split(np.arange(len(windows.ids)), np.cumsum(windows.counts)[:-1])
    for text, numbers in enumerate(each):
        own = [rows(windows.ids)[i] for i in numbers]
        if len(own) > 1:
            whole = rows(texts)[text]
            assert all(len(window) == most for window in own)
            for window in own:
                inside = window[marks.before : len(window) - marks.after]
                assert window[: marks.before] == whole[: marks.before]
                assert inside == list(range(inside[0], inside[0] + len(inside)))
            starts = [window[marks.before] for window in own]
            assert starts == sorted(set(starts))


def test_a_window_without_room_is_refused():
    with pytest.raises(ValueError, match="no room beside 2 marks"):
        windows_of(texts_of([5]), 2, MARKED)


def test_states_of_shared_tokens_are_averaged():
    texts = texts_of([12, 4])
    windows = windows_of(texts, 10, MARKED)
    states = torch.from_numpy(windows.ids.values.astype(np.float64))[:, None] * torch.tensor([[1.0, -1.0]])
    # Equal states of a token stay what they are; of different ones it is the mean.
    assert torch.equal(merged(states, windows, 16)[:, 0], torch.from_numpy(texts.values.astype(np.float64)))
    numbered = torch.arange(len(windows.source), dtype=torch.float64)
    result = merged(numbered, windows, 16)
    for token in range(16):
        assert result[token] == numbered[torch.from_numpy(windows.source == token)].mean()


def test_means_of_segments():
    values = torch.tensor([[1.0], [3.0], [5.0], [7.0]])
    assert segment_means(values, torch.tensor([1, 3])).tolist() == [[1.0], [5.0]]
    assert segment_means(values[:, 0], torch.tensor([2, 2])).tolist() == [2.0, 6.0]


@pytest.mark.parametrize("architecture", ["bert", "roberta"])
def test_marks_are_those_of_the_tokeniser(architecture, encoders):
    encoder = resolve(str(encoders(architecture)))
    assert Marks.of(load_tokeniser(encoder)) == Marks(1, 1)


def test_marks_of_a_plain_bert_and_of_a_tokeniser_without_any():
    assert Marks.of(lambda texts: {"input_ids": [[], [7]]}) == Marks(0, 0)
    assert Marks.of(lambda texts: {"input_ids": [[2, 9, 3], [2, 9, 7, 3]]}) == Marks(2, 1)
