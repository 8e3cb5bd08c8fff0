"""Batches: every row once, little padding, positions that can be saved."""

import numpy as np

from sidequest.learning.torch.batching import POOL_BATCHES, Stream, epoch_batches, evaluation_batches


def padding(batches: list[np.ndarray], lengths: np.ndarray) -> int:
    return sum(int(lengths[batch].max()) * len(batch) for batch in batches) - int(lengths.sum())


def test_an_epoch_has_every_row_once():
    lengths = np.random.default_rng(0).integers(1, 100, 1003)
    batches = epoch_batches(lengths, 32, np.random.default_rng(1))
    assert sorted(np.concatenate(batches)) == list(range(1003))
    assert len(batches) == 32
    assert sorted(map(len, batches))[0] == 1003 % 32


def test_bucketing_removes_most_padding():
    rng = np.random.default_rng(0)
    lengths = rng.geometric(1 / 25, 4000)
    plain = np.array_split(rng.permutation(4000), 125)
    bucketed = epoch_batches(lengths, 32, rng)
    assert padding(bucketed, lengths) < 0.15 * padding(plain, lengths)
    assert padding(evaluation_batches(lengths, 32), lengths) <= padding(bucketed, lengths)


def test_batches_stay_random_within_an_epoch():
    lengths = np.arange(32 * POOL_BATCHES * 4)
    first = [int(lengths[batch].mean()) for batch in epoch_batches(lengths, 32, np.random.default_rng(0))]
    assert abs(np.corrcoef(first, np.arange(len(first)))[0, 1]) < 0.2


def test_a_stream_continues_from_a_saved_position():
    lengths = np.random.default_rng(0).integers(1, 9, 70)
    stream = Stream(lengths, None, 32, seed=5)
    seen = [stream.next() for _ in range(8)]
    again = Stream(lengths, None, 32, seed=5)
    again.seek(1, 1)  # three batches per epoch: position 4
    assert all(np.array_equal(a, b) for a, b in zip([again.next() for _ in range(4)], seen[4:], strict=True))
    assert sorted(np.concatenate(seen[:3])) == sorted(np.concatenate(seen[3:6])) == list(range(70))


def test_a_subset_stream_gives_only_its_rows():
    stream = Stream(np.ones(50, dtype=int), np.array([3, 7, 11]), 2, seed=0)
    assert sorted(np.concatenate([stream.next(), stream.next()])) == [3, 7, 11]
