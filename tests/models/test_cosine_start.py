"""The cosine alone is kept for choices, unless everything together is better by more than chance."""

import numpy as np
import pytest

from sidequest.models.cosine_start import or_cosine
from sidequest.numerics.likelihoods import Choice
from sidequest.numerics.linear_models import logistic


def choices(telling: int, rows=80, columns=30, seed=0):
    """Two choices per row, of which the one with the larger value in the column `telling` is mostly right."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(2 * rows, columns))
    score = x[:, telling].reshape(rows, 2) + 0.5 * rng.normal(size=(rows, 2))
    return x, Choice(score.argmax(axis=1), np.full(rows, 2))


@pytest.mark.parametrize(("telling", "alone"), [(-1, True), (0, False)])
def test_the_cosine_alone_where_nothing_else_tells(telling, alone):
    x, loss = choices(telling)
    everything = logistic(x, loss)
    kept = or_cosine(everything, x, loss, None)
    assert (np.flatnonzero(kept.weight).tolist() == [x.shape[1] - 1]) is alone
    assert (kept is everything) is not alone


def test_the_cosine_counts_for_the_nearer_choice():
    x, loss = choices(-1)
    kept = or_cosine(logistic(x, loss), x, loss, None)
    chosen = kept(x)[:, 0].reshape(-1, 2).argmax(axis=1)
    assert (chosen == x[:, -1].reshape(-1, 2).argmax(axis=1)).all()
