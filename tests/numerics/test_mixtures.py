"""The set of distinct mixtures, and designs over it."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from sidequest.numerics.mixtures import MixtureSpace, grid, nearest_distinct, reduced, spread


@pytest.mark.parametrize(("n", "primary", "auxiliary"), [(0, 5, 5), (1, 6, 4), (2, 5, 3), (3, 4, 2)])
def test_the_set_is_every_mixture_once(n, primary, auxiliary):
    found = [tuple(row) for row in MixtureSpace(n, primary, auxiliary).mixtures.tolist()]
    as_ratios = [tuple(Fraction(a, row[0]) for a in row[1:]) for row in found]
    wanted = {
        tuple(Fraction(a, p) for a in rest)
        for p in range(1, primary + 1)
        for rest in itertools.product(range(auxiliary + 1), repeat=n)
    }
    assert len(as_ratios) == len(set(as_ratios))
    assert set(as_ratios) == wanted
    assert all(reduced(row) == row for row in found)


def test_reduced():
    assert reduced((4, 2, 0)) == (2, 1, 0)
    assert reduced((20, 0, 5)) == (4, 0, 1)
    assert reduced((3, 0)) == (1, 0)


def test_the_default_bounds_are_listed_whole_up_to_four_auxiliaries():
    assert len(MixtureSpace(4, 20, 5)) == 24_951
    assert len(MixtureSpace(4, 20, 5, largest=24_950)) < 24_950  # one too many: a drawn subset


def test_a_large_set_is_a_seeded_subset_with_the_simple_mixtures():
    space, again = MixtureSpace(8, 20, 5, largest=3000), MixtureSpace(8, 20, 5, largest=3000)
    np.testing.assert_array_equal(space.mixtures, again.mixtures)
    assert 2950 < len(space) <= 3000
    rows = set(space.positions)
    assert len(rows) == len(space)
    assert (1, *[0] * 8) in rows
    assert (1, *[1] * 8) in rows
    assert all((1, *[int(i == j) for i in range(8)]) in rows for j in range(8))
    assert np.all(np.gcd.reduce(space.mixtures, axis=1) == 1)
    used = (space.mixtures[:, 1:] > 0).sum(1)
    assert np.bincount(used, minlength=9)[1:].min() > 20  # mixtures of few tasks are not lost among those of many


def test_coordinates_are_those_of_the_mixture_not_of_its_numbers():
    space = MixtureSpace(2, 20, 5)
    np.testing.assert_allclose(
        space.coordinates_of(np.array([[4, 2, 0]])), space.coordinates_of(np.array([[2, 1, 0]])), rtol=1e-15
    )
    assert space.coordinates.min() == 0
    assert space.coordinates.max() == pytest.approx(1)
    assert space.at(space.alone) == (1, 0, 0)
    np.testing.assert_array_equal(space.coordinates[space.alone], 0)
    distinct = np.unique(space.coordinates.round(12), axis=0)
    assert len(distinct) == len(space)


@pytest.mark.parametrize("n", [1, 2])
def test_a_spread_design_covers_every_axis(n):
    space = MixtureSpace(n, 20, 5)
    design = spread(space, 7, seed=3)
    assert design == spread(space, 7, seed=3)
    assert design != spread(space, 7, seed=4)
    assert design[0] == space.alone
    assert len(set(design)) == 7
    x = np.sort(space.coordinates[design[1:]], axis=0)
    # one point in each sixth of every axis, up to the distance of the mixtures from each other
    edges = np.arange(6)[:, None] / 6
    assert np.all(x >= edges - 0.08)
    assert np.all(x <= edges + 1 / 6 + 0.08)


def test_a_spread_design_of_a_small_space_is_all_of_it():
    space = MixtureSpace(1, 2, 1)
    assert sorted(spread(space, 10, seed=0)) == [0, 1, 2]
    assert spread(MixtureSpace(0, 20, 5), 10, seed=0) == [0]


@pytest.mark.parametrize(("n", "points"), [(0, 1), (1, 20), (2, 20), (3, 18), (4, 16)])
def test_the_grid_is_the_finest_within_the_budget(n, points):
    space = MixtureSpace(n, 20, 5)
    chosen = grid(space, 20)
    assert len(chosen) == len(set(chosen)) == points
    assert space.alone in chosen
    if n:
        far = space.coordinates[chosen].max(0)
        np.testing.assert_allclose(far, 1, atol=0.01)


def test_nearest_distinct_skips_what_is_taken():
    space = MixtureSpace(1, 4, 2)
    point = space.coordinates[[3]]
    first = nearest_distinct(space, point)[0]
    assert first == 3
    assert nearest_distinct(space, point, taken=[3])[0] != 3
    assert len(set(nearest_distinct(space, np.repeat(point, 5, axis=0)))) == 5
