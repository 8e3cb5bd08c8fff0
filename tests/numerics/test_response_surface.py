"""The surface over sets and mixtures, against closed forms and by simulation."""

import itertools

import numpy as np
import pytest
from scipy import stats

from sidequest.numerics.response_surface import best_surface, choose_form, fit_surface, probability_best

TASKS = ("a", "b", "c")
SETS = np.array(list(itertools.product([0.0, 1.0], repeat=3)))
EFFECTS = np.array([0.03, -0.02, 0.0])


def runs(rng, noise=0.01, repeats=2, effects=EFFECTS, blocks=0.0):
    amounts = np.repeat(SETS, repeats, axis=0)
    seeds = np.tile(np.arange(repeats), len(SETS))
    shift = blocks * rng.normal(size=repeats)
    return amounts, 0.7 + amounts @ effects + noise * rng.normal(size=len(amounts)) + shift[seeds], seeds


def test_one_task_is_the_two_sample_t_interval():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=10)
    amounts = np.repeat([[0.0], [1.0]], 5, axis=0)
    surface = fit_surface(("a",), amounts, scores, "additive")
    reference = stats.ttest_ind(scores[5:], scores[:5]).confidence_interval(0.95)
    found = surface.coefficient(0)
    assert (found.low, found.high) == pytest.approx((reference.low, reference.high))
    assert surface.gain_of_best([1.0], 1).low == pytest.approx(found.low)  # with one task it is Student's


def test_blocks_equal_the_paired_t_interval():
    rng = np.random.default_rng(1)
    base = rng.normal(size=6)
    with_task = base + 0.5 + 0.1 * rng.normal(size=6)
    surface = fit_surface(
        ("a",), np.repeat([[0.0], [1.0]], 6, axis=0), np.concatenate([base, with_task]), "additive", [*range(6)] * 2
    )
    reference = stats.ttest_rel(with_task, base).confidence_interval(0.95)
    assert surface.coefficient(0).low == pytest.approx(reference.low)
    assert surface.mean([0.0]).value == pytest.approx(base.mean())


# A true rate of 95 % lies within the margin in all but one of 200 tests.
@pytest.mark.statistical
@pytest.mark.parametrize(("tables", "margin"), [(300, 0.035), pytest.param(1500, 0.016, marks=pytest.mark.slow)])
def test_intervals_cover_at_their_stated_rate(tables, margin):
    rng = np.random.default_rng(2)
    single, fixed, best = [], [], []
    for _ in range(tables):
        amounts, scores, seeds = runs(rng, blocks=0.02)
        surface = fit_surface(TASKS, amounts, scores, "additive", list(seeds))
        single.append(surface.coefficient(0).low <= EFFECTS[0] <= surface.coefficient(0).high)
        gain = surface.gain([1.0, 1.0, 0.0])
        fixed.append(gain.low <= EFFECTS[:2].sum() <= gain.high)
        chosen = SETS[np.argmax([surface.mean(row).value for row in SETS])]
        band = surface.gain_of_best(chosen, 7)
        best.append(band.low <= chosen @ EFFECTS <= band.high)
    assert abs(np.mean(single) - 0.95) < margin
    assert abs(np.mean(fixed) - 0.95) < margin
    assert np.mean(best) > 0.95  # chosen by looking: Scheffé's band covers at least as often as it says


# A claim for the best of eight sets in at most 5 %, and a margin of two standard errors for chance.
@pytest.mark.statistical
@pytest.mark.parametrize(("tables", "most"), [(250, 0.078), pytest.param(1000, 0.064, marks=pytest.mark.slow)])
def test_where_nothing_helps_the_chosen_set_is_rarely_said_to(tables, most):
    rng = np.random.default_rng(3)
    claims = []
    for _ in range(tables):
        amounts, scores, _ = runs(rng, effects=np.zeros(3))
        surface = fit_surface(TASKS, amounts, scores, "additive")
        chosen = SETS[np.argmax([surface.mean(row).value for row in SETS])]
        claims.append(chosen.any() and surface.gain_of_best(chosen, 7).low > 0)
    assert np.mean(claims) < most


def test_an_interaction_is_noticed_and_an_additive_truth_is_not_blamed():
    rng = np.random.default_rng(4)
    amounts, scores, _ = runs(rng, repeats=4)
    assert fit_surface(TASKS, amounts, scores, "additive").lack_of_fit > 0.05
    bent = scores + 0.05 * amounts[:, 0] * amounts[:, 1]
    assert fit_surface(TASKS, amounts, bent, "additive").lack_of_fit < 0.001


def test_the_form_follows_the_data():
    rng = np.random.default_rng(5)
    amounts = rng.choice([0.0, 0.5, 1.0, 3.0], size=(60, 3))
    noise = 0.002 * rng.normal(size=60)
    assert choose_form(TASKS, amounts, 0.7 + np.log1p(amounts) @ EFFECTS + noise) == "log-linear"
    assert choose_form(TASKS, amounts, 0.7 + (amounts > 0) @ EFFECTS + noise) == "additive"
    assert choose_form(TASKS, SETS, SETS @ EFFECTS) == "additive"


def test_runs_that_cannot_tell_tasks_apart_are_refused_with_the_reason():
    with pytest.raises(ValueError, match="b: no run uses it"):
        fit_surface(("a", "b"), np.array([[0.0, 0], [1, 0], [1, 0]]), np.arange(3.0), "additive")
    with pytest.raises(ValueError, match="b: every run uses it alike"):
        fit_surface(("a", "b"), np.array([[0.0, 1], [1, 1], [1, 1], [0, 1]]), np.arange(4.0), "additive")
    with pytest.raises(ValueError, match="appear without each other"):
        fit_surface(("a", "b"), np.array([[0.0, 0], [1, 1], [1, 1], [0, 0]]), np.arange(4.0), "additive")
    with pytest.raises(ValueError, match="nothing to judge the noise by"):
        fit_surface(("a",), np.array([[0.0], [1]]), np.arange(2.0), "additive")


def test_the_probability_of_being_best_follows_the_evidence():
    rng = np.random.default_rng(6)
    amounts, scores, _ = runs(rng, repeats=6)
    surface = fit_surface(TASKS, amounts, scores, "additive")
    chances = probability_best(surface, SETS, np.random.default_rng(0))
    assert chances.sum() == pytest.approx(1)
    assert SETS[chances.argmax()][0] == 1
    assert SETS[chances.argmax()][1] == 0
    assert chances[SETS[:, 1] == 1].sum() < 0.05


def test_repeats_over_seeds_are_enough_to_notice_an_interaction():
    rng = np.random.default_rng(7)
    amounts, scores, seeds = runs(rng, repeats=4, blocks=0.05)
    assert fit_surface(TASKS, amounts, scores, "additive", list(seeds)).lack_of_fit > 0.05
    bent = scores + 0.05 * amounts[:, 0] * amounts[:, 1]
    assert fit_surface(TASKS, amounts, bent, "additive", list(seeds)).lack_of_fit < 0.001
    once = seeds == 0
    assert fit_surface(TASKS, amounts[once], scores[once], "additive").lack_of_fit is None


def test_interactions_that_repeats_show_are_in_the_surface_that_is_taken():
    rng = np.random.default_rng(8)
    amounts, scores, seeds = runs(rng, repeats=6, noise=0.002, blocks=0.05)
    bent = scores - 0.05 * amounts[:, 0] * amounts[:, 1]
    pairwise, by_task = best_surface(TASKS, amounts, bent, list(seeds))
    assert pairwise.form in ("pairwise", "separate")
    assert pairwise.gain([1, 1, 0]).value == pytest.approx(-0.04, abs=0.005)
    assert by_task.form == "additive"
    assert by_task.coefficient(0).value == pytest.approx(
        0.03 - 0.025, abs=0.005
    )  # averaged over sets with and without b
    assert by_task.residual == pairwise.residual < fit_surface(TASKS, amounts, bent, "additive", list(seeds)).residual
    threefold = bent + 0.05 * amounts.prod(axis=1)
    separate, _ = best_surface(TASKS, amounts, threefold, list(seeds))
    assert separate.form == "separate"
    means = {tuple(row): threefold[(amounts == row).all(axis=1)].mean() for row in SETS}
    for row in SETS:
        assert separate.mean(row).value == pytest.approx(means[tuple(row)])


def test_where_the_primary_alone_was_not_run_the_plain_form_stays():
    rng = np.random.default_rng(9)
    amounts, scores, seeds = runs(rng, repeats=6, noise=0.002)
    used = amounts.any(axis=1)
    bent = (scores - 0.05 * amounts[:, 0] * amounts[:, 1])[used]
    surface, _ = best_surface(TASKS, amounts[used], bent, list(seeds[used]))
    assert surface.form == "additive"
