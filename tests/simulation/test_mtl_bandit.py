"""The MTL bandit against the paper's description written out, and its best policy against a search."""

from __future__ import annotations

import numpy as np
import pytest

from sidequest.errors import SettingsError
from sidequest.learning.protocol import PredictionGain
from sidequest.simulation.mtl_bandit import BanditEnvironment, MTLBandit, losses_of, replay
from sidequest.testing.check_learner import check_learner


def environment(seed=0, **options) -> BanditEnvironment:
    return BanditEnvironment.draw(np.random.default_rng(seed), **options)


def bandit(seed):
    return MTLBandit(environment())


def test_is_a_learner_with_prediction_gain():
    check_learner(bandit)
    assert isinstance(MTLBandit(environment()), PredictionGain)


def test_increments_are_the_papers():
    drawn = environment(1, steps=500)
    assert drawn.oracle.sum() == pytest.approx(1.0)
    assert ((drawn.ceilings >= 0.5) & (drawn.ceilings <= 1.0)).all()
    np.testing.assert_allclose(drawn.learns * 500 * drawn.oracle, drawn.ceilings, rtol=1e-12)
    assert ((drawn.forgets >= 0) & (drawn.forgets <= 0.01 * drawn.learns)).all()


def test_steps_follow_the_description_one_by_one():
    drawn = environment(2, steps=300)
    bandit, scores = MTLBandit(drawn), [0.0] * 8
    arms = np.random.default_rng(3).integers(8, size=600)
    for arm in arms:
        scores[arm] = min(scores[arm] + drawn.learns[arm], drawn.ceilings[arm])
        scores = [max(score - forget, 0.0) for score, forget in zip(scores, drawn.forgets, strict=True)]
        bandit.train(f"arm-{arm + 1}", 1)
        assert [bandit.evaluate(name) for name in drawn.names] == pytest.approx(scores, abs=1e-14)


def test_losses_are_log_likelihoods_of_the_score_before_the_step():
    bandit = MTLBandit(environment())
    first, second = bandit.train("arm-1", 2)
    assert first == pytest.approx(-np.log(1e-6))
    scores = MTLBandit(environment())
    scores.train("arm-1", 1)
    assert np.exp(-second) == pytest.approx(scores.evaluate("arm-1"))


def test_gain_trains_like_train_and_measures_what_was_asked():
    plain, measured = MTLBandit(environment()), MTLBandit(environment())
    for name in ("arm-3", "arm-1", "arm-3"):
        plain.train(name, 1)
        before, after = measured.train_with_gain(name)
        assert after < before
    before, after = measured.train_with_gain("arm-2", target="arm-3")
    plain.train("arm-2", 1)
    assert after > before  # arm-3 was forgotten a little
    assert np.array_equal(plain.scores, measured.scores)


def test_replay_of_many_runs_is_what_learners_do():
    environments = [environment(seed, steps=100) for seed in range(3)]
    arms = np.random.default_rng(4).integers(8, size=(250, 3))
    before, means = replay(environments, arms)
    for column, drawn in enumerate(environments):
        bandit = MTLBandit(drawn)
        for step, arm in enumerate(arms[:, column]):
            (loss,) = bandit.train(drawn.names[arm], 1)
            assert loss == pytest.approx(losses_of(before[step, column]), abs=1e-12)
            assert bandit.scores.mean() == pytest.approx(means[step, column], abs=1e-13)


def test_restore_fresh_save_and_load(tmp_path):
    bandit = MTLBandit(environment(), primary="arm-4")
    bandit.train("arm-2", 30)
    kept = bandit.snapshot()
    bandit.save(tmp_path)
    bandit.train("arm-5", 30)
    ended = bandit.scores.copy()
    bandit.restore(kept)
    bandit.train("arm-5", 30)
    assert np.array_equal(bandit.scores, ended)
    again = bandit.fresh(1)
    assert again.scores.sum() == 0
    assert again.tasks[0] == again.primary == "arm-4"
    again.load(tmp_path)
    assert np.array_equal(again.scores, kept)


def test_unknown_arms_are_named():
    with pytest.raises(SettingsError, match="unknown task 'arm-9'"):
        MTLBandit(environment()).train("arm-9", 1)


@pytest.mark.parametrize("seed", range(4))
def test_best_policy_is_not_beaten_by_any_other(seed):
    drawn = environment(seed, arms=5)
    best = drawn.best_policy()
    value = drawn.expected_scores(best).mean()
    assert best.sum() == pytest.approx(1.0)
    rng = np.random.default_rng(seed)
    others = np.concatenate([rng.dirichlet(np.ones(5), 3000), rng.dirichlet(50 * best + 0.01, 3000), [drawn.oracle]])
    assert max(drawn.expected_scores(policy).mean() for policy in others) <= value + 1e-12


def test_expected_scores_are_those_of_a_long_run():
    drawn = environment(1, steps=40_000)
    policy = drawn.best_policy()
    arms = np.random.default_rng(0).choice(8, size=(40_000, 1), p=policy)
    assert replay([drawn], arms)[1][-1] == pytest.approx(drawn.expected_scores(policy).mean(), abs=0.01)
