"""Rows of several tasks on one plane."""

import numpy as np
import pytest

from sidequest.numerics.principal_components import principal_components
from sidequest.report.flat_map import COMPONENTS, FEWEST_POINTS, flat_map


def clusters(rows: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {name: rng.normal(4 * place, 1, (rows, 8)) for place, name in enumerate(("here", "near", "far"))}


@pytest.mark.parametrize("rows", [5, 40])
def test_rows_that_are_alike_lie_together(rows):
    places = flat_map(clusters(rows))
    assert {name: each.shape for name, each in places.items()} == dict.fromkeys(("here", "near", "far"), (rows, 2))
    points, owner = np.concatenate(list(places.values())), np.repeat(np.arange(3), rows)
    distances = np.linalg.norm(points[:, None] - points[None], axis=2) + np.diag(np.full(len(points), np.inf))
    assert np.mean(owner[distances.argmin(axis=1)] == owner) > 0.9


def test_without_scikit_learn_principal_components_do(monkeypatch):
    monkeypatch.setattr("sidequest.report.flat_map.projection", lambda: COMPONENTS)
    places, expected = flat_map(clusters(20)), principal_components(clusters(20), 2)
    assert all(np.array_equal(places[name], expected[name]) for name in expected)


def test_the_same_rows_lie_in_the_same_places():
    first, second = flat_map(clusters(20)), flat_map(clusters(20))
    assert all(np.array_equal(first[name], second[name]) for name in first)


def test_too_few_rows_are_not_drawn():
    assert flat_map({"one": np.zeros((FEWEST_POINTS - 1, 3))}) == {}


def test_rows_that_are_not_finite_are_left_out():
    features = clusters(12)
    features["near"][3, 2], features["near"][5, 0] = np.nan, np.inf
    found = principal_components(features, 3)
    assert {name: len(rows) for name, rows in found.items()} == {"here": 12, "near": 10, "far": 12}
    assert all(np.isfinite(rows).all() for rows in found.values())
    assert principal_components({"lost": np.full((4, 8), np.nan)}, 3)["lost"].size == 0


def test_principal_components_equal_those_of_scikit_learn():
    from sklearn.decomposition import PCA

    features = clusters(12)
    ours = np.concatenate(list(principal_components(features, 3).values()))
    theirs = PCA(3).fit_transform(np.concatenate(list(features.values())))
    np.testing.assert_allclose(np.abs(ours), np.abs(theirs), atol=1e-9)
