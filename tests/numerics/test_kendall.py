"""Kendall's τ-b for many vectors at once: scipy is the reference."""

import numpy as np
import pytest
from scipy.stats import kendalltau

from sidequest.numerics import kendall
from sidequest.numerics.kendall import dense_ranks, kendall_matrix, kendall_tau, tied_pairs

# (values to draw from in the vectors, in the reference): few values tie often.
TIES = {"none": (10**6, 10**6), "vectors": (4, 10**6), "reference": (10**6, 3), "both": (4, 3), "many": (2, 2)}


def scipys(vectors, reference):
    return np.array([kendalltau(vector, reference).statistic for vector in vectors])


@pytest.mark.parametrize("ties", TIES)
@pytest.mark.parametrize("m", [2, 3, 17, 72, 300])
def test_equals_scipy(ties, m):
    rng = np.random.default_rng([m, len(ties)])
    of_vectors, of_reference = TIES[ties]
    vectors = rng.integers(0, of_vectors, (40, m)).astype(np.float64)
    reference = rng.integers(0, of_reference, m) / 7
    np.testing.assert_allclose(kendall_tau(vectors, reference), scipys(vectors, reference), rtol=1e-13, atol=1e-13)


def test_blocks_and_bytes_do_not_show(monkeypatch):
    """Many small blocks, and more columns than a byte can count, give what one block gives."""
    rng = np.random.default_rng(0)
    vectors, reference = rng.integers(0, 50, (100, 600)), rng.integers(0, 90, 600)
    whole = kendall_tau(vectors, reference)
    monkeypatch.setattr(kendall, "BLOCK", 5_000)
    np.testing.assert_array_equal(kendall_tau(vectors, reference), whole)
    np.testing.assert_allclose(whole, scipys(vectors, reference), rtol=1e-13)


def test_perfect_orders():
    up = np.arange(5.0)
    np.testing.assert_allclose(kendall_tau(np.stack([up, -up, up**3]), up), [1, -1, 1])


def test_constant_vectors_have_no_order():
    assert np.isnan(kendall_tau(np.ones((1, 4)), np.arange(4.0))).all()
    assert np.isnan(kendall_tau(np.arange(8.0).reshape(2, 4), np.ones(4))).all()


def test_no_vectors():
    assert kendall_tau(np.zeros((0, 4)), np.arange(4.0)).shape == (0,)


def test_the_matrix_is_symmetric_with_ones():
    vectors = np.random.default_rng(1).random((6, 30))
    found = kendall_matrix(vectors)
    np.testing.assert_allclose(found, found.T)
    np.testing.assert_allclose(np.diag(found), 1)
    assert found[1, 4] == pytest.approx(kendalltau(vectors[1], vectors[4]).statistic)


def test_ranks_and_ties():
    ranks = dense_ranks(np.array([[0.5, 0.1, 0.5, 0.2], [3, 2, 1, 0]]))
    assert ranks.tolist() == [[2, 0, 2, 1], [3, 2, 1, 0]]
    assert tied_pairs(ranks).tolist() == [1, 0]
    assert tied_pairs(np.zeros((1, 5), dtype=int)).tolist() == [10]


def test_wrong_shapes_and_numbers_are_refused():
    with pytest.raises(ValueError, match=r"found \(2, 3\), \(4,\)"):
        kendall_tau(np.zeros((2, 3)), np.zeros(4))
    with pytest.raises(ValueError, match="finite"):
        kendall_tau(np.array([[0, np.nan]]), np.zeros(2))
